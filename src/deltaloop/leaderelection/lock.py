"""Interface of locks, which store the leader election record.

You can implement ``Lock`` with any store that rejects writes with an outdated version and always returns the latest
write.

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
    """Stored record with optimistic concurrency.

    ``timeout`` is in seconds. The elector cancels calls that take longer.
    """

    @property
    def identity(self) -> str:
        """Identity of the candidate that uses this lock. It must be unique among all candidates and not empty."""
        ...

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the record and its version. None means that it does not exist."""
        ...

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Store the first record.

        Raises:
            ConflictError: If the record exists.
        """
        ...

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Replace the record if its version is still ``version``.

        Raises:
            ConflictError: If the version differs.
            NotFoundError: If the record does not exist.
        """
        ...

    def record_event(self, message: str) -> None:
        """Record an event such as ``became leader``. It must not block or raise."""
        ...

    def describe(self) -> str:
        """Return the name of the lock for logs and errors, for example ``namespace/name``."""
        ...


@runtime_checkable
class MovableLock(Protocol):
    """Lock that can run on another event loop, so that its elector can renew on a separate thread."""

    def on_own_connection(self) -> AbstractAsyncContextManager[Lock] | None:
        """Return a context manager for the same lock with separate connections, for the event loop that enters it.

        None means that separate connections are not possible. The elector then stays on the event loop of the work.
        """
        ...


class LeaseClient(Protocol):
    """Client interface that locks require.

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
        """Replace one object if its resource version is current."""
        ...


class LockEventRecorder(Protocol):
    """Event recorder interface that locks require, for example ``deltaloop.events.EventRecorder``."""

    def event(self, obj: ObjectReference, event_type: str, reason: str, message: str, /) -> None:
        """Record an event about an object, without blocking."""
        ...
