"""The plain work queue on an event loop.

Threads: a lock guards the core, so that every method but the awaiting ones may be called from any thread, also before a
loop runs. An add takes effect before it returns. Adds of one thread keep their order; those of several threads have the
order in which they got the lock. Workers are woken in the loop's own thread: at once for calls from there, in the
loop's next round (``call_soon_threadsafe``) for others.

The loop: a queue made inside a running loop belongs to that one, others to the loop of the first awaiting call; adds
and their order are kept, and delays count from when they were asked for. When its loop is closed, a queue may be used
on another one.

Cancellation: an item leaves the line in the step in which ``get`` returns, with no ``await`` in between. A ``get`` that
is cancelled before that leaves everything as it was, and wakes the next worker if it had been woken itself. Give
``get`` its ``timeout`` instead of wrapping it in ``asyncio.wait_for``: on Python 3.11 that may drop a result.

Source: client-go util/workqueue/queue.go.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from deltaloop._internal.fork_safety import Torn, fork_safe
from deltaloop._internal.loop_clock import clock_of
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.core.facts import FINISHED, SUCCEEDED, AddOutcome, Ending, Finished, RunOutcome
from deltaloop.workqueue.core.queue import QueueCore, QueueStatistics, Run
from deltaloop.workqueue.errors import QueueShutDownError
from deltaloop.workqueue.metrics import GuardedQueueMetrics, QueueMetrics
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order
from deltaloop.workqueue.waiting_line import WaitingLine
from deltaloop.workqueue.work import Work

K = TypeVar("K", bound=Hashable)

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")

_QUEUED: Final = AddOutcome.QUEUED
_GETS_WITHOUT_WAITING: Final = 32
"""After so many items in a row that were there already, ``get`` lets the rest of the program run once."""


@final
class RunningItem(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that a worker has.

    Attributes:
        item: The item, usually the key of an object.
        seconds: How long the run has lasted.
        attempts: The number of this try; 1 for the first.
        triggers: The triggers of the run.
    """

    item: K
    seconds: float
    attempts: int
    triggers: tuple[object, ...]


