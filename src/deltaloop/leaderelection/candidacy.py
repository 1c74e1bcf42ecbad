"""Asyncio driver of an election.

It does not know terms, so it can also run on a separate event loop (renewal_thread.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol, final

from deltaloop._internal.pacing import Wait
from deltaloop.api.errors import DeltaloopError
from deltaloop.api.redaction import redact
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.leaderelection.core.election import (
    BecameLeader,
    Create,
    Election,
    Fact,
    Left,
    LossReason,
    NewLeader,
    Read,
    ReleaseOutcome,
    Request,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.record import LockState
from deltaloop.leaderelection.lock import Lock
from deltaloop.leaderelection.process_exit import ExitTimer

_log: Final = logging.getLogger("deltaloop.leaderelection")


class Candidate(Protocol):
    """Interface of the candidate that an elector and its terms use.

    Call ``open`` first and ``close`` last, and run only one of ``contend``, ``renew`` and ``give_up`` at a time.
    """

    @property
    def election(self) -> Election:
        """State of the election. Callers only read it."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def contend(self) -> BecameLeader:
        """Wait until this candidate wins the lock."""
        ...

    def begin(self) -> None:
        """Start to renew before ``renew`` is called, if that is possible without waiting."""
        ...

    async def renew(self) -> LossReason:
        """Renew until leadership is lost, and return the reason."""
        ...

    async def give_up(self, *, release: bool) -> ReleaseOutcome: ...

    def record_event(self, message: str) -> None: ...


@final
class Candidacy:
    def __init__(
        self,
        election: Election,
        lock: Lock,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], datetime],
        random: Callable[[], float],
        on_new_leader: Callable[[str], object],
        on_slow_path: Callable[[], object],
        exit_timer: ExitTimer,
    ) -> None:
        self.election = election
        self._lock = lock
        self._clock = clock
        self._wall_clock = wall_clock
        self._random = random
        self._on_new_leader = on_new_leader
        self._on_slow_path = on_slow_path
        self.exit_timer = exit_timer
        self._long_lease: tuple[str, float] = "", 0.0

    async def open(self) -> None:
        """The calling event loop needs no preparation."""

    async def close(self) -> None:
        self.exit_timer.cancel()

    def record_event(self, message: str) -> None:
        self._lock.record_event(message)

    async def contend(self) -> BecameLeader:
        self.election.join(self._clock())
        while True:
            effect = self.election.ask(self._clock(), wall=self._wall_clock())
            match effect:
                case Wait():
                    await self._wait(effect)
                case StepDown() | Left():
                    raise RuntimeError(f"{effect} while contending; a bug in deltaloop")
                case _:
                    for fact in await self._perform(effect):
                        if isinstance(fact, BecameLeader):
                            return fact

    def begin(self) -> None:
        """Renewing on the calling event loop cannot start early."""

    async def renew(self) -> LossReason:
        """Renew until leadership is lost, and return the reason. A cancellation does not release the lock."""
        while True:
            effect = self.election.ask(self._clock(), wall=self._wall_clock())
            match effect:
                case Wait():
                    await self._wait(effect)
                case StepDown(because):
                    self.exit_timer.start()
                    return because
                case Left():
                    raise RuntimeError(f"{effect} while leading; a bug in deltaloop")
                case _:
                    slow_paths, renewed_at = self.election.slow_paths, self.election.renewed_at
                    await self._perform(effect)
                    if self.election.slow_paths != slow_paths:
                        self._on_slow_path()
                    elif self.election.renewed_at != renewed_at:
                        _log.debug("renewed the lease", extra=self._names())

    async def give_up(self, *, release: bool) -> ReleaseOutcome:
        """Stop leading or contending, and release the lock if this candidate may hold it.

        It takes at most the renew deadline. After a cancellation, the lock expires.
        """
        self.exit_timer.cancel()
        self.election.release(self._clock(), give_up=release)
        try:
            while True:
                effect = self.election.ask(self._clock(), wall=self._wall_clock())
                match effect:
                    case Left(outcome):
                        return outcome
                    case Wait() | StepDown():
                        raise RuntimeError(f"{effect} while giving up; a bug in deltaloop")
                    case _:
                        await self._perform(effect)
        except BaseException:
            self.election.leave(self._clock())
            raise

    async def _wait(self, effect: Wait) -> None:
        await asyncio.sleep(max(0.0, effect.until - self._clock()))

    async def _perform(self, request: Request) -> tuple[Fact, ...]:
        facts = await self._answer_to(request)
        if self.election.attempt_is_over:
            _log.debug("failed to acquire the lease", extra=self._names())
        for fact in facts:
            if isinstance(fact, NewLeader):
                self._on_new_leader(fact.identity)
        return facts

    async def _answer_to(self, request: Request) -> tuple[Fact, ...]:
        election = self.election
        state: LockState | None = None
        try:
            async with asyncio.timeout(request.timeout):
                match request:
                    case Read(timeout):
                        state = await self._lock.get(timeout=timeout)
                    case Create(record, timeout):
                        state = await self._lock.create(record, timeout=timeout)
                    case Update(record, version, timeout):
                        state = await self._lock.update(record, version, timeout=timeout)
        except (ConflictError, NotFoundError) as error:
            if isinstance(request, Read):
                return self._failed(request, error)
            _log.debug("lock has changed", extra=self._names(request=type(request).__name__))
            return election.conflicted(self._clock(), random=self._random())
        except Exception as error:  # noqa: BLE001 - retry after any error of the lock
            return self._failed(request, error)
        if isinstance(request, Read):
            facts = election.observed(state, self._clock(), random=self._random())
            self._warn_of_a_long_lease()
            if election.attempt_is_over:
                _log.debug("lease of another candidate has not yet expired", extra=self._names(holder=election.leader))
            return facts
        assert state is not None
        return election.wrote(state.version, self._clock(), random=self._random(), token=state.token)

    def _warn_of_a_long_lease(self) -> None:
        election = self.election
        seen = election.leader, election.long_lease
        if seen[1] and seen != self._long_lease:
            _log.warning(
                "another candidate has a very long lease, which delays takeover until it ends or is deleted",
                extra=self._names(holder=seen[0], lease_seconds=seen[1]),
            )
        self._long_lease = seen

    def _failed(self, request: Request, error: Exception) -> tuple[Fact, ...]:
        expected = isinstance(error, DeltaloopError | OSError)
        _log.warning(
            "request to the leader election lock failed, retrying",
            extra=self._names(
                request=type(request).__name__, error=type(error).__name__, reason=redact(str(error)) or "no response"
            ),
            exc_info=None if expected else error,
        )
        return self.election.failed(self._clock(), random=self._random())

    def _names(self, **more: object) -> dict[str, object]:
        return {"lock": self._lock.describe(), "identity": self._lock.identity, **more}
