"""Candidate that renews on a separate thread, event loop and connection while the work's event loop responds.

The thread sends heartbeats to the work's loop (core/heartbeat.py). If the loop does not respond within the renew
deadline, the thread logs its stack, closes the guard and lets the lease expire, because the work may still be writing.

Each call from the work's loop, including a canceled call, finishes on the thread before the next call starts.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, final

from deltaloop._internal.pacing import Wait
from deltaloop._internal.tracebacks import thread_frames
from deltaloop.leaderelection.candidacy import Candidacy
from deltaloop.leaderelection.core.election import (
    Beat,
    BecameLeader,
    Election,
    Heartbeat,
    LossReason,
    ReleaseOutcome,
    Silent,
)
from deltaloop.leaderelection.lock import Lock

_log: Final = logging.getLogger("deltaloop.leaderelection")

T = TypeVar("T")


class MakeCandidacy(Protocol):
    """Factory of the candidacy that runs on the thread."""

    def __call__(
        self, lock: Lock, *, on_new_leader: Callable[[str], object], on_slow_path: Callable[[], object]
    ) -> Candidacy: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Serving:
    candidacy: Candidacy
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    turn: asyncio.Lock


@final
class _Running:
    def __init__(self, main: Callable[[_Running], None], name: str) -> None:
        self.thread = threading.Thread(target=main, args=(self,), name=name, daemon=True)
        self.serving: _Serving | None = None
        self.ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.stopped: concurrent.futures.Future[None] = concurrent.futures.Future()


@final
class RenewalThread:
    """Candidate that runs its election on a separate thread. Call it from the work's event loop."""

    def __init__(
        self,
        election: Election,
        move: Callable[[], AbstractAsyncContextManager[Lock]],
        make: MakeCandidacy,
        *,
        clock: Callable[[], float],
        on_new_leader: Callable[[str], object],
        on_slow_path: Callable[[], object],
        name: str,
    ) -> None:
        """Create the candidate without starting the thread.

        Args:
            election: State of the election. Only the thread changes it.
            move: Function that returns the lock for the thread's loop, with separate connections.
            make: Factory of the candidacy, called on the thread's event loop.
            clock: Clock in seconds that runs during suspend.
            on_new_leader: Function called on the work's event loop with the identity of each new leader.
            on_slow_path: Function called on the work's event loop for each slow path
                (``leader_election_slowpath_total``).
            name: Name of the elector, for the thread and the log.
        """
        self.election = election
        self._move = move
        self._make = make
        self._clock = clock
        self._on_new_leader = on_new_leader
        self._on_slow_path = on_slow_path
        self._name = name
        self._work_loop: asyncio.AbstractEventLoop | None = None
        self._work_thread = 0
        self._running: _Running | None = None
        self._renewals: concurrent.futures.Future[LossReason] | None = None

    # On the work's event loop

    async def open(self) -> None:
        """Start the thread and wait until its lock is usable. After a cancellation, ``close`` ends the thread."""
        await self.close()
        self._work_loop = asyncio.get_running_loop()
        self._work_thread = threading.get_ident()
        running = self._running = _Running(self._main, f"deltaloop-election-{self._name}")
        running.thread.start()
        await asyncio.wrap_future(running.ready)

    async def close(self) -> None:
        """Stop the thread and wait for its end. If this is canceled, the thread still ends."""
        running = self._running
        if running is None:
            return
        # If the thread is not ready yet, canceling ``ready`` ends it. Otherwise ``serving`` is set.
        if not running.ready.cancel() and running.serving is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                running.serving.loop.call_soon_threadsafe(running.serving.stop.set)
        await asyncio.shield(asyncio.wrap_future(running.stopped))
        running.thread.join()  # returns immediately, because the thread has finished
        self._running = None

    async def contend(self) -> BecameLeader:
        return await self._call(lambda candidacy: candidacy.contend())

    def begin(self) -> None:
        """Start to renew before ``renew`` is awaited, in case the work blocks the loop immediately."""
        if self._renewals is None:
            self._renewals = self._submit(self._renew_while_the_work_answers)

    async def renew(self) -> LossReason:
        """Renew until leadership is lost, or until the calling loop has not responded for the renew deadline."""
        self.begin()
        renewals, self._renewals = self._renewals, None
        assert renewals is not None
        return await asyncio.wrap_future(renewals)

    async def give_up(self, *, release: bool) -> ReleaseOutcome:
        """Stop leading or contending, and release the lock if this candidate may hold it, within the renew deadline."""
        renewals, self._renewals = self._renewals, None
        if renewals is not None:
            renewals.cancel()  # the body ended before ``renew`` was called
        return await self._call(lambda candidacy: candidacy.give_up(release=release))

    def record_event(self, message: str) -> None:
        """Record an event through the thread's lock, which knows the current object."""
        if self._running is not None and self._running.serving is not None:
            self._running.serving.candidacy.record_event(message)

    async def _call(self, make: Callable[[Candidacy], Awaitable[T]]) -> T:
        return await asyncio.wrap_future(self._submit(make))

    def _submit(self, make: Callable[[Candidacy], Awaitable[T]]) -> concurrent.futures.Future[T]:
        serving = self._running.serving if self._running is not None else None
        if serving is None:
            raise RuntimeError("the election thread is not running: a bug in deltaloop")

        async def in_turn() -> T:
            async with serving.turn:
                return await make(serving.candidacy)

        return asyncio.run_coroutine_threadsafe(in_turn(), serving.loop)

    # On the thread

    def _main(self, running: _Running) -> None:
        try:
            asyncio.run(self._serve(running))
        except BaseException as error:  # noqa: BLE001 - ``open`` raises it
            if not running.ready.done():
                running.ready.set_exception(error)
            else:
                _log.exception("election thread failed", extra={"elector": self._name})
        finally:
            running.stopped.set_result(None)

    async def _serve(self, running: _Running) -> None:
        async with self._move() as lock:
            candidacy = self._make(
                lock,
                on_new_leader=lambda identity: self._hop(lambda: self._on_new_leader(identity)),
                on_slow_path=lambda: self._hop(self._on_slow_path),
            )
            serving = _Serving(candidacy, asyncio.get_running_loop(), asyncio.Event(), asyncio.Lock())
            running.serving = serving
            if not running.ready.set_running_or_notify_cancel():
                return
            running.ready.set_result(None)
            await serving.stop.wait()
            async with serving.turn:
                await candidacy.close()

    async def _renew_while_the_work_answers(self, candidacy: Candidacy) -> LossReason:
        renewals = asyncio.create_task(candidacy.renew())
        heartbeat = asyncio.create_task(self._wait_for_silence())
        tasks = {renewals, heartbeat}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if renewals.done():
                return renewals.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        because = self.election.lose(LossReason.WEDGED, self._clock())
        candidacy.exit_timer.start()
        if because is LossReason.WEDGED:
            self._name_the_wedged(heartbeat.result())
        return because

    async def _wait_for_silence(self) -> Silent:
        timing = self.election.timing
        heartbeat = Heartbeat(self._clock(), interval=timing.retry_period, deadline=timing.renew_deadline)
        loop = asyncio.get_running_loop()
        answered = asyncio.Event()

        def take() -> None:
            heartbeat.answered(self._clock())
            answered.set()

        def answer() -> None:
            with contextlib.suppress(RuntimeError):  # the thread has ended in the meantime
                loop.call_soon_threadsafe(take)

        while True:
            effect = heartbeat.ask(self._clock())
            match effect:
                case Silent():
                    return effect
                case Beat():
                    self._hop(answer)
                case Wait(until):
                    answered.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(max(0.0, until - self._clock())):
                            await answered.wait()

    def _name_the_wedged(self, silent: Silent) -> None:
        _log.error(
            "event loop of the leader does not respond, so its lease is no longer renewed",
            extra={
                "elector": self._name,
                "identity": self.election.identity,
                "silent_for": round(silent.seconds, 3),
                "stack": thread_frames(self._work_thread) or "the thread has ended",
            },
        )

    def _hop(self, callback: Callable[[], object]) -> None:
        assert self._work_loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._work_loop.call_soon_threadsafe(callback)
