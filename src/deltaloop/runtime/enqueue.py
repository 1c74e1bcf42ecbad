"""Informer handlers that queue keys with triggers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.references import as_resource
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.runtime.core.changes import Change, Predicate
from deltaloop.runtime.core.requests import Mapper, Unmapped, own_key, owner_key, requests_for
from deltaloop.workqueue.errors import is_terminal
from deltaloop.workqueue.rate_limiting import RateLimitingQueue

_logger: Final = logging.getLogger("deltaloop.runtime")


if TYPE_CHECKING:

    class AcceptsKeys(Protocol):
        """Part of a work queue that a handler needs."""

        def add(self, item: str, *, trigger: object | None = None) -> None: ...


def _loop_time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # a handler's thread (deltaloop.blocking), whose event loops use this clock
        return time.monotonic()


@final
class Enqueue:
    """Informer handler that queues the keys of a mapper, each with a ``Trigger``.

    If the mapper raises, it is retried immediately, then with the delays of the default rate limiter. A newer change of
    the object also retries it immediately. Retries end when it succeeds or raises ``TerminalError``, or when ``close``
    is called. In a thread without an event loop there are no retries, and the caller of the handler receives the
    exception.

    Attributes:
        takes_resources: Marker for informers of kinds with a class. It makes them pass a ``Resource`` to the mapper and
            the predicates.
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
        """Create a handler.

        Args:
            queue: Queue that receives the keys.
            mapper: Function from an object to keys.
            source: Source name in the triggers.
            name: Name of the queue of failed mappings in logs. By default the source.
            predicates: Predicates that changes must pass. If one raises, the error is logged and the change passes,
                because a missing reconcile is worse than an extra reconcile.
            on_trigger: Function called with source and verb for each queued key.
            on_gone: Function called with the last state of each object that is deleted or replaced by a successor. It
                is called before keys are queued and regardless of predicates.
            clock: Function that returns monotonic seconds. By default the time of the running event loop.
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
        """Queue the keys of a new object, or of an object in the initial list."""
        new = obj if type(obj) is Resource else as_resource(obj)
        self._changed("initial" if is_in_initial_list else "add", None, new)

    def on_update(self, old: object, new: object) -> None:
        """Queue the keys of both states of a changed object."""
        if type(old) is not Resource or type(new) is not Resource:
            old, new = as_resource(old), as_resource(new)
        self._changed("update", old, new)

    def on_delete(self, obj: object, *, final_state_known: bool) -> None:
        """Queue the keys of the last known state of a deleted object."""
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
        # The queue calls the mapper again, counts and logs the failure, and schedules the next attempt.
        key = _key_of(old, new)
        self._unmapped.add(key, Change(verb=verb, old=old, new=new))
        self._failed_mappings().add(key)

    # -- mappings that failed

    def close(self) -> None:
        """Stop retrying failed mappings, and drop the waiting changes.

        Call it on the event loop.
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
                            self._unmapped.mapped(
                                work.key
                            )  # drop the change and continue with the object's next change
                            if work.key in self._unmapped.changes:
                                retries.add(work.key)
                        raise
                    self._unmapped.mapped(work.key)

    def _allows(self, change: Change) -> bool:
        for predicate in self._predicates:
            try:
                if not predicate.allows(change):
                    return False
            except Exception as error:  # noqa: BLE001 - logged, and the change passes
                key = change.subject.key if change.subject is not None else ""
                extra = {"key": key, "predicate": repr(predicate), "source": self._source}
                message = "predicate failed, accepting the change"
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
    """Return a handler that queues the key of each changed object.

    Args:
        queue: Queue that receives the keys.
        mapper: Function from an object to keys. By default, it returns the object's own key.
        source: Source name in the triggers.
        predicates: Predicates that changes must pass.
    """
    return Enqueue(queue, mapper, source=source, predicates=predicates)


def enqueue_owner(
    queue: AcceptsKeys,
    owner: TypedKind[Any],
    *,
    controller_only: bool = True,
    predicates: Sequence[Predicate] = (),
) -> Enqueue:
    """Return a handler that queues the key of the owner of each changed object.

    Args:
        queue: Queue that receives the keys.
        owner: Resource type or class of the owners. Other owners are ignored.
        controller_only: Whether to include only the controlling owner.
        predicates: Predicates that changes must pass.
    """
    mapper = owner_key(owner, controller_only=controller_only)
    return Enqueue(queue, mapper, source="owner", predicates=predicates)
