"""Elector that contends for a lock and returns a term for each win.

    elector = LeaderElector(LeaseLock(client, namespace="default", name="example", identity=unique_name))
    async for term in elector.terms():
        async with term:
            await work(term.client)

It contends while ``terms()`` waits, and renews while the body of a term runs, on a separate thread (renewal_thread.py),
or on the caller's event loop if the lock cannot be moved.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Self, TypeVar, final

from deltaloop.api.times import utc_now
from deltaloop.client.client import Client
from deltaloop.leaderelection.candidacy import Candidacy, Candidate
from deltaloop.leaderelection.clock import boot_time
from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.core.election import BecameLeader, Election
from deltaloop.leaderelection.core.record import whole_seconds
from deltaloop.leaderelection.guard import LeadershipGuard, LeadershipLostError
from deltaloop.leaderelection.lock import Lock, MovableLock
from deltaloop.leaderelection.process_exit import ExitTimer, end_process
from deltaloop.leaderelection.renewal_thread import RenewalThread
from deltaloop.leaderelection.reports import Reports
from deltaloop.leaderelection.term import Term

T = TypeVar("T")


def _client_of(lock: Lock) -> Client | None:
    client: object = getattr(lock, "client", None)
    return client if isinstance(client, Client) else None


def _moved(lock: MovableLock) -> AbstractAsyncContextManager[Lock]:
    moved = lock.on_own_connection()
    if moved is None:
        raise RuntimeError("the lock cannot move to another loop any longer: a bug of the lock")
    return moved


@final
class LeaderElector:
    """Candidate for leadership.

    Only one task at a time may wait for terms. The properties are thread-safe.

    Args:
        lock: Lock that stores the record. Do not share it with another elector.
        config: Durations, callbacks and the behavior at the end.
        client: Client that ``term.client`` guards. The default is the client of the lock.
        metrics: Hooks for metrics.
        clock: Clock in seconds that measures leadership. It must run during suspend. In virtual time, pass the loop's
            clock.
        wall_clock: Function that returns the aware time for the record, which is only informational.
        random: Function that returns random numbers in [0, 1) for jitter.
        end_process: Function called for ``exit_after_loss``, on any thread. It should not return.
    """

    def __init__(
        self,
        lock: Lock,
        config: LeaderElectionConfig | None = None,
        *,
        client: Client | None = None,
        metrics: LeaderElectionMetrics | None = None,
        clock: Callable[[], float] = boot_time,
        wall_clock: Callable[[], datetime] = utc_now,
        random: Callable[[], float] = random.random,
        end_process: Callable[[], object] = end_process,
    ) -> None:
        self.config: LeaderElectionConfig = config if config is not None else LeaderElectionConfig()
        self.lock = lock
        self._reports = Reports(lock, self.config, metrics)
        self._client = client if client is not None else _client_of(lock)
        self._clock = clock
        self._election = Election(lock.identity, self.config.timing())
        self._wall_clock = wall_clock
        self._random = random
        self._end_process = end_process
        self._candidacy = self._make_candidate()
        self._reports.record_event = self._candidacy.record_event
        self._term: Term | None = None
        self._contending = False

    @property
    def name(self) -> str:
        """Name of the elector in logs and metrics."""
        return self._reports.name

    @property
    def identity(self) -> str:
        """Identity of this candidate."""
        return self.lock.identity

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads, according to its own deadline and not to the record in the lock."""
        return self._election.is_leading(self._clock())

    @property
    def renewed_ago(self) -> float | None:
        """Time in seconds since the last successful renewal was sent, or None if this candidate does not lead."""
        return self._clock() - self._election.renewed_at if self.is_leader else None

    @property
    def leader(self) -> str:
        """Last observed leader, or an empty string without a leader or before the first read."""
        return self._election.leader

    @property
    def term(self) -> Term | None:
        """Current term until its lock is released, or None."""
        term = self._term
        return term if term is not None and not term.over else None

    def check(self, tolerance: float = 0.0) -> None:
        """Check for a health probe that no term is running with an expired lease.

        Thread-safe.

        The check passes without a term, or if the lease was renewed within the lease duration plus ``tolerance``
        seconds. If it fails, the work ignores its cancellation or the event loop is blocked, so restart the process.

        Raises:
            LeadershipLostError: If the check fails.

        Source: client-go tools/leaderelection/{leaderelection,healthzadaptor}.go, ``Check``.
        """
        term = self.term
        if term is None:
            return
        age = self._clock() - self._election.renewed_at
        if age > whole_seconds(self.config.lease_duration) + tolerance:
            raise LeadershipLostError(
                f"the lease {self.lock.describe()} was not renewed for {age:.1f} s, but its term has not ended",
                lock=self.lock.describe(),
                identity=self.identity,
                fencing_token=term.fencing_token,
            )

    def terms(self) -> Terms:
        """Iterate over the terms that this candidate wins, until leadership is lost if ``rejoin`` is False.

        Each step waits until the lock is won. Canceling it releases a lock that was won in the meantime. A term must be
        over before you request the next term. Terms that were not entered are abandoned.
        """
        return Terms(self)

    async def run(self, work: Callable[[Term], Awaitable[T]]) -> T:
        """Run ``work`` while leading, again after each loss, and return its result.

        A cancellation cancels the work, waits for its end and releases the lock (``release_on_cancel``).

        Args:
            work: Function called with the term. It is canceled when leadership is lost.

        Raises:
            LeadershipLostError: If leadership was lost and ``rejoin`` is False.
        """
        async for term in self.terms():
            async with term:
                return await work(term)
        raise LeadershipLostError(
            f"{self.identity} has lost {self.lock.describe()} and does not contend again (rejoin=False)",
            lock=self.lock.describe(),
            identity=self.identity,
        )

    async def acquire(self) -> Term:
        """Contend until the lock is won, and return the term.

        ``terms()`` calls this repeatedly.

        Raises:
            RuntimeError: If an entered term is not over, or another task contends.
        """
        if self._contending:
            raise RuntimeError(f"another task already contends for {self.lock.describe()} with this elector")
        term = self.term
        if term is not None and term.entered:
            raise RuntimeError("the previous term has not ended. Leave its `async with` block first.")
        self._contending = True
        try:
            if term is not None:
                await term.abandon()
            self._reports.contending()
            won = await self._contend()
        finally:
            self._contending = False
        self._reports.won(won)
        self._term = self._make_term(won)
        return self._term

    async def _contend(self) -> BecameLeader:
        try:
            await self._candidacy.open()
        except BaseException:
            await self._candidacy.close()
            raise
        try:
            return await self._candidacy.contend()
        except BaseException:
            # A write that was canceled in flight may have won the lock.
            try:
                await self._candidacy.give_up(release=self.config.release_on_cancel)
            finally:
                await self._candidacy.close()
            raise

    def _make_candidate(self) -> Candidate:
        lock = self.lock
        if self.config.renew_in_thread and isinstance(lock, MovableLock) and lock.on_own_connection() is not None:
            return RenewalThread(
                self._election,
                lambda: _moved(lock),
                self._make_candidacy,
                clock=self._clock,
                on_new_leader=self._reports.new_leader,
                on_slow_path=self._reports.slow_path,
                name=self.name,
            )
        return self._make_candidacy(lock, on_new_leader=self._reports.new_leader, on_slow_path=self._reports.slow_path)

    def _make_candidacy(
        self, lock: Lock, *, on_new_leader: Callable[[str], object], on_slow_path: Callable[[], object]
    ) -> Candidacy:
        return Candidacy(
            self._election,
            lock,
            clock=self._clock,
            wall_clock=self._wall_clock,
            random=self._random,
            on_new_leader=on_new_leader,
            on_slow_path=on_slow_path,
            exit_timer=ExitTimer(self.config.exit_after_loss, self._end_process),
        )

    def _make_term(self, won: BecameLeader) -> Term:
        guard = LeadershipGuard(
            lambda: self._election.guard_until,
            self._clock,
            lock=self.lock.describe(),
            identity=self.identity,
            fencing_token=won.token,
        )
        return Term(
            self._candidacy,
            guard,
            client=self._client,
            transitions=won.transitions,
            release=self.config.release_on_cancel,
            warning_interval=self.config.warning_interval,
            clock=self._clock,
            reports=self._reports,
        )

    def __repr__(self) -> str:
        return (
            f"<LeaderElector {self.name} as {self.identity}, {self._election.phase.value}, leader {self.leader or '-'}>"
        )


@final
class Terms:
    """Async iterator over the terms of an elector, created by ``LeaderElector.terms``."""

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector
        self._last: Term | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Term:
        last = self._last
        if last is not None and last.lost.is_set() and not self._elector.config.rejoin:
            raise StopAsyncIteration
        self._last = await self._elector.acquire()
        return self._last
