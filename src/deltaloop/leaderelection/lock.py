"""What a lock is: where the leader election record is stored. The locks themselves: object_lock.py, multi_lock.py.

A lock of your own implements ``Lock``: any store will do that can refuse a write whose version is not the present one,
and that answers reads with what was written last.

Source: client-go tools/leaderelection/resourcelock/{interface,leaselock}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState


class Lock(Protocol):
    """A stored record with optimistic concurrency.

    ``timeout`` is in seconds; a call that takes longer is cancelled.
    """

    @property
    def identity(self) -> str:
        """The candidate that uses this lock; unique among all candidates, never empty."""
        ...

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the record and its version; None if it does not exist."""
        ...

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Store the first record.

        Raises:
            ConflictError: If there is one already.
        """
        ...

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Replace the record if its version is still ``version``.

        Raises:
            ConflictError: If it is not.
            NotFoundError: If the record is gone.
        """
        ...

    def record_event(self, message: str) -> None:
        """Tell the world about a change, such as ``became leader``; must not block and must not raise."""
        ...

    def describe(self) -> str:
        """Name the lock in logs and errors, such as ``namespace/name``."""
        ...


@runtime_checkable
class MovableLock(Protocol):
    """A lock that can be used on another event loop; its elector then renews on a thread of its own."""

    def on_own_connection(self) -> AbstractAsyncContextManager[Lock] | None:
        """Return a context that gives the same lock with connections of its own, for the loop that enters it.

        None if there is no way to make other connections; the elector then stays on the loop of its work.
        """
        ...


class LeaseClient(Protocol):
    """What a lock needs of a client.

    ``timeout`` is in seconds.
    """

    async def get(
        self,
        resource_type: ResourceType[Resource],
        name: str,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Read one object."""
        ...

    async def create(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Create one object."""
        ...

    async def update(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        timeout: float | None = None,
    ) -> Resource:
        """Replace one object, if its resource version is the present one."""
        ...


class LockEventRecorder(Protocol):
    """What a lock needs of an event recorder; ``deltaloop.events.EventRecorder`` fits."""

    def event(self, obj: ObjectReference, event_type: str, reason: str, message: str, /) -> None:
        """Record an event about an object, without blocking."""
        ...
