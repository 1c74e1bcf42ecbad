"""Handlers that queue keys with triggers. Core: ``runtime/core/requests.py``.

``informer.add_event_handler(enqueue(queue))`` queues the object's own key,
``deployments.add_event_handler(enqueue_owner(queue, FOO))`` the key of the Foo that controls the Deployment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.requests import Mapper, own_key, owner_key, requests_for


class AcceptsKeys(Protocol):
    """The part of a work queue that a handler needs."""

    def add(self, item: str, *, trigger: object | None = None) -> None:
        """Queue a key, with the reason why."""
        ...


@final
class Enqueue:
    """An informer handler that queues the keys its mapper names, each with a ``Trigger``."""

    def __init__(
        self, queue: AcceptsKeys, mapper: Mapper, *, source: str, clock: Callable[[], float] | None = None
    ) -> None:
        """Make a handler.

        Args:
            queue: Where keys go.
            mapper: From an object to keys.
            source: What the triggers give as their source.
            clock: Monotonic seconds; the running loop's by default.
        """
        self._queue = queue
        self._mapper = mapper
        self._source = source
        self._clock = clock or (lambda: asyncio.get_running_loop().time())

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        """Queue for an object that is new, or that was there when the informer began."""
        self._add("initial" if is_in_initial_list else "add", old=None, new=obj)

    def on_update(self, old: Resource, new: Resource) -> None:
        """Queue for a changed object; both states are asked for keys."""
        self._add("update", old=old, new=new)

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        """Queue for a deleted object; its last known state is asked for keys."""
        self._add("delete" if final_state_known else "delete-missed", old=obj, new=None)

    def _add(self, verb: str, *, old: Resource | None, new: Resource | None) -> None:
        for key, trigger in requests_for(self._mapper, self._source, verb, old=old, new=new, now=self._clock()):
            self._queue.add(key, trigger=trigger)

    def __repr__(self) -> str:
        return f"<Enqueue source={self._source}>"


def enqueue(queue: AcceptsKeys, *, mapper: Mapper = own_key, source: str = "informer") -> Enqueue:
    """Make a handler that queues the key of each changed object.

    Args:
        queue: Where keys go.
        mapper: From an object to keys, if it should not be its own key.
        source: What the triggers give as their source.
    """
    return Enqueue(queue, mapper, source=source)


def enqueue_owner(queue: AcceptsKeys, owner: ResourceType[Any], *, controller_only: bool = True) -> Enqueue:
    """Make a handler that queues the key of the owner of each changed object.

    Args:
        queue: Where keys go.
        owner: The owners' type; objects owned by something else are passed over.
        controller_only: Whether only the controlling owner counts.
    """
    return Enqueue(queue, owner_key(owner, controller_only=controller_only), source="owner")