class WorkQueue(Generic[K]):
    """Items that need work, each once, and never with two workers at the same time."""

    def __init__(
        self, *, name: str = "", metrics: QueueMetrics | None = None, options: QueueOptions | None = None
    ) -> None:
        """Make an empty queue.

        Args:
            name: For logs, metrics and ``repr``.
            metrics: Hooks of this queue; None for none.
            options: Order, bounds and periods; None for the defaults.
        """
        self._name = name
        self._options = options or QueueOptions()
        self._metrics = None if metrics is None else GuardedQueueMetrics(metrics, queue=name)
        # Re-entrant: a destructor or a signal handler may add an item while this very thread has the lock.
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock: Callable[[], float] = time.monotonic
        self._clock_ahead = 0.0
        self._getters = WaitingLine()
        self._drainers = WaitingLine()
        self._serving_soon = False
        self._unwaited = 0
        self._metrics_timer: asyncio.TimerHandle | None = None
        self._errors = ErrorSummaries()
        try:
            self._loop = get_running_loop()
        except RuntimeError:
            pass
        else:
            self._clock = clock_of(self._loop)
        self._core = self._new_core()

    def _new_core(self) -> QueueCore[K]:
        return QueueCore(
            max_triggers=self._options.max_triggers,
            observed=self._metrics is not None,
            order=new_order(self._options, queue=self._name),
            merge_triggers=guarded_merge(self._options, queue=self._name),
        )

    def _in_child(self, held: bool) -> None:
        """Leave the parent's loop behind, after a fork; what another thread was changing then cannot be used."""
        self._loop = None
        self._getters, self._drainers = WaitingLine(), WaitingLine()
        self._serving_soon = False
        self._metrics_timer = None
        if held:
            self._tear(Torn(f"the queue {self._name!r}"))

    def _tear(self, torn: Any) -> None:
        """Put what raises in the place of the core."""
        self._core = torn

    # -- any thread

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._name

    def add(self, item: K, *, trigger: object | None = None, priority: int = 0) -> None:
        """Mark ``item`` as needing work.

        Any thread. An item that waits already is not added twice, only its triggers grow. One that is being processed
        runs again when that is done. After a shutdown the call does nothing.

        Args:
            item: What to work on; equal items are one.
            trigger: Why the item is to run; handed to the worker as ``work.triggers``.
            priority: Higher is more urgent, if the queue's options say what priorities mean; the highest of several
                adds counts, and retries keep it.

        Source: client-go util/workqueue/queue.go ``Add``.
        """
        with self._lock:
            core = self._core
            now = self._clock() + self._clock_ahead if core.dated else 0.0
            outcome = core.add(item, now, trigger=trigger, priority=priority)
        if self._metrics is not None:
            self._changed()
        elif outcome is _QUEUED and self._getters.asleep:
            self._grew()

    def done(self, item: K) -> None:
        """Say that the work on ``item`` has ended, well or not; once for each ``get``.

        ``async with work`` does it.

        Raises:
            ValueError: If no worker has it.
        """
        with self._lock:
            if self._core.done_at_once(item):
                return
            again, ends_are_told = self._core.done(item, self._now()), self._core.ends_are_told
        if ends_are_told:
            self._changed()
        elif again and self._getters.asleep:
            self._grew()

    def shut_down(self) -> None:
        """Take no more items.

        Workers still get what is in line, then ``get`` raises and ``async for`` ends. A drain that somebody waits for
        ends at once. Calling it again does no harm. Any thread.
        """
        self._shut_down(drain=False)

    def _shut_down(self, *, drain: bool) -> None:
        with self._lock:
            was_shutting_down = self._core.shutting_down
            self._core.shut_down(drain=drain)
            left = len(self._core)
        if not was_shutting_down:
            logger.info("work queue shuts down", extra={"queue": self._name, "queued": left, "drain": drain})
        self._changed()

    @property
    def shutting_down(self) -> bool:
        """Whether the queue takes no more items."""
        return self._core.shutting_down

    def __len__(self) -> int:
        """Return the number of items that a worker could take now."""
        return len(self._core)

    def processing(self) -> tuple[RunningItem[K], ...]:
        """Return what workers have, the longest running first.

        Any thread. An item that stays here for ever was taken by a worker that never ended its run.
        """
        with self._lock:
            now = self._now()
            return tuple(
                RunningItem(
                    item=run.item,
                    seconds=max(0.0, now - run.started_at),
                    attempts=run.failures + 1,
                    triggers=run.triggers.kept,
                )
                for run in self._core.runs()
            )

    def statistics(self) -> QueueStatistics:
        """Return the state as numbers, all of one moment.

        Any thread.
        """
        with self._lock:
            return self._core.statistics(self._now())

    def __repr__(self) -> str:
        shown = self.statistics()
        state = f"{shown.queued} queued, {shown.processing} processing, {shown.delayed} delayed"
        return f"<{type(self).__name__} {self._name!r}: {state}{', shutting down' if shown.shutting_down else ''}>"

    # -- the loop

    async def get(self, timeout: float | None = None) -> K:
        """Wait for the next item and take it; the caller owes a ``done``.

        Args:
            timeout: Longest wait in seconds; None waits without end.

        Raises:
            TimeoutError: If none came in time.
            QueueShutDownError: If the queue is shut down and empty.
            RuntimeError: If the queue belongs to another event loop that is not closed.
        """
        run = self._take_at_once()
        return (await self._take(timeout) if run is None else run).item

    async def get_work(self, timeout: float | None = None) -> Work[K]:
        """Wait for the next item and take it, with its triggers and as a context manager; otherwise as ``get``.

        ``timeout`` is in seconds; None waits for ever.
        """
        run = self._take_at_once()
        if run is None:
            run = await self._take(timeout)
        log = run.triggers
        return Work(run.item, log.kept, log.dropped, run.failures + 1, run, self._finish, self._core.can_delay)

    def __aiter__(self) -> AsyncIterator[Work[K]]:
        """Iterate over work until the queue is shut down and empty. Any number of workers may do so."""
        return _Works(self)

    async def shut_down_with_drain(self) -> None:
        """Take no more items, and wait until everything in line is done, too, not only what workers have now.

        Ends early when ``shut_down`` is called. Without workers it waits for ever. If it is cancelled, the queue stays
        shut down, and workers go on.

        Source: client-go util/workqueue/queue.go ``ShutDownWithDrain``.
        """
        self._bind()
        self._shut_down(drain=True)
        while not self._core.drain_over:
            await self._drainers.turn(self._drainers.join(get_running_loop()))

    def _take_at_once(self) -> Run[K] | None:
        """Take an item without a wait, if there is one and it is not time to let others have their turn."""
        if get_running_loop() is not self._loop:
            self._bind()
        unwaited = self._unwaited + 1
        if unwaited >= _GETS_WITHOUT_WAITING:
            return None
        self._unwaited = unwaited
        line = self._getters
        with self._lock:
            core = self._core
            if line.asleep or line.woken or (run := core.get(self._clock() + self._clock_ahead)) is None:
                run = self._next()
        if run is not None and self._metrics is not None:
            self._tell_metrics()
            self._watch_runs()
        return run

    async def _take(self, timeout: float | None) -> Run[K]:
        if self._unwaited + 1 >= _GETS_WITHOUT_WAITING:
            await asyncio.sleep(0)
        self._unwaited = 0
        if timeout is None:
            return await self._wait_for_run()
        async with asyncio.timeout(timeout):
            return await self._wait_for_run()

    async def _wait_for_run(self) -> Run[K]:
        line, loop = self._getters, get_running_loop()
        with self._lock:  # an add of another thread comes before the look, or wakes a task that is in line
            run = self._next()
            future = None if run is not None else line.join(loop)
        while future is not None:
            try:
                await line.turn(future)
                with self._lock:
                    run = self._next(has_claim=True)
                    future = None if run is not None else line.join(loop, first=True)
            finally:
                if line.asleep or self._metrics is not None:
                    self._serve()
        assert run is not None
        if self._metrics is not None:
            self._tell_metrics()
            self._watch_runs()
        return run

    def _next(self, *, has_claim: bool = False) -> Run[K] | None:
        """Take an item, unless those that came before have a claim on all there are; under the lock."""
        core, line, run = self._core, self._getters, None
        if has_claim or (not line.asleep and (not line.woken or len(core) > line.woken)):
            run = core.get(self._clock() + self._clock_ahead)
        if run is None and core.ended:
            raise QueueShutDownError(self._name)
        return run

    def _finish(self, run: Run[K], ending: Ending) -> Finished:
        try:
            with self._lock:
                core = self._core
                now = self._clock() + self._clock_ahead if core.dated or ending is not SUCCEEDED else 0.0
                finished = core.finish(run, now, ending)
                ends_are_told = core.ends_are_told
        except BaseException:  # what a limiter raised while it took a token back: the run has ended all the same
            self._changed()
            raise
        if ends_are_told or finished is not FINISHED:
            self._changed()
        elif run.again and self._getters.asleep:
            self._grew()
        if finished is not FINISHED or logger.isEnabledFor(logging.DEBUG):
            self._log_end(run, finished)
        return finished

    def _log_end(self, run: Run[K], finished: Finished) -> None:
        extra = {
            "key": run.item,
            "queue": self._name,
            "attempts": run.failures + 1,
            "triggers": run.triggers.kept,
            "triggers_dropped": run.triggers.dropped,
            "delay": round(finished.delay, 6),  # a difference of two instants
        }
        if finished.fate is RunOutcome.RETRIED:
            self._log(logging.WARNING, "work failed and will be tried again", extra, finished.error)
        elif finished.fate is RunOutcome.PARKED:
            self._log(logging.ERROR, "work failed for good and is parked", extra, finished.error)
        elif finished.fate is RunOutcome.GIVEN_UP:
            level = logging.INFO if finished.error is None else logging.WARNING
            self._log(level, "work given up: the queue is shut down", extra, finished.error)
        else:
            logger.debug("work ended", extra={**extra, "fate": finished.fate.value})
        if finished.limiter_error is not None:
            self._log(logging.ERROR, "a rate limiter failed", extra, finished.limiter_error)

    def _log(self, level: int, message: str, extra: Mapping[str, object], error: BaseException | None) -> None:
        """Log what became of an item, with the error in one line; its traceback is not written at every try."""
        if error is None:
            logger.log(level, message, extra=extra)
            return
        self._errors.log(logger, level, message, error, now=self._now(), extra=extra)

    # -- between threads and the loop

    def _now(self) -> float:
        return self._clock() + self._clock_ahead

    def _bind(self) -> None:
        """Belong to the running loop from now on; the queue's own time goes on without a jump."""
        loop = get_running_loop()
        if self._loop is loop:
            return
        with self._lock:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError(f"{self!r} belongs to another event loop; make one queue for each loop")
            now = self._now()
            self._loop = loop
            self._clock = clock_of(loop)
            self._clock_ahead = now - loop.time()
            self._getters, self._drainers = WaitingLine(), WaitingLine()
            self._serving_soon = False
            self._metrics_timer = None
        self._bound()

    def _bound(self) -> None:
        """Begin on a new loop: hook for what a queue keeps on it."""

    def _grew(self) -> None:
        """Wake a worker: an item has joined the line and nothing else follows from that."""
        try:
            here = get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._getters.wake(len(self._core))
        else:
            self._changed()

    def _changed(self) -> None:
        """Bring what waits in line with the core, after a call from any thread."""
        self._tell_metrics()
        loop = self._loop
        if loop is None:
            return  # no worker has ever waited
        try:
            here = get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self._serve()
            return
        with self._lock:
            if self._serving_soon:
                return
            self._serving_soon = True
        with suppress(RuntimeError):  # the loop is closed and has no waiters; the next loop finds the core as it is
            loop.call_soon_threadsafe(self._serve)

    def _serve(self) -> None:
        """Wake those whose turn it is. On the loop."""
        with self._lock:
            self._serving_soon = False
            ready, ended, drain_over = len(self._core), self._core.ended, self._core.drain_over
        if ended:
            self._getters.wake_all()
        else:
            self._getters.wake(ready)
        if drain_over:
            self._drainers.wake_all()
        self._watch_runs()

    # -- metrics

    def _tell_metrics(self) -> None:
        if self._metrics is None:
            return
        with self._lock:
            facts = self._core.take_facts()
        self._metrics.tell(facts)

    def _watch_runs(self) -> None:
        """Report on present runs now and then, as long as there are any. On the loop."""
        if self._metrics is None or self._metrics_timer is not None or not self._core.processing or self._loop is None:
            return
        self._metrics_timer = self._loop.call_later(self._options.metrics_period, self._report_runs)

    def _report_runs(self) -> None:
        self._metrics_timer = None
        with self._lock:
            unfinished, longest = self._core.unfinished(self._now())
        if self._metrics is not None:
            self._metrics.running(unfinished, longest)
        self._watch_runs()


@final
class _Works(Generic[K]):
    """The work of a queue, one after the other."""

    __slots__ = ("_queue",)

    def __init__(self, queue: WorkQueue[K]) -> None:
        self._queue = queue

    def __aiter__(self) -> _Works[K]:
        return self

    async def __anext__(self) -> Work[K]:
        try:
            return await self._queue.get_work()
        except QueueShutDownError:
            raise StopAsyncIteration from None
