"""Keeps a lease alive on a thread, event loop and connection of its own, while the work's loop shows signs of life.

The work of a leader shares its event loop with everything else, and a step that takes long would cost the lease: a
renewal that cannot be sent in time is as good as a failed one. So the election runs here (core/election.py), and the
work's loop only waits. But a thread that renews for work that has stopped for good would keep all candidates from
leading. So the loop is asked for a sign of life (core/heartbeat.py); when it does not answer within the renew deadline,
the leader is named in the log with the place where it hangs, its guard is closed, and the lease is left to expire: it
is not released, because the work may be anywhere.

One thread lives from the beginning of contending to the end of the term. Every call comes from the work's loop and runs
here to its end before the next one begins, cancelled ones included.
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
from deltaloop.leaderelection.core.effects import BecameLeader, LossReason, ReleaseOutcome
from deltaloop.leaderelection.core.election import Election
from deltaloop.leaderelection.core.heartbeat import Beat, Heartbeat, Silent
from deltaloop.leaderelection.lock import Lock

_log: Final = logging.getLogger("deltaloop.leaderelection")

T = TypeVar("T")


class MakeCandidacy(Protocol):
    """Makes the candidacy that runs on the thread."""

    def __call__(
        self, lock: Lock, *, on_new_leader: Callable[[str], object], on_slow_path: Callable[[], object]
    ) -> Candidacy:
        """Use this lock and these callbacks."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Serving:
    """What a thread has once it can take calls."""

    candidacy: Candidacy
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    turn: asyncio.Lock


@final
class _Running:
    """One thread, from its start to its end."""

    def __init__(self, main: Callable[[_Running], None], name: str) -> None:
        self.thread = threading.Thread(target=main, args=(self,), name=name, daemon=True)
        self.serving: _Serving | None = None
        self.ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.stopped: concurrent.futures.Future[None] = concurrent.futures.Future()


@final
class RenewalThread:
    """A candidate whose election runs on a thread of its own; called from the work's loop."""

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
        """Make no thread yet.

        Args:
            election: The decisions; changed on the thread only.
            move: Gives the lock for the thread's loop, with connections of its own.
            make: Makes the candidacy; called on the thread's event loop.
            clock: Seconds; runs during suspend.
            on_new_leader: Called on the work's event loop with the identity of the new leader.
            on_slow_path: Called on the work's event loop for each slow path (``leader_election_slowpath_total``).
            name: The elector's, for the thread and the log.
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

    # On the work's loop

    async def open(self) -> None:
        """Start the thread and wait until its lock can be used; cancellation leaves a thread that ``close`` ends."""
        await self.close()
        self._work_loop = asyncio.get_running_loop()
        self._work_thread = threading.get_ident()
        running = self._running = _Running(self._main, f"deltaloop-election-{self._name}")
        running.thread.start()
        await asyncio.wrap_future(running.ready)

    async def close(self) -> None:
        """End the thread and wait for its end; after a cancellation it ends by itself."""
        running = self._running
        if running is None:
            return
        # Cancelled before it was ready, it ends by itself; later, it has what it serves with already.
        if not running.ready.cancel() and running.serving is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                running.serving.loop.call_soon_threadsafe(running.serving.stop.set)
        await asyncio.shield(asyncio.wrap_future(running.stopped))
        running.thread.join()  # it has nothing left to do
        self._running = None

    async def contend(self) -> BecameLeader:
        """Wait until the lock is won. Cancellation leaves the election as it is; ``give_up`` comes next."""
        return await self._call(lambda candidacy: candidacy.contend())

    def begin(self) -> None:
        """Begin to renew before ``renew`` waits for the end, so that work that blocks at once is renewed for, too."""
        if self._renewals is None:
            self._renewals = self._submit(self._renew_while_the_work_answers)

    async def renew(self) -> LossReason:
        """Renew until leadership ends by itself, or the calling loop does not answer for the renew deadline."""
        self.begin()
        renewals, self._renewals = self._renewals, None
        assert renewals is not None
        return await asyncio.wrap_future(renewals)

    async def give_up(self, *, release: bool) -> ReleaseOutcome:
        """Stop being a leader or candidate, and release the lock if it may be held; at most the renew deadline."""
        renewals, self._renewals = self._renewals, None
        if renewals is not None:
            renewals.cancel()  # the body ended before anybody waited for them
        return await self._call(lambda candidacy: candidacy.give_up(release=release))

    def record_event(self, message: str) -> None:
        """Tell the world through the lock of the thread, which knows the object that it holds."""
        if self._running is not None and self._running.serving is not None:
            self._running.serving.candidacy.record_event(message)

    async def _call(self, make: Callable[[Candidacy], Awaitable[T]]) -> T:
        return await asyncio.wrap_future(self._submit(make))

    def _submit(self, make: Callable[[Candidacy], Awaitable[T]]) -> concurrent.futures.Future[T]:
        serving = self._running.serving if self._running is not None else None
        if serving is None:
            raise RuntimeError("the thread of the election does not run; a bug in deltaloop")

        async def in_turn() -> T:
            async with serving.turn:
                return await make(serving.candidacy)

        return asyncio.run_coroutine_threadsafe(in_turn(), serving.loop)

    # On the thread

    def _main(self, running: _Running) -> None:
        try:
            asyncio.run(self._serve(running))
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits for the thread
            if not running.ready.done():
                running.ready.set_exception(error)
            else:
                _log.exception("the thread of an election has ended by an error", extra={"elector": self._name})
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
        candidacy.last_resort.start()
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
            with contextlib.suppress(RuntimeError):  # the thread has ended meanwhile
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
            "the leader's event loop does not answer; its lease is not renewed any more",
            extra={
                "elector": self._name,
                "identity": self.election.identity,
                "silent_for": round(silent.seconds, 3),
                "stack": thread_frames(self._work_thread) or "the thread has ended",
            },
        )

    def _hop(self, callback: Callable[[], object]) -> None:
        assert self._work_loop is not None
        with contextlib.suppress(RuntimeError):  # a loop that is closed answers no more
            self._work_loop.call_soon_threadsafe(callback)
