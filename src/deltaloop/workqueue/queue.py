"""Work queue on an event loop.

**Threads.** All methods that are not async are thread-safe. Workers are woken immediately by calls from the loop's
thread, otherwise with ``call_soon_threadsafe``.

**Event loop.** A queue belongs to the loop in which it is created, otherwise to the loop of the first awaiting call.

**Cancellation.** A ``get`` that is canceled does not change the queue. Use its ``timeout`` instead of
``asyncio.wait_for``, which can drop a result on Python 3.11.

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
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from deltaloop._internal.fork_safety import Torn, fork_safe
from deltaloop._internal.loop_clock import clock_of
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.core.facts import FINISHED, SUCCEEDED, Ending, Finished
from deltaloop.workqueue.core.queue import QueueCore, QueueStatistics, Run
from deltaloop.workqueue.errors import QueueShutDownError
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order
from deltaloop.workqueue.waiting_line import WaitingLine

if TYPE_CHECKING:
    from deltaloop.workqueue.metrics import GuardedQueueMetrics, QueueMetrics
    from deltaloop.workqueue.shown_items import RunningItem
    from deltaloop.workqueue.waiting_line import WaitingTasks
    from deltaloop.workqueue.work import Work

K = TypeVar("K", bound=Hashable)

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")

_GETS_WITHOUT_WAITING: Final = 32
"""Number of consecutive gets without waiting after which ``get`` lets other tasks run."""


class WorkQueue(Generic[K]):
    """Queue in which each item occurs once, and is never processed by two workers at the same time."""

    def __init__(
        self, *, name: str = "", metrics: QueueMetrics | None = None, options: QueueOptions | None = None
    ) -> None:
        """Create an empty queue.

        Args:
            name: Name for logs, metrics and ``repr``.
            metrics: Metrics hooks of this queue, or None.
            options: Order, limits and periods, or None for the defaults.
        """
        self._name = name
        self._options = options or QueueOptions()
        self._metrics: GuardedQueueMetrics | None = None
        if metrics is not None:
            from deltaloop.workqueue.metrics import GuardedQueueMetrics

            self._metrics = GuardedQueueMetrics(metrics, queue=name)
        # Reentrant, because a destructor or signal handler may add an item while this thread holds the lock.
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock: Callable[[], float] = time.monotonic
        self._clock_ahead = 0.0
        self._line: WaitingTasks
        self._line = self._getters = WaitingLine()
        self._drainers = WaitingLine()
        self._serving_soon = False
        self._unwaited = 0
        self._metrics_timer: asyncio.TimerHandle | None = None
        self._errors = ErrorSummaries()
        self._about: Callable[[Any], Mapping[str, object]] | None = None  # more fields of log records about an item
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
        """Detach from the parent's loop after a fork, and block the queue if another thread held its lock."""
        self._loop = None
        self._line = self._getters = WaitingLine()
        self._drainers = WaitingLine()
        self._serving_soon = False
        self._metrics_timer = None
        if held:
            self._tear(Torn(f"the queue {self._name!r}"))

    def _tear(self, torn: Any) -> None:
        """Replace the core with an object that raises."""
        self._core = torn

    # Thread-safe methods

    @property
    def name(self) -> str:
        """Name of the queue."""
        return self._name

    def add(self, item: K, *, trigger: object | None = None, priority: int = 0) -> None:
        """Record that an item needs a run.

        Thread-safe. If the item is already queued, only its triggers are merged. If it is being processed, it runs
        again afterwards. After a shutdown the call has no effect.

        Args:
            item: Item to process. Equal items are the same.
            trigger: Cause of the run, available to the worker in ``work.triggers``.
            priority: Priority, if the queue's options enable priorities. Higher is more urgent. The highest of several
                adds counts, and retries keep it.

        Source: client-go util/workqueue/queue.go ``Add``.
        """
        self._lock.acquire()  # a with statement costs 80 ns more, a sixth of an add
        try:
            core = self._core
            now = self._clock() + self._clock_ahead if core.dated else 0.0
            outcome = core.add(item, now, trigger, priority)
        finally:
            self._lock.release()
        if self._metrics is not None:
            self._changed()
        elif outcome == "queued" and self._line.asleep:
            self._grew()

    def done(self, item: K) -> None:
        """End the processing of an item, successful or not.

        Call it once for each ``get``.

        ``async with work`` does this for you.

        Raises:
            ValueError: If the item is not being processed.
        """
        self._lock.acquire()  # as in add
        try:
            if self._core.done_at_once(item):
                return
            again, ends_are_told = self._core.done(item, self._now()), self._core.ends_are_told
        finally:
            self._lock.release()
        if ends_are_told:
            self._changed()
        elif again and self._line.asleep:
            self._grew()

    def shut_down(self) -> None:
        """Stop accepting items.

        Workers still get the queued items, then ``get`` raises and ``async for`` ends. A pending drain ends
        immediately. Thread-safe; you can call it repeatedly.
        """
        self._shut_down(drain=False)

    def _shut_down(self, *, drain: bool) -> None:
        with self._lock:
            was_shutting_down = self._core.shutting_down
            self._core.shut_down(drain=drain)
            left = len(self._core)
        if not was_shutting_down:
            logger.info("shutting down work queue", extra={"queue": self._name, "queued": left, "drain": drain})
        self._changed()

    @property
    def shutting_down(self) -> bool:
        """Whether the queue rejects new items."""
        return self._core.shutting_down

    def __len__(self) -> int:
        return len(self._core)

    def processing(self) -> tuple[RunningItem[K], ...]:
        """Return the items that workers are processing, longest first.

        Thread-safe. An item that stays here permanently was taken by a worker that never ended its run.
        """
        from deltaloop.workqueue.shown_items import show_run  # for snapshots

        with self._lock:
            now = self._now()
            return tuple(show_run(run, now) for run in self._core.runs())

    def statistics(self) -> QueueStatistics:
        """Return a consistent snapshot of the statistics.

        Thread-safe.
        """
        with self._lock:
            return self._core.statistics(self._now())

    def __repr__(self) -> str:
        shown = self.statistics()
        state = f"{shown.queued} queued, {shown.processing} processing, {shown.delayed} delayed"
        return f"<{type(self).__name__} {self._name!r}: {state}{', shutting down' if shown.shutting_down else ''}>"

    # Methods for the event loop

    async def get(self, timeout: float | None = None) -> K:
        """Wait for the next item and take it.

        Call ``done`` afterwards.

        Args:
            timeout: Longest wait in seconds, or None for no limit.

        Raises:
            TimeoutError: If the timeout expires.
            QueueShutDownError: If the queue is shut down and empty.
            RuntimeError: If the queue belongs to another event loop that is not closed.
        """
        run = self._take_at_once()
        return (await self._take(timeout) if run is None else run).item

    async def get_work(self, timeout: float | None = None) -> Work[K]:
        """Wait for the next item and take it as a context manager with its triggers, otherwise like ``get``.

        ``timeout`` is in seconds; None means no limit.
        """
        run = self._take_at_once()
        if run is None:
            run = await self._take(timeout)
        from deltaloop.workqueue.work import Work  # for direct users of the queue

        log = run.triggers
        return Work(run.item, log.kept, log.dropped, run.failures + 1, run, self._finish, self._core.can_delay)

    def __aiter__(self) -> AsyncIterator[Work[K]]:
        """Iterate over work until the queue is shut down and empty. Several workers can iterate at the same time."""
        return _Works(self)

    async def shut_down_with_drain(self) -> None:
        """Stop accepting items, and wait until all queued and running items are done.

        The wait ends early if ``shut_down`` is called. Without workers it never ends. If it is canceled, the queue
        stays shut down and workers continue.

        Source: client-go util/workqueue/queue.go ``ShutDownWithDrain``.
        """
        self._bind()
        self._shut_down(drain=True)
        while not self._core.drain_over:
            await self._drainers.turn(self._drainers.join(get_running_loop()))

    def _take_at_once(self) -> Run[K] | None:
        """Take an item without waiting, unless the queue is empty or other tasks must run first."""
        if get_running_loop() is not self._loop:
            self._bind()
        unwaited = self._unwaited + 1
        if unwaited >= _GETS_WITHOUT_WAITING:
            return None
        self._unwaited = unwaited
        line = self._getters
        self._lock.acquire()  # as in add
        try:
            core = self._core
            if line.asleep or line.woken or (run := core.get(self._clock() + self._clock_ahead)) is None:
                run = self._next()
        finally:
            self._lock.release()
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
        with self._lock:  # an add of another thread either precedes this check or wakes a task in the line
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
        """Take an item that is not reserved for earlier waiters. Call it under the lock."""
        core, line, run = self._core, self._getters, None
        if has_claim or (not line.asleep and (not line.woken or len(core) > line.woken)):
            run = core.get(self._clock() + self._clock_ahead)
        if run is None and core.ended:
            raise QueueShutDownError(self._name)
        return run

    def _serve_slots(self, slots: WaitingTasks | None) -> None:
        """Wake ``slots`` instead of tasks in ``get``, until None is given."""
        self._bind()
        self._line = self._getters if slots is None else slots
        self._serve()

    def _take_claimed(self) -> Run[K] | None:
        self._lock.acquire()  # as in add
        try:
            run = self._core.get(self._clock() + self._clock_ahead)
        finally:
            self._lock.release()
        if self._metrics is not None:
            self._tell_metrics()
            self._watch_runs()
        return run

    def _finish(self, run: Run[K], ending: Ending) -> Finished:
        try:
            self._lock.acquire()  # as in add
            try:
                core = self._core
                now = self._clock() + self._clock_ahead if core.dated or ending is not SUCCEEDED else 0.0
                finished = core.finish(run, now, ending)
                ends_are_told = core.ends_are_told
            finally:
                self._lock.release()
        except BaseException:  # the limiter's refund raised, but the run has ended
            self._changed()
            raise
        if ends_are_told or finished is not FINISHED:
            self._changed()
        elif run.again and self._line.asleep:
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
            "delay": round(finished.delay, 6),  # remove rounding errors
        }
        if finished.fate == "retried":
            self._log(logging.WARNING, "work failed and will be tried again", extra, finished.error)
        elif finished.fate == "parked":
            self._log(logging.ERROR, "work failed for good and is parked", extra, finished.error)
        elif finished.fate == "given up":
            level = logging.INFO if finished.error is None else logging.WARNING
            self._log(level, "work given up: the queue is shut down", extra, finished.error)
        else:
            logger.debug("work ended", extra={**extra, "fate": finished.fate})
        if finished.limiter_error is not None:
            self._log(logging.ERROR, "a rate limiter failed", extra, finished.limiter_error)

    def _log(self, level: int, message: str, extra: Mapping[str, object], error: BaseException | None) -> None:
        """Log the end of a run with a one-line error. The traceback is not repeated for each attempt."""
        if self._about is not None:
            extra = {**extra, **self._about(extra["key"])}
        if error is None:
            logger.log(level, message, extra=extra)
            return
        self._errors.log(logger, level, message, error, now=self._now(), extra=extra)

    # Between threads and the event loop

    def _now(self) -> float:
        return self._clock() + self._clock_ahead

    def _bind(self) -> None:
        """Bind the queue to the running loop. The queue's own clock continues without a jump."""
        loop = get_running_loop()
        if self._loop is loop:
            return
        with self._lock:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError(f"{self!r} belongs to another event loop. Create one queue for each loop.")
            now = self._now()
            self._loop = loop
            self._clock = clock_of(loop)
            self._clock_ahead = now - loop.time()
            self._line = self._getters = WaitingLine()
            self._drainers = WaitingLine()
            self._serving_soon = False
            self._metrics_timer = None
        self._bound()

    def _bound(self) -> None:
        """Start on a new loop. Subclasses override this."""

    def _grew(self) -> None:
        """Wake a worker after an item joined the line."""
        try:
            here = get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._line.wake(len(self._core))
        else:
            self._changed()

    def _changed(self) -> None:
        """Synchronize waiters and metrics with the core, after a call from any thread."""
        self._tell_metrics()
        loop = self._loop
        if loop is None:
            return  # no worker has waited yet
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
        with suppress(RuntimeError):  # the loop is closed and has no waiters; the next loop reads the core's state
            loop.call_soon_threadsafe(self._serve)

    def _serve(self) -> None:
        """Wake the tasks that can continue, on the event loop."""
        with self._lock:
            self._serving_soon = False
            ready, ended, drain_over = len(self._core), self._core.ended, self._core.drain_over
        if ended:
            self._line.wake_all()
        else:
            self._line.wake(ready)
        if drain_over:
            self._drainers.wake_all()
        self._watch_runs()

    # Metrics

    def _tell_metrics(self) -> None:
        if self._metrics is None:
            return
        with self._lock:
            facts = self._core.take_facts()
        self._metrics.tell(facts)

    def _watch_runs(self) -> None:
        """Report the waiting items and current runs periodically while there are any, on the event loop."""
        if self._metrics is None or self._metrics_timer is not None or self._loop is None:
            return
        with self._lock:
            is_idle = self._core.is_idle()
        if not is_idle:
            self._metrics_timer = self._loop.call_later(self._options.metrics_period, self._report_runs)

    def _report_runs(self) -> None:
        self._metrics_timer = None
        with self._lock:
            now = self._now()
            (unfinished, longest), oldest = self._core.unfinished(now), self._core.oldest_age(now)
        if self._metrics is not None:
            self._metrics.present(unfinished, longest, oldest)
        self._watch_runs()


@final
class _Works(Generic[K]):
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
