"""A lock in two locks at once, for moving from one kind to another (core/combined.py)."""

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
    """Holds two locks, and holds nothing unless it holds both.

    A candidate that knows only one of them is kept out, and keeps us out. If the two name different leaders, the leader
    is ``leaderelection.k8s.io/unknown``, and all candidates wait until neither changes. A write that succeeds for the
    primary and fails for the secondary raises; no candidate leads by it, and the next read sees what there is.

    Args:
        primary: The lock that is written first: the kind to move away from.
        secondary: The lock that is written second: the kind to move to.

    Raises:
        InvalidArgumentError: If the two have different identities.
    """

    def __init__(self, primary: Lock, secondary: Lock) -> None:
        if primary.identity != secondary.identity:
            raise InvalidArgumentError(
                f"both locks of a MultiLock need one identity; these have {primary.identity!r} and "
                f"{secondary.identity!r}"
            )
        self.primary = primary
        self.secondary = secondary
        self.client: object = getattr(primary, "client", None)

    @property
    def identity(self) -> str:
        """This candidate's name."""
        return self.primary.identity

    async def get(self, *, timeout: float) -> LockState | None:
        """Read both; None if neither exists.

        Raises what either raises.
        """
        primary = await self.primary.get(timeout=timeout)
        return combined_state(primary, await self.secondary.get(timeout=timeout))

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Create both.

        Raises:
            ConflictError: If one exists; the primary may have been created.
        """
        primary = await self.primary.create(record, timeout=timeout)
        return _both(primary, await self.secondary.create(record, timeout=timeout))

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Write both, each if its version still stands; create one that was missing.

        Raises:
            ConflictError: If one has changed; the primary may have been written.
            NotFoundError: If one is gone.
        """
        first, second = split_version(version)
        primary = await _write(self.primary, record, first, timeout)
        return _both(primary, await _write(self.secondary, record, second, timeout))

    def record_event(self, message: str) -> None:
        """Record an event about both objects."""
        self.primary.record_event(message)
        self.secondary.record_event(message)

    def describe(self) -> str:
        """Return the primary's name."""
        return self.primary.describe()

    def on_own_connection(self) -> AbstractAsyncContextManager[MultiLock] | None:
        """Return a context with the same locks over connections of their own; None if one of them cannot move."""
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
