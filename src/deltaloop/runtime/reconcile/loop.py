"""Work queue and workers of one controller.

When a key is queued and a worker is free, a new task takes the key, runs the reconcile function, and applies the
resulting decision to the key. While more keys wait, the task can take up to 64, if no reconcile has changed it. A
reconcile is told to stop after its timeout, when leadership is lost or the program ends. Its key is then requeued
without counting a failure.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast, final

import msgspec

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.pacing.backoff import jitter
from deltaloop._internal.tracebacks import ErrorSummaries, own_frames
from deltaloop.api.errors import InvalidKeyError
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import as_kind
from deltaloop.cache.lister import Lister
from deltaloop.client.client import Client
from deltaloop.client.discovery import BoundKind
from deltaloop.client.options import AccessCheck
from deltaloop.client.verbs.server import Server
from deltaloop.runtime.controller import Controller, kind_of, kinds_declared
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.hot_loop import HotLoop
from deltaloop.runtime.core.memory import Memories
from deltaloop.runtime.core.outcomes import (
    NOTHING,
    SUCCESSES,
    Action,
    Ended,
    KeyDecision,
    Raised,
    Returned,
    Stopped,
    TimedOut,
    decide,
)
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.core.running import Runs, StopReason
from deltaloop.runtime.errors import ReconcileCancelledError, is_write_refusal
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.objects.status import Statuses
from deltaloop.runtime.reconcile.calls import NotAwaited, not_begun
from deltaloop.runtime.reconcile.client import CachedWay, ReconcileClient
from deltaloop.runtime.reconcile.context import Context, Surroundings
from deltaloop.runtime.reconcile.execution import RECONCILE, Execution
from deltaloop.runtime.reconcile.metrics import ControllerMetrics, GuardedControllerMetrics
from deltaloop.runtime.reconcile.observing import Observer
from deltaloop.runtime.reconcile.tracing import Tracing
from deltaloop.workqueue.core.facts import INTERRUPTED, SUCCEEDED, Again, Ending, Failed, Interrupted
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.errors import TerminalError, decided
from deltaloop.workqueue.rate_limiting import RateLimitingQueue
from deltaloop.workqueue.slots import Slots

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import Registration
    from deltaloop.events import ComponentRecorder
    from deltaloop.runtime.enqueue import AcceptsKeys
    from deltaloop.runtime.program.lifespans import Lifespan
    from deltaloop.runtime.reconcile.finalizing import FinalizedRuns
    from deltaloop.sharding.share import Share

_logger: Final = logging.getLogger("deltaloop.runtime")
_KEYS_OF_TASK: Final = 64
_LONGEST_TASK: Final = 0.002


@final
class KeyFailures(msgspec.Struct, frozen=True):
    """Failed reconciles of a key since its last success; ``first`` is a number, ``error`` a class or empty."""

    first: int
    started_at: float
    since: float
    attempts: int
    error: str
    where: tuple[str, ...]


@final
class ReconcileLoop:
    """Run one controller, once for each term of leadership; a manager creates it."""

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
        share: Share | None = None,
    ) -> None:
        """Create the queue without starting workers; without a ``share``, this process has all keys."""
        self.controller = controller
        self.share = share
        self._declared = tuple([kind_of(kind) for kind in kinds_declared(controller)])
        self.metrics: GuardedControllerMetrics = GuardedControllerMetrics(metrics, controller.name)
        self.queue: RateLimitingQueue[str] = RateLimitingQueue(
            name=controller.name,
            rate_limiter=None if controller.rate_limiter is None else controller.rate_limiter(),
            metrics=None if metrics is None else metrics.queue(controller.name),
            options=controller.queue,
            is_echo=self._is_echo,
        )
        self.inbox: AcceptsKeys = self.queue
        if share is not None:
            from deltaloop.runtime.reconcile.own_keys import OwnKeys

            self.inbox = OwnKeys(self.queue, share)
            self.queue._about = lambda key: {"range": share.range_name(key)}  # noqa: SLF001 - of the same family
        self.runs: Runs[Execution] = Runs(Execution, slots=controller.workers, timeout=controller.timeout)
        self.shared: Surroundings = Surroundings(
            controller=controller.name,
            recorder=recorder,
            statuses=Statuses(as_kind(controller.resource), views),
            lifespans={
                declared: value for declared, value in (lifespans or {}).items() if declared is controller.lifespan
            },
            remember=self._memory_of,
            share=share,
        )
        self._views = views
        self._attribution = attribution
        self._failing: dict[str, KeyFailures] = {}
        self.paused_at: float | None = None
        self._observer = Observer(controller, self.metrics, history=history, tracing=tracing, share=share)
        self._clock = clock
        self._random = random
        self._access = access
        self.memories: Memories = Memories()
        self.registrations: list[Registration] = []
        self.own_cache: Lister[Resource] | None = None
        self.cached: Callable[[str], Resource | None] = lambda _: None
        self.finalizing: FinalizedRuns | None = None
        self._function: Callable[[Request, Context], Awaitable[object]] | None = None
        self._steps: Callable[[Execution], Awaitable[Returned | Raised]] = self._call
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._errors = ErrorSummaries()
        self._at_close: list[Callable[[], object]] = []
        # State of one term of leadership.
        self._owner: asyncio.Task[None] | None = None
        self._outside = contextvars.Context()
        self._client: Client | None = None
        self._of_term: tuple[Client, Server, dict[int, BoundKind], Mapping[str, str]] | None = None
        self._slots: Slots[str] | None = None
        self._workers: dict[asyncio.Task[None], None] = {}
        self._end: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fatal: BaseException | None = None
        self._stopping = self._left_behind = False
        self.metrics.max_concurrent_reconciles(controller.workers)

    async def run(self, client: Client) -> None:
        """Run until stopped or canceled. Afterwards all reconciles have ended or were abandoned."""
        name, workers_wanted = self.controller.name, self.controller.workers
        if self.controller.needs_threads and self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(workers_wanted, thread_name_prefix=f"{name}-")
        _logger.info("starting workers", extra={"controller": name, "workers": workers_wanted})
        self.shared.loop = asyncio.get_running_loop()
        self._owner, self._outside = asyncio.current_task(), contextvars.copy_context()
        function = self.controller.function
        if self.finalizing is None and is_coroutine_function(function):
            self._function = cast("Callable[[Request, Context], Awaitable[object]]", function)
        self._steps = self._call if self.finalizing is None else self.finalizing.run
        self._client = client
        guarded = client if self._access is None else client.with_access_check(self._access)
        server = guarded._server  # noqa: SLF001 - of the same family
        self._of_term = guarded, server, server.discovery.kinds, server.write_query
        self._fatal = None
        try:
            paused = self.paused_at is not None
            self._slots = Slots(self.queue, workers_wanted, start=self._start, on_end=self.stop_taking, paused=paused)
            if self._stopping:
                self._slots.close()
            await self._until_ended(self._slots)
        finally:
            self._slots = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self.memories.clear()
            if self.shared.tracker is not None:
                await self.shared.tracker.close()
            _logger.info("workers stopped", extra={"controller": name})

    async def _until_ended(self, slots: Slots[str]) -> None:
        """Wait until no worker is left. A cancellation stops all workers and is raised again afterwards."""
        cancelled: asyncio.CancelledError | None = None
        while not self._left_behind and (self._workers or not slots.closed):
            self._end = asyncio.get_running_loop().create_future()
            try:
                await self._end
            except asyncio.CancelledError as error:
                cancelled = error
                self._interrupt()
        if self._fatal is not None:
            raise self._fatal
        if cancelled is not None:
            raise cancelled

    async def shed(self) -> None:
        """Remove surplus keys of deleted objects from the queue of a standby, until workers start."""
        if self.own_cache is None:
            return
        waiting, cache = len(self.queue), self.own_cache
        from deltaloop.runtime.core.standby import names_gone_object, surplus

        too_many = surplus(waiting, len(cache))
        for _ in range(waiting if too_many else 0):
            if self._slots is not None or not len(self.queue):
                return
            work = await self.queue.get_work()
            if too_many and names_gone_object(work.key, work.triggers, lambda key: cache.find(key) is not None):
                too_many -= 1
                with work:
                    continue  # done, because the object does not exist
            work.put_back()

    def stop_taking(self) -> None:
        """Let workers end before they take another key. Running reconciles continue."""
        self._stopping = True
        if self._slots is not None:
            self._slots.close()
        if not self._workers:
            _wake(self._end)

    def pause(self) -> None:
        """Start no further reconciles until ``resume``. Running reconciles continue, and keys are queued."""
        if self.paused_at is None:
            self.paused_at = self._clock()
        if self._slots is not None:
            self._slots.paused = True

    def resume(self) -> None:
        self.paused_at = None
        if self._slots is not None:
            self._slots.resume()

    def forget(self, is_in: Callable[[str], bool]) -> None:
        # Another member owns these keys.
        for key in [key for key in self._failing if is_in(key)]:
            del self._failing[key]
            self.queue.forget(key)
        if self._observer.hot is not None:
            self._observer.hot.forget(is_in)
        for letter in self.queue.dead_letters():
            if is_in(letter.item):
                self.queue.discard_dead_letter(letter.item)

    def failing(self) -> Mapping[str, KeyFailures]:
        return self._failing

    def hot_keys(self) -> list[tuple[HotLoop, float, float]]:
        """Return the keys that are slowed down, see ``HotLoops.hot_keys``."""
        hot = self._observer.hot
        return [] if hot is None else hot.hot_keys(self._clock())

    def abandon(self) -> tuple[str, ...]:
        """Abandon running reconciles, start no others, and return the abandoned keys."""
        self.stop_taking()
        for run in self.runs.abandon():
            self._observer.ended(run, decide(Stopped()), now=self._clock())
            assert self._slots is not None
            self._slots.give_back(run.taken, INTERRUPTED)
        self._left_behind = True
        _wake(self._end)
        return tuple(run.key for run in self.runs.present())

    def last_error(self, key: str) -> str:
        """Return the exception type of a key's last reconcile; empty if it succeeded or is no longer known."""
        return self._observer.last_error(key)

    def object_gone(self, obj: Resource) -> None:
        """Forget an object that has left the cache or was replaced by a successor."""
        self.memories.gone(obj.key, obj.uid)
        if self.shared.tracker is not None:
            self.shared.tracker.gone(obj.key)

    def ask_after(self, key: str, seconds: float) -> None:
        """Requeue a key for the deadline of its cleanup."""
        trigger = Trigger(source="finalizer", verb="deadline", at=self._clock())
        self.queue.add_after(key, seconds, trigger=trigger)

    def at_close(self, call: Callable[[], object]) -> None:
        self._at_close.append(call)

    def close(self) -> None:
        for call in self._at_close:
            call()
        self.queue.shut_down()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    # -- workers

    def _start(self) -> None:
        loop = self.shared.loop
        assert loop is not None
        task = loop.create_task(self._work(), name=self.controller.name, context=self._outside.copy())
        self._workers[task] = None

    async def _work(self) -> None:  # noqa: C901 - one function, so that a reconcile costs few calls
        """Reconcile keys in this task, which isolates changes to the task from other reconciles."""
        slots, share, hot, name = self._slots, self.share, self._observer.hot, self.controller.name
        task, keys, began_at, now, goes_on, has_waited = asyncio.current_task(), 0, 0.0, 0.0, False, False
        assert slots is not None
        assert task is not None
        try:
            while (taken := slots.take() if share is None else self._take_own(slots, share)) is not None:
                ending: Ending = INTERRUPTED
                variables: contextvars.Context | None = None
                try:
                    triggers = self._attribution.labelled(taken.triggers.kept, name)
                    if hot is not None and taken.item in hot.watched:
                        delay = await self._before_hot(taken.item, triggers)
                        if delay is not None:
                            ending = Interrupted(delay)
                            return
                    run = self._begin(taken, triggers, task)
                    context = run.context
                    variables = contextvars.copy_context()
                    returned, ended = None, None
                    try:
                        try:
                            if self._function is None:
                                ended = await self._steps(run)
                            else:
                                returned = await self._function(context.request, context)
                        except Exception as error:  # noqa: BLE001 - the table of outcomes decides what becomes of it
                            ended = await run.raised(error)
                        if returned is not None or (ended is None and not_begun(context._not_awaited)):  # noqa: SLF001 - of the same family
                            ended = await run.returned(self.controller.function, returned)
                    except asyncio.CancelledError:
                        ended = self._cancelled(run)
                    except BaseException as error:
                        self._free(run, error)
                        raise
                    has_waited = bool(context.client._cached.noted)  # noqa: SLF001 - same; other tasks ran meanwhile
                    now = self._clock()
                    ending = self._finish(run, ended, now)
                except Exception as error:  # noqa: BLE001 - the queue logs it and tries the key again
                    ending = Failed(error)
                finally:
                    goes_on = slots.end(taken, ending)  # whether another key has this slot
                if not goes_on:
                    return
                keys += 1
                began_at = now if has_waited else began_at or now
                if (
                    ending is not SUCCEEDED
                    or keys >= _KEYS_OF_TASK
                    or now - began_at >= _LONGEST_TASK
                    or task.cancelling()
                    or contextvars.copy_context() != variables
                ):
                    return
                goes_on = False
        except asyncio.CancelledError:
            pass  # canceled before the reconcile began
        except BaseException as error:  # noqa: BLE001 - fatal for the program, raised again in ``run``
            self._give_up(error)
        finally:
            del self._workers[task]
            if goes_on:
                self._start()
            if slots.closed and not self._workers:
                _wake(self._end)

    def _take_own(self, slots: Slots[str], share: Share) -> Run[str] | None:
        while (taken := slots.take()) is not None and not share.owns(taken.item):
            self._failing.pop(taken.item, None)
            if not slots.end(taken, SUCCEEDED):  # the owner queues the key itself
                return None
        return taken

    def _call(self, run: Execution) -> Awaitable[Returned | Raised]:
        return run.call(self.controller.function)

    def _give_up(self, error: BaseException) -> None:
        self._fatal = error
        self._interrupt()
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error

    def _never_began(self, task: asyncio.Task[None]) -> None:
        if task in self._workers:
            del self._workers[task]
        if not self._workers:
            _wake(self._end)

    async def _before_hot(self, key: str, triggers: tuple[Trigger, ...]) -> float | None:
        """Read an object that another writer changes. Return the delay of a reconcile that cannot begin."""
        wait = self._observer.wait(key, now=self._clock())
        if wait > 0:
            return wait
        assert self._client is not None
        await self._observer.look(key, triggers=triggers, client=self._client)
        moved = self.share is not None and not self.share.owns(key)
        return 0.0 if self._stopping or moved else None

    def _begin(self, taken: Run[str], triggers: tuple[Trigger, ...], task: asyncio.Task[None]) -> Execution:
        key, now, controller = taken.item, self._clock(), self.controller.name
        seen = self.cached(key)
        if seen is None:
            namespace, _, name = key.rpartition("/")
            if not name or "/" in namespace:
                raise TerminalError(f"cannot reconcile: {InvalidKeyError(key)}")  # the key stays invalid
        else:
            namespace, name = seen.namespace, seen.name
        run = self.runs.begin(key, now)
        if self.metrics.is_on:
            self.metrics.active_workers(len(self.runs))
        try:
            assert self._of_term is not None
            client, server, kinds, query = self._of_term
            run.taken, run.task = taken, task
            if self._pool is not None:
                run.pool = self._pool
            number, check = run.number, run.check
            not_awaited: NotAwaited = {}
            guard = None if self.share is None else self.share.guard(key)
            by = controller, number, key
            way = CachedWay(server, kinds, query, self._views, self._attribution, by, namespace, check, None, guard)
            run.context = context = Context(
                Request(namespace, name),
                controller,
                number,
                ReconcileClient(way, kinds, way, not_awaited, client),
                triggers,
                taken.triggers.dropped,
                taken.failures + 1,
                not_awaited,
                self.shared,
                key,
                seen,
                check,
            )
            RECONCILE.set(context)
            tracing = self._observer.tracing
            if tracing.is_on or now >= tracing.look_at:
                run.span = self._observer.begins(context, now=now)
        except BaseException:
            self._free(run)  # otherwise the worker would be lost permanently
            raise
        task.set_name(f"reconcile {controller} {key}")
        if run.deadline is not None and self._timer is None:
            self._look()
        return run

    def _finish(self, run: Execution, ended: Ended | None, now: float) -> Ending:
        """Record the end of a reconcile (None for the usual one), and return what becomes of its key."""
        if run.reason is not None:
            self._free(run, ended.error if isinstance(ended, Raised) else None)
            if run.abandoned:
                return INTERRUPTED
            timed_out = run.reason is StopReason.TIMEOUT
            ended = TimedOut(self.controller.timeout or 0.0) if timed_out else Stopped()
        else:
            self.runs.ended(run)
            if self.metrics.is_on:
                self.metrics.active_workers(len(self.runs))
        decision = NOTHING if ended is None else decide(ended, declared=self._declared)
        if decision.error is not None:
            from deltaloop.runtime.reconcile.remedies import note_missing_right

            note_missing_right(decision.error, self.controller.name)
        news = self._news(run) if self._failing else None
        self._observer.ended(run, decision, now, news)
        if self.share is not None and [each.source for each in run.context.triggers] != ["shard"]:
            self.share.time.add(self.share.number_of(run.key), now - run.started_at)
        if self.shared.tracker is not None:
            exists = self.cached(run.key) is not None
            self.shared.tracker.ended(run.key, succeeded=decision.row.action in SUCCESSES, exists=exists)
        if self._failing or decision.row.action not in SUCCESSES:
            self._note_failure(run, decision)
        del run.context  # otherwise it would wait for the garbage collector
        if decision is NOTHING:
            return SUCCEEDED
        RECONCILE.set(None)  # new timers must not keep the context alive
        return self._ending(run.key, decision)

    def _free(self, run: Execution, error: BaseException | None = None) -> None:
        """Free the worker of an ended reconcile, and log its exception if it was told to stop before."""
        self.runs.ended(run)
        if self.metrics.is_on:
            self.metrics.active_workers(len(self.runs))
        if run.reason is None:
            return
        self.metrics.lingering(len(self.runs.lingering()))
        if error is not None:
            # The error does not affect the decision, but it can help to find the cause.
            level = logging.DEBUG if is_write_refusal(error) else logging.WARNING
            message = "reconcile raised an exception after it was stopped"
            extra = self._about(run)
            self._errors.log(_logger, level, message, error, now=self._clock(), extra=extra)

    def _cancelled(self, run: Execution) -> Raised | None:
        if self._owner is not None and self._owner.cancelling():
            self.runs.interrupt()  # the event loop is ending and has canceled all tasks
        if run.reason is not None:
            return None
        return Raised(ReconcileCancelledError("the reconcile function raised CancelledError without a cancellation"))

    # -- stopping

    def _interrupt(self) -> None:
        """Stop all workers, because leadership was lost or the program ends."""
        if self._slots is not None:
            self._slots.close()
        for task in self._workers:
            task.add_done_callback(self._never_began)
        self.runs.interrupt()
        self._look()

    def interrupt(self, is_in: Callable[[str], bool]) -> None:
        """Stop the running reconciles of some keys, because another member owns them or will own them."""
        for run in self.runs.present():
            if run.reason is None and is_in(run.key):
                run.reason = StopReason.MOVED
        self._look()

    def _look(self) -> None:
        """Stop reconciles after their timeout, report those that do not stop, and schedule the next check."""
        now = self._clock()
        stop, warn = self.runs.due(now)
        for run in stop:
            run.stop()
            self.metrics.lingering(len(self.runs.lingering()))
            if run.reason is StopReason.TIMEOUT:
                extra = {**self._about(run), "seconds": now - run.started_at}
                _logger.warning("reconcile exceeded its timeout", extra=extra)
        for run in warn:
            extra = {**self._about(run), "seconds": now - run.started_at}
            _logger.warning("reconcile does not stop", extra=extra)
        if self._timer is not None:
            self._timer.cancel()
        until = self.runs.next_at()
        loop = self.shared.loop
        self._timer = None if until is None or loop is None else loop.call_later(max(0.0, until - now), self._look)

    def _about(self, run: Execution) -> dict[str, object]:
        reason = "" if run.reason is None else run.reason.value
        about: dict[str, object] = {"controller": self.controller.name, "key": run.key, "reconcile": run.number}
        if self.share is not None:
            about["range"] = self.share.range_name(run.key)
        return {**about, "reason": reason}

    # -- ends

    def _memory_of(self, seen: Resource | None) -> dict[str, Any]:
        """Return the memory of the object that was cached when a reconcile began. Thread-safe.

        The check comes last because the object can leave the cache at any time while another thread runs this method.
        """
        if seen is None:
            return {}
        memory = self.memories.of(seen.key, seen.uid)
        cached = self.cached(seen.key)
        if cached is None or cached.uid != seen.uid:
            self.memories.gone(seen.key, seen.uid)
        return memory

    def _is_echo(self, key: str, trigger: object) -> bool:
        """Return whether a reconcile of the key since its last success caused the trigger. Thread-safe."""
        failing = self._failing.get(key)
        if failing is None or not isinstance(trigger, Trigger):
            return False
        return self._attribution.is_echo(trigger, controller=self.controller.name, key=key, since=failing.first)

    def _news(self, run: Execution) -> tuple[Trigger, ...]:
        """Return the triggers that arrived after the last failure began and are not echoes of own writes."""
        triggers, failing = run.context.triggers, self._failing.get(run.key)
        if failing is None:
            return triggers
        return tuple(each for each in triggers if each.at >= failing.started_at and not self._is_echo(run.key, each))

    def _note_failure(self, run: Execution, decision: KeyDecision) -> None:
        if decision.action in (Action.RATE_LIMIT, Action.PARK):
            before, error = self._failing.get(run.key), decision.error
            self._failing[run.key] = KeyFailures(
                first=run.number if before is None else before.first,
                started_at=run.started_at,
                since=run.started_at if before is None else before.since,
                attempts=run.taken.failures + 1,
                error="" if error is None else type(error).__name__,
                where=() if error is None else tuple(own_frames(error)),
            )
        elif decision.action is not Action.PUT_BACK:
            self._failing.pop(run.key, None)

    def _ending(self, key: str, decision: KeyDecision) -> Ending:
        action = decision.action
        if action is Action.REQUEUE_AFTER:
            self.metrics.triggered("requeue", "after")
            # This reconcile has handled its triggers, so the next one starts with this trigger only.
            trigger = Trigger(source="requeue", verb="after", at=self._clock())
            return Again(jitter(decision.delay, decision.jitter, random=self._random()), trigger, keep_triggers=False)
        if action is Action.PUT_BACK:
            return INTERRUPTED
        if action is Action.RATE_LIMIT:
            self.metrics.triggered("retry", decision.case.value)
        if decision.error is not None:
            return Failed(decided(decision.error, parks=decision.terminal))
        if action is Action.RATE_LIMIT:
            # Without an error, the queue applies its backoff without a log record.
            self.queue.add_rate_limited(key)
            self.queue.done(key)
        return SUCCEEDED


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
