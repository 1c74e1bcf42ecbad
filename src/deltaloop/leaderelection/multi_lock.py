"""Lock that consists of two locks, to migrate from one kind to another (core/combined.py)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.leaderelection.core.combined import combined_state, split_version
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState
from deltaloop.leaderelection.lock import Lock, MovableLock


@final
class MultiLock:
    """Combination of two locks, which is held only if both are held.

    A candidate that uses only one of the locks excludes this candidate, and vice versa. If the locks name different
    leaders, the leader is ``leaderelection.k8s.io/unknown``, and all candidates wait until neither lock changes. If
    only the write of the primary succeeds, the write raises and the candidate does not lead. The next read shows the
    actual state.

    Args:
        primary: Lock that is written first, which is the kind to migrate from.
        secondary: Lock that is written second, which is the kind to migrate to.

    Raises:
        InvalidArgumentError: If the locks have different identities.
    """

    def __init__(self, primary: Lock, secondary: Lock) -> None:
        if primary.identity != secondary.identity:
            raise InvalidArgumentError(
                f"must be equal in both locks, got {primary.identity!r} and {secondary.identity!r}.",
                argument="identity",
            )
        self.primary = primary
        self.secondary = secondary
        self.client: object = getattr(primary, "client", None)

    @property
    def identity(self) -> str:
        """Identity of this candidate."""
        return self.primary.identity

    async def get(self, *, timeout: float) -> LockState | None:
        """Read both locks.

        None means that neither exists.
        """
        primary = await self.primary.get(timeout=timeout)
        return combined_state(primary, await self.secondary.get(timeout=timeout))

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Create both locks.

        Raises:
            ConflictError: If a lock exists. The primary may have been created.
        """
        primary = await self.primary.create(record, timeout=timeout)
        return _both(primary, await self.secondary.create(record, timeout=timeout))

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Write both locks if their versions are current, and create a missing lock.

        Raises:
            ConflictError: If a lock has changed. The primary may have been written.
            NotFoundError: If a lock does not exist any more.
        """
        first, second = split_version(version)
        primary = await _write(self.primary, record, first, timeout)
        return _both(primary, await _write(self.secondary, record, second, timeout))

    def record_event(self, message: str) -> None:
        """Record an event about both objects."""
        self.primary.record_event(message)
        self.secondary.record_event(message)

    def describe(self) -> str:
        """Return the name of the primary."""
        return self.primary.describe()

    def on_own_connection(self) -> AbstractAsyncContextManager[MultiLock] | None:
        """Return a context manager for the same locks with separate connections, or None if a lock cannot move."""
        if not isinstance(self.primary, MovableLock) or not isinstance(self.secondary, MovableLock):
            return None
        primary, secondary = self.primary.on_own_connection(), self.secondary.on_own_connection()
        return _moved(primary, secondary) if primary is not None and secondary is not None else None

    def __repr__(self) -> str:
        return f"<MultiLock of {self.primary!r} and {self.secondary!r}>"


async def _write(lock: Lock, record: LeaderElectionRecord, version: str, timeout: float) -> LockState:
    if not version:
        return await lock.create(record, timeout=timeout)
    return await lock.update(record, version, timeout=timeout)


def _both(primary: LockState, secondary: LockState) -> LockState:
    state = combined_state(primary, secondary)
    assert state is not None
    return state


@asynccontextmanager
async def _moved(
    primary: AbstractAsyncContextManager[Lock], secondary: AbstractAsyncContextManager[Lock]
) -> AsyncGenerator[MultiLock, None]:
    async with primary as first, secondary as second:
        yield MultiLock(first, second)
