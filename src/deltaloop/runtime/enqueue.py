"""Handlers that queue keys with triggers.

``informer.add_event_handler(enqueue(queue))`` queues the object's own key,
``deployments.add_event_handler(enqueue_owner(queue, FOO))`` the key of the Foo that controls the Deployment.

A change whose mapper raises is not lost: its object goes into a work queue of failed mappings, which tries it again as
a key is tried again, and names it in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.object_forms import as_resource
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.runtime.core.predicates import Change, Predicate
from deltaloop.runtime.core.requests import Mapper, Unmapped, own_key, owner_key, requests_for
from deltaloop.workqueue import RateLimitingQueue
from deltaloop.workqueue.errors import is_terminal

_logger: Final = logging.getLogger("deltaloop.runtime")


class AcceptsKeys(Protocol):
    """The part of a work queue that a handler needs."""

    def add(self, item: str, *, trigger: object | None = None) -> None:
        """Queue a key, with the reason why."""
        ...


def _loop_time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # a handler's thread (deltaloop.blocking); the loops there count by this clock
        return time.monotonic()


@final
class Enqueue:
    """An informer handler that queues the keys its mapper names, each with a ``Trigger``.

    A mapper that raises is asked again at once, then with the waits of the default rate limiter; a newer change of the
    object asks it at once, too. That goes on until it succeeds, raises ``TerminalError``, or ``close`` is called. In a
    thread without an event loop nothing can be tried again: there what it raises goes to who called the handler.

    Attributes:
        takes_resources: That an informer whose kind has a class hands it objects as they came, too: mapper and
            predicates get a ``Resource``, always.
    """

    takes_resources: Final = True

    def __init__(
        self,
        queue: AcceptsKeys,
        mapper: Mapper,
        *,
        source: str,
        name: str = "",
        predicates: Sequence[Predicate] = (),
        on_trigger: Callable[[str, str], object] | None = None,
        on_gone: Callable[[Resource], object] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Make a handler.

        Args:
            queue: Where keys go.
            mapper: From an object to keys.
            source: What the triggers give as their source.
            name: What to call the queue of failed mappings in the log; the source by default.
            predicates: Only changes that all of them pass are queued. One that raises is logged, and lets the change
                pass: a reconcile too many is better than one too few.
            on_trigger: Told source and verb for each key that is queued.
            on_gone: Told the last state of each object that is deleted, or replaced by another one of its name, before
                anything is queued; also if no predicate lets that pass.
            clock: Monotonic seconds; the running loop's by default.
        """
        self._queue = queue
        self._mapper = mapper
        self._source = source
        self._name = name or source
        self._predicates = tuple(predicates)
        self._on_trigger = on_trigger
        self._on_gone = on_gone
        self._clock = clock or _loop_time
        self._errors = ErrorSummaries()
        self._unmapped = Unmapped()
        self._retries: RateLimitingQueue[str] | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._closed = False

    def on_add(self, obj: object, *, is_in_initial_list: bool) -> None:
        """Queue for an object that is new, or that was there when the informer began."""
        new = obj if type(obj) is Resource else as_resource(obj)
        self._changed("initial" if is_in_initial_list else "add", None, new)

    def on_update(self, old: object, new: object) -> None:
        """Queue for a changed object; both states are asked for keys."""
        before = old if type(old) is Resource else as_resource(old)
        self._changed("update", before, new if type(new) is Resource else as_resource(new))

    def on_delete(self, obj: object, *, final_state_known: bool) -> None:
        """Queue for a deleted object; its last known state is asked for keys."""
        self._changed("delete" if final_state_known else "delete-missed", as_resource(obj), None)

    def _changed(self, verb: str, old: Resource | None, new: Resource | None) -> None:
        if old is not None and self._on_gone is not None and (new is None or new.uid != old.uid):
            self._on_gone(old)
        if self._predicates and not self._allows(Change(verb=verb, old=old, new=new)):
            return
        if not self._unmapped.changes or _key_of(old, new) not in self._unmapped.changes:
            try:
                keys, trigger = requests_for(self._mapper, self._source, verb, old, new, self._clock())
                for key in keys:
                    self._queue.add(key, trigger=trigger)
                    if self._on_trigger is not None:
                        self._on_trigger(trigger.source, trigger.verb)
            except Exception:
                if not self._can_retry():
                    raise
            else:
                return
        # It is asked once more, by the queue: that counts the failure, logs it, and says when to ask again.
        key = _key_of(old, new)
        self._unmapped.add(key, Change(verb=verb, old=old, new=new))
        self._failed_mappings().add(key)

    # -- mappings that failed

    def close(self) -> None:
        """Try failed mappings no longer; what waits is dropped.

        On the event loop.
        """
        self._closed = True
        self._unmapped = Unmapped()
        if self._retries is not None:
            self._retries.shut_down()

    def _can_retry(self) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a handler's thread
            return False
        return not self._closed

    def _failed_mappings(self) -> RateLimitingQueue[str]:
        if self._retries is None:
            self._retries = RateLimitingQueue(name=f"failed mappings of {self._name}")
            self._retrying = asyncio.create_task(self._retry(self._retries), name=f"failed mappings of {self._name}")
        return self._retries

    async def _retry(self, retries: RateLimitingQueue[str]) -> None:
        async for work in retries:
            with work:
                while (change := self._unmapped.first(work.key)) is not None:
                    try:
                        keys, trigger = requests_for(
                            self._mapper, self._source, change.verb, change.old, change.new, self._clock()
                        )
                        for key in keys:
                            self._queue.add(key, trigger=trigger)
                            if self._on_trigger is not None:
                                self._on_trigger(trigger.source, trigger.verb)
                    except Exception as error:
                        if is_terminal(error):
                            self._unmapped.mapped(work.key)  # given up; those behind it have their turn
                            if work.key in self._unmapped.changes:
                                retries.add(work.key)
                        raise
                    self._unmapped.mapped(work.key)

    def _allows(self, change: Change) -> bool:
        for predicate in self._predicates:
            try:
                if not predicate.allows(change):
                    return False
            except Exception as error:  # noqa: BLE001 - it is logged, and the change passes
                key = change.subject.key if change.subject is not None else ""
                extra = {"key": key, "predicate": repr(predicate), "source": self._source}
                message = "a predicate failed; the change passes"
                self._errors.log(_logger, logging.ERROR, message, error, now=self._clock(), extra=extra)
        return True

    def __repr__(self) -> str:
        return f"<Enqueue source={self._source}>"


def _key_of(old: Resource | None, new: Resource | None) -> str:
    subject = old if new is None else new
    return "" if subject is None else subject.key


def enqueue(
    queue: AcceptsKeys, *, mapper: Mapper = own_key, source: str = "informer", predicates: Sequence[Predicate] = ()
) -> Enqueue:
    """Make a handler that queues the key of each changed object.

    Args:
        queue: Where keys go.
        mapper: From an object to keys, if it should not be its own key.
        source: What the triggers give as their source.
        predicates: Only changes that all of them pass are queued.
    """
    return Enqueue(queue, mapper, source=source, predicates=predicates)


def enqueue_owner(
    queue: AcceptsKeys,
    owner: TypedKind[Any],
    *,
    controller_only: bool = True,
    predicates: Sequence[Predicate] = (),
) -> Enqueue:
    """Make a handler that queues the key of the owner of each changed object.

    Args:
        queue: Where keys go.
        owner: The owners' type or class; objects owned by something else are passed over.
        controller_only: Whether only the controlling owner counts.
        predicates: Only changes that all of them pass are queued.
    """
    mapper = owner_key(owner, controller_only=controller_only)
    return Enqueue(queue, mapper, source="owner", predicates=predicates)
