"""The work queue of one controller and the workers that empty it.

A worker takes a key, runs the reconciler, waits until it has really ended, and does with the key what the table of
outcomes says. It is cancelled when leadership is lost or the program ends; then it tells the reconciler to stop, waits
for its end all the same, and puts the key back in line uncounted.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast, final

from deltaloop._internal.pacing.backoff import jitter
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import InvalidKeyError
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import as_kind
from deltaloop.cache import Lister
from deltaloop.client import AccessCheck, Client
from deltaloop.leaderelection.guard import LeadershipLostError
from deltaloop.runtime.controller import Controller, kind_of, kinds_declared
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.memory import Memories
from deltaloop.runtime.core.outcomes import Action, Ended, KeyDecision, Stopped, TimedOut, decide
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.core.running import AwaitRun, Leave, Running, Runs, Stop, StopReason, Warn
from deltaloop.runtime.core.standby import names_gone_object, surplus
from deltaloop.runtime.errors import ReconcileStoppedError
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.objects.status import Statuses
from deltaloop.runtime.objects.tracking import Tracker
from deltaloop.runtime.reconcile.client import ReconcileClient
from deltaloop.runtime.reconcile.context import Context
from deltaloop.runtime.reconcile.execution import Execution
from deltaloop.runtime.reconcile.finalizing import FinalizedRuns
from deltaloop.runtime.reconcile.metrics import ControllerMetrics, GuardedControllerMetrics
from deltaloop.runtime.reconcile.observing import Observer
from deltaloop.runtime.reconcile.remedies import note_missing_right
from deltaloop.runtime.reconcile.tracing import Tracing, current
from deltaloop.workqueue import RateLimitingQueue, Work
from deltaloop.workqueue.errors import QueueShutDownError, TerminalError, decided

if TYPE_CHECKING:
    from deltaloop.events import ComponentRecorder
    from deltaloop.runtime.objects.children import DeclaredChildren
    from deltaloop.runtime.program.lifespans import Lifespan

_logger: Final = logging.getLogger("deltaloop.runtime")
_SUCCESSES: Final = (Action.FORGET, Action.REQUEUE_AFTER)
_REFUSALS: Final = (ReconcileStoppedError, LeadershipLostError)


@final
class ReconcileLoop:
    """One controller at work; made by a manager, run once for each term of leadership."""

    def __init__(
        self,
        controller: Controller,
        views: Views,
        *,
        attribution: Attribution,
        history: History,
        tracing: Tracing,
        recorder: ComponentRecorder | None,
        metrics: ControllerMetrics | None,
        clock: Callable[[], float],
        random: Callable[[], float] = random.random,
        access: AccessCheck | None = None,
        lifespans: Mapping[Lifespan[Any], Any] | None = None,
    ) -> None:
        """Make the queue; nothing runs yet.

        Args:
            controller: The controller as it was declared.
            views: Caches that reconciles read from.
            attribution: Who wrote what, in the whole program.
            history: The last reconciles of the whole program.
            tracing: Makes a span for each reconcile, where tracing is on.
            recorder: Recorder of Events, as this controller; None for none.
            metrics: Hooks; None for none.
            clock: Seconds of the event loop.
            random: Draws numbers in [0, 1), for jitter.
            access: Asked before each request of a reconcile; None asks nothing.
            lifespans: Values of what lives as long as the program.
        """
        self.controller = controller
        self._declared = tuple([kind_of(kind) for kind in kinds_declared(controller)])
        self.metrics: GuardedControllerMetrics = GuardedControllerMetrics(metrics, controller.name)
        self.queue: RateLimitingQueue[str] = RateLimitingQueue(
            name=controller.name,
            rate_limiter=None if controller.rate_limiter is None else controller.rate_limiter(),
            metrics=None if metrics is None else metrics.queue(controller.name),
            options=controller.queue,
            is_echo=self._is_echo,
        )
        self.runs: Runs = Runs(slots=controller.workers, timeout=controller.timeout)
        self._views = views
        self._statuses = Statuses(as_kind(controller.resource), views)
        self._attribution = attribution
        self._failing: dict[str, tuple[int, float]] = {}
        self._observer = Observer(controller, self.metrics, history=history, tracing=tracing)
        self._recorder = recorder
        self._clock = clock
        self._random = random
        self._access = access
        self._lifespans: Mapping[Lifespan[Any], Any] = {
            declared: value for declared, value in (lifespans or {}).items() if declared is controller.lifespan
        }
        self.memories: Memories = Memories()
        self._pool: ThreadPoolExecutor | None = None
        self._idle: dict[asyncio.Task[None], None] = {}
        self._stopping = False
        self._errors = ErrorSummaries()
        self._at_close: list[Callable[[], object]] = []
        self.own_cache: Lister[Resource] | None = None
        self.children: DeclaredChildren | None = None
        self.finalizing: FinalizedRuns | None = None
        self.tracker: Tracker | None = None
        self._left_behind = False
        self._waiters: dict[asyncio.Future[None], None] = {}
        self.metrics.max_concurrent_reconciles(controller.workers)

    async def run(self, client: Client) -> None:
        """Work until told to stop, or cancelled; then every reconcile has ended, or was left behind.

        Args:
            client: Whom reconciles write through.
        """
        if self.controller.needs_threads and self._pool is None:
            self._pool = ThreadPoolExecutor(self.controller.workers, thread_name_prefix=f"{self.controller.name}-")
        name, workers_wanted = self.controller.name, self.controller.workers
        _logger.info("the workers start", extra={"controller": name, "workers": workers_wanted})
        try:
            async with asyncio.TaskGroup() as workers:
                for number in range(1, workers_wanted + 1):
                    workers.create_task(self._work(client), name=f"worker {number} of {name}")
        finally:
            self.memories.clear()
            if self.tracker is not None:
                await self.tracker.close()
            _logger.info("the workers have stopped", extra={"controller": name})

    async def shed(self) -> None:
        """Take keys of objects that are gone out of line, but for the latest; for a standby, which works on none.

        Ends when workers start. Cancellation leaves every key in line or given up.
        """
        if self.own_cache is None:
            return
        waiting, cache = len(self.queue), self.own_cache
        too_many = surplus(waiting, len(cache))
        for _ in range(waiting if too_many else 0):
            if self._idle or len(self.runs) or not len(self.queue):
                return
            work = await self.queue.get_work()
            if too_many and names_gone_object(work.key, work.triggers, lambda key: cache.find(key) is not None):
                too_many -= 1
                with work:
                    continue  # it is done: there is nothing left to do
            work.put_back()

    def stop_taking(self) -> None:
        """Let workers end instead of taking another key; what runs goes on."""
        self._stopping = True
        for task in self._idle:
            task.cancel()  # the group of workers takes one that was cancelled for one that has ended

    def abandon(self) -> tuple[str, ...]:
        """Wait for no reconcile any longer, and begin none; return the keys of those that run."""
        self.stop_taking()
        left = self.runs.abandon()
        self._left_behind = True
        for waiter in self._waiters:
            _wake(waiter)
        return left

    def last_error(self, key: str) -> str:
        """Return the type of what the last reconcile of a key raised; empty if nothing, or if it is forgotten."""
        return self._observer.last_error(key)

    def object_gone(self, obj: Resource) -> None:
        """Forget an object of the controller's kind that the cache has no more, or has another one in place of."""
        self.memories.gone(obj.key, obj.uid)
        if self.tracker is not None:
            self.tracker.gone(obj.key)

    def ask_after(self, key: str, seconds: float) -> None:
        """Have a key run again once the deadline of its clean-up has passed."""
        trigger = Trigger(source="finalizer", verb="deadline", at=self._clock())
        self.queue.add_after(key, seconds, trigger=trigger)

    def at_close(self, call: Callable[[], object]) -> None:
        """Have something called by ``close``."""
        self._at_close.append(call)

    def close(self) -> None:
        """Give the queue and the threads up, once nothing is to be done any more."""
        for call in self._at_close:
            call()
        self.queue.shut_down()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    # -- workers

    async def _work(self, client: Client) -> None:
        guarded = client if self._access is None else client.with_access_check(self._access)
        while not self._stopping:
            work = await self._take()
            if work is None:
                return
            with work:
                await self._reconcile(work, client, guarded)

    async def _take(self) -> Work[str] | None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._idle[task] = None
        try:
            return await self.queue.get_work()
        except QueueShutDownError:
            return None
        finally:
            del self._idle[task]

    async def _reconcile(self, work: Work[str], client: Client, guarded: Client) -> None:
        wait = self._observer.wait(work.key, now=self._clock())
        if wait > 0:
            work.put_back(wait)
            return
        request, triggers = _request_of(work.key), self._triggers(work)
        await self._observer.look(work.key, triggers=triggers, client=client)
        if self._stopping:
            work.put_back()
            return
        run = self.runs.begin(work.key, self._clock())
        self.metrics.active_workers(len(self.runs))
        try:
            context = self._context(request, work, run, guarded, triggers)
            span = self._observer.begins(context, now=run.started_at)
            steps = None if self.finalizing is None else self.finalizing.run
            if span is None:
                execution = Execution(self.controller, context, self._pool, steps)
            else:
                with current(span):
                    execution = Execution(self.controller, context, self._pool, steps)
        except BaseException:
            self._has_ended(run)  # a slot that nothing runs in would be lost for good
            raise
        cancelled = await self._until_ended(run, execution)
        if execution.future.done():
            self._has_ended(run)
        else:
            execution.future.add_done_callback(lambda _: self._left_one_has_ended(run, execution))
        decision = decide(self._ended(run, execution), declared=self._declared)
        if decision.error is not None:
            note_missing_right(decision.error, self.controller.name)
        now = self._clock()
        news = self._news(work.key, triggers) if self._failing else triggers
        self._observer.ended(context, decision, span, seconds=now - run.started_at, now=now, news=news)
        if self.tracker is not None:
            exists = self.own_cache is not None and self.own_cache.find(work.key) is not None
            self.tracker.ended(work.key, succeeded=decision.action in _SUCCESSES, exists=exists)
        if cancelled is not None:
            raise cancelled
        if self._failing or decision.row.action not in _SUCCESSES:
            self._note_failure(run, decision)
        self._carry_out(work, decision)

    async def _until_ended(self, run: Running, execution: Execution) -> asyncio.CancelledError | None:
        """Wait until the call has ended, or is left behind; return the cancellation of this worker, if one came."""
        cancelled: asyncio.CancelledError | None = None
        now = run.started_at
        while not execution.future.done():
            match self.runs.ask(run, now):
                case Stop(reason):
                    self._tell_to_stop(run, execution, reason)
                case Warn(seconds):
                    self._name(run, "a reconcile does not stop although it was told to", seconds)
                case Leave():
                    break
                case AwaitRun(until):
                    try:
                        await self._wait(execution, until)
                    except asyncio.CancelledError as error:
                        cancelled = error
                        self.runs.interrupt(run)
            now = self._clock()
        return cancelled

    async def _wait(self, execution: Execution, until: float | None) -> None:
        """Wait until a call has ended, or is left behind, or for some time; for every reconcile, so it is spare."""
        if self._left_behind:
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        wake = partial(_wake, waiter)
        execution.future.add_done_callback(wake)
        self._waiters[waiter] = None
        timer = None if until is None else loop.call_later(max(0.0, until - self._clock()), wake)
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            execution.future.remove_done_callback(wake)
            if timer is not None:
                timer.cancel()

    def _tell_to_stop(self, run: Running, execution: Execution, reason: StopReason) -> None:
        execution.stop()
        self.metrics.lingering(len(self.runs.lingering()))
        if reason is StopReason.TIMEOUT:
            self._name(run, "a reconcile is over its time limit", self._clock() - run.started_at)

    def _name(self, run: Running, message: str, seconds: float) -> None:
        extra = {"controller": self.controller.name, "key": run.key, "reconcile": run.number, "seconds": seconds}
        _logger.warning(message, extra={**extra, "reason": run.reason.value if run.reason is not None else ""})

    def _has_ended(self, run: Running) -> None:
        self.runs.ended(run)
        self.metrics.active_workers(len(self.runs))
        if run.reason is not None:
            self.metrics.lingering(len(self.runs.lingering()))

    def _left_one_has_ended(self, run: Running, execution: Execution) -> None:
        self._has_ended(run)
        self._look_at_error(run, execution)

    def _ended(self, run: Running, execution: Execution) -> Ended:
        if run.reason is None:
            return execution.ended()
        if execution.future.done():
            error = self._look_at_error(run, execution)
            if error is not None and not isinstance(error, Exception):
                raise error  # SystemExit and its like mean the program, and not this reconcile
        return Stopped() if run.reason is StopReason.INTERRUPTED else TimedOut(self.controller.timeout or 0.0)

    def _look_at_error(self, run: Running, execution: Execution) -> BaseException | None:
        """Log what a run raised that had been told to stop: it decides nothing, but may say what is wrong."""
        error = execution.raised()
        if error is not None:
            extra = {"controller": self.controller.name, "key": run.key, "reconcile": run.number}
            extra["reason"] = run.reason.value if run.reason is not None else ""
            level = logging.DEBUG if _follows_from_stopping(error) else logging.WARNING
            message = "a reconcile raised after it was told to stop"
            self._errors.log(_logger, level, message, error, now=self._clock(), extra=extra)
        return error

    def _triggers(self, work: Work[str]) -> tuple[Trigger, ...]:
        """Return why a key is reconciled, own writes labelled."""
        return self._attribution.labelled(work.triggers, controller=self.controller.name)

    def _context(
        self, request: Request, work: Work[str], run: Running, client: Client, triggers: tuple[Trigger, ...]
    ) -> Context:
        def check(action: str) -> None:
            if run.reason is not None:
                raise ReconcileStoppedError(run.key, run.reason, action)

        name = self.controller.name
        return Context(
            request,
            controller=name,
            number=run.number,
            client=ReconcileClient(
                client,
                self._views,
                attribution=self._attribution,
                controller=name,
                number=run.number,
                key=run.key,
                namespace=request.namespace,
                write_check=check,
            ),
            triggers=triggers,
            triggers_dropped=work.triggers_dropped,
            attempts=work.attempts,
            recorder=self._recorder,
            loop=asyncio.get_running_loop(),
            children=self.children,
            remember=partial(self._memory_of, None if self.own_cache is None else self.own_cache.find(request.key)),
            statuses=self._statuses,
            lifespans=self._lifespans,
            track=None if self.tracker is None else partial(self.tracker.track, key=request.key, check=check),
        )

    def _memory_of(self, seen: Resource | None) -> dict[str, Any]:
        """Return the memory of the object that was cached when a run began; any thread.

        It is kept as long as the object is cached: if that is over already, no event will come that drops it. That is
        looked at last, since the end may come at any moment where another thread asks.
        """
        if seen is None or self.own_cache is None:
            return {}
        memory = self.memories.of(seen.key, seen.uid)
        cached = self.own_cache.find(seen.key)
        if cached is None or cached.uid != seen.uid:
            self.memories.gone(seen.key, seen.uid)
        return memory

    # -- ends

    def _is_echo(self, key: str, trigger: object) -> bool:
        """Tell whether a run of a key that has failed since its last success caused a trigger; any thread."""
        failing = self._failing.get(key)
        if failing is None or not isinstance(trigger, Trigger):
            return False
        return self._attribution.is_echo(trigger, controller=self.controller.name, key=key, since=failing[0])

    def _news(self, key: str, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
        """Return the triggers that a key did not have already when it failed, and that did not wait for the retry."""
        failing = self._failing.get(key)
        if failing is None:
            return triggers
        return tuple(each for each in triggers if each.at >= failing[1] and not self._is_echo(key, each))

    def _note_failure(self, run: Running, decision: KeyDecision) -> None:
        """Remember since which run a key fails, and when its last failed run began."""
        if decision.action in (Action.RATE_LIMIT, Action.PARK):
            first, _ = self._failing.get(run.key, (run.number, 0.0))
            self._failing[run.key] = (first, run.started_at)
        elif decision.action is not Action.PUT_BACK:
            self._failing.pop(run.key, None)

    def _carry_out(self, work: Work[str], decision: KeyDecision) -> None:
        """Do with the key what was decided; an error goes on, for the queue to count and log."""
        match decision.action:
            case Action.FORGET:
                return
            case Action.REQUEUE_AFTER:
                self.metrics.triggered("requeue", "after")
                # The reasons of this run are dealt with: those of the next one begin with this request.
                trigger = Trigger(source="requeue", verb="after", at=self._clock())
                delay = jitter(decision.delay, decision.jitter, random=self._random())
                work.retry_after(delay, trigger=trigger, keep_triggers=False)
            case Action.PUT_BACK:
                work.put_back()
            case Action.RATE_LIMIT | Action.PARK:
                if decision.action is Action.RATE_LIMIT:
                    self.metrics.triggered("retry", decision.case.value)
                if decision.error is not None:
                    raise decided(decision.error, parks=decision.terminal)
                # Without an error: the queue counts and spaces it like a failure, and logs nothing.
                self.queue.add_rate_limited(work.key)
                self.queue.done(work.key)


def _wake(waiter: asyncio.Future[None], _: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _follows_from_stopping(error: BaseException) -> bool:
    """Whether an error is only that a write was refused to a run that has to stop."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(_REFUSALS)[1] is None
    return isinstance(error, _REFUSALS)


def _request_of(key: str) -> Request:
    """Read a key; one that is none is parked, since it will never be one."""
    try:
        return Request.from_key(key)
    except InvalidKeyError as error:
        raise TerminalError(f"nothing is reconciled: {error}") from error
