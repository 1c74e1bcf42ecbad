"""Snapshot of a running program, and its diagnoses.

The program pays only for requested snapshots, because they read state that already exists.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from deltaloop._internal.tracebacks import own_frames
from deltaloop.api.references import Trigger
from deltaloop.api.shard_selector import HASH_SPACE
from deltaloop.cache.core.reflector.reactions import is_refusal
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.errors import describe_error
from deltaloop.cache.informer import Informer
from deltaloop.client import Client
from deltaloop.runtime.core.diagnosis import (
    BACKLOG,
    MOST_LISTED,
    CacheSeen,
    ControllerSeen,
    Diagnosis,
    FailingKey,
    HotKey,
    LeaseSeen,
    ParkedKey,
    ProgramState,
    QueueSeen,
    RangeSeen,
    RequestsSeen,
    SlotSeen,
    WebhookSeen,
    diagnoses,
)
from deltaloop.runtime.core.readiness import Leadership
from deltaloop.runtime.program.watchdog import LoopWatchdog
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.workqueue.core.queue import QueueStatistics

if TYPE_CHECKING:
    from deltaloop.leaderelection import LeaderElector
    from deltaloop.runtime.program.manager import Manager
    from deltaloop.sharding import ShardState
    from deltaloop.webhooks import WebhookServer
    from deltaloop.webhooks.core.certificates.targets import WebhookTarget

_SAMPLE: Final = 0.5
"""Seconds of a sample of the queues. A response may take two seconds."""
_OLDEST_SAMPLE: Final = 30.0
_TRIGGERS: Final = 3
_MOST_DELAYS: Final = 5000
"""Number of delays that are copied. A million would block the event loop for a second."""


async def diagnose(manager: Manager) -> list[Diagnosis]:
    """Return the parts of a running manager that do not move, the most urgent first.

    It reads the configurations of webhooks from the API server, and needs half a second if many keys are queued.

    Args:
        manager: Manager on the same event loop.
    """
    return diagnoses(await manager.doctor.state())


@final
class Doctor:
    """Snapshots of one manager. Use it on the event loop of the manager."""

    def __init__(
        self,
        *,
        client: Client,
        loops: Sequence[ReconcileLoop],
        informers: Sequence[Informer[Any]],
        elector: LeaderElector | None,
        watchdog: LoopWatchdog,
        webhook_server: Callable[[], WebhookServer | None],
        webhook_targets: Sequence[WebhookTarget],
        max_staleness: float,
        clock: Callable[[], float],
        began_at: float,
        shard_state: Callable[[], ShardState | None] = lambda: None,
    ) -> None:
        self._client = client
        self._loops = loops
        self._informers = informers
        self._elector = elector
        self._watchdog = watchdog
        self._webhook_server = webhook_server
        self._webhook_targets = webhook_targets
        self._webhook_checks: Callable[[str], Any] | None = None
        self._max_staleness = max_staleness
        self._clock = clock
        self._began_at = began_at
        self._shard_state = shard_state
        self._sample: tuple[float, dict[str, QueueStatistics]] | None = None
        self.actions: bool = False

    async def document(self) -> dict[str, Any]:
        """Return the JSON form: ``stuck``, ``diagnoses``, and the fields of ``ProgramState`` in camel case."""
        return _document(await self.state())

    def blocked_document(self) -> dict[str, Any] | None:
        """Return the JSON form while the event loop is blocked, without controllers, or None. Thread-safe."""
        blocked = self._watchdog.block()
        if blocked is None or blocked.ended_ago is not None:
            return None
        return _document(ProgramState(leadership="", leader="", seconds=0.0, max_staleness=0.0, blocked=blocked))

    async def state(self) -> ProgramState:
        before = await self._sampled()
        webhooks = await self._webhooks()
        elector, now = self._elector, self._clock()
        renewed_ago = None if elector is None else elector.renewed_ago
        lease = None
        if elector is not None and renewed_ago is not None:
            deadline = elector.config.renew_deadline
            lease = LeaseSeen(name=elector.lock.describe(), age=renewed_ago, renew_deadline=deadline)
        leadership = Leadership.NONE
        if elector is not None:
            leadership = Leadership.LEADING if elector.is_leader else Leadership.STANDBY
        sent, blocked = self._client.statistics(), self._watchdog.block()
        if blocked is not None and blocked.ended_ago is None:  # this call runs on the loop, before the thread notices
            blocked = msgspec.structs.replace(blocked, ended_ago=0.0)
        return ProgramState(
            leadership=leadership.value,
            leader="" if elector is None else elector.leader,
            seconds=now - self._began_at,
            max_staleness=self._max_staleness,
            # The queue of a standby only grows.
            controllers=tuple(
                _controller(loop, now, None if leadership is Leadership.STANDBY else before) for loop in self._loops
            ),
            caches=tuple(self._cache(informer, now) for informer in self._informers),
            lease=lease,
            blocked=blocked,
            ranges=_ranges(self._shard_state()),
            webhooks=webhooks,
            requests=RequestsSeen(
                throttled=sent.throttled, throttled_ago=sent.throttled_ago or 0.0, undiscovered=sent.failed_groups
            ),
            actions=self.actions,
        )

    async def _sampled(self) -> tuple[float, dict[str, QueueStatistics]] | None:
        """Return earlier counts of the queues, after a wait if many keys are queued."""
        before, now = self._sample, self._clock()
        if before is None or not _SAMPLE <= now - before[0] <= _OLDEST_SAMPLE:
            before = now, {loop.controller.name: loop.queue.statistics() for loop in self._loops}
            self._sample = before
            if any(seen.queued >= BACKLOG for seen in before[1].values()):
                await asyncio.sleep(_SAMPLE)
        self._sample = self._clock(), {loop.controller.name: loop.queue.statistics() for loop in self._loops}
        return before

    async def _webhooks(self) -> tuple[WebhookSeen, ...]:
        server = self._webhook_server()
        if server is None or not self._webhook_targets:
            return ()
        if self._webhook_checks is None:
            from deltaloop.runtime.program.webhook_checks import WebhookChecks

            self._webhook_checks = WebhookChecks(self._client, self._webhook_targets).problems
        found: tuple[WebhookSeen, ...] = await self._webhook_checks(server.url)
        return found

    def _cache(self, informer: Informer[Any], now: float) -> CacheSeen:
        seen = informer.statistics()
        quiet_since = seen.last_byte_at if seen.phase is ReflectorPhase.STREAMING else None
        return CacheSeen(
            name=informer.name,
            synced=informer.has_synced,
            objects=len(informer.indexer),
            age=now - self._began_at,
            confirmed=None if seen.last_confirmed_at is None else now - seen.last_confirmed_at,
            silent=None if quiet_since is None else now - quiet_since,
            failing=None if seen.failing_since is None else now - seen.failing_since,
            error="" if seen.last_error is None else describe_error(seen.last_error),
            refused=is_refusal(seen.last_error),
            bookmarks=seen.bookmarks > 0 or seen.streamed_lists > 0,
            stalled_by=informer.stalled_by,
        )


def _ranges(state: ShardState | None) -> tuple[RangeSeen, ...]:
    return tuple(
        RangeSeen(
            program=state.name,
            range=each.name,
            part=(each.end - each.start) / HASH_SPACE,
            seconds=each.unowned_for or 0.0,
        )
        for each in (() if state is None else state.unowned)
        if state is not None
    )


def _document(state: ProgramState) -> dict[str, Any]:
    found = diagnoses(state)
    stuck = any(each.stuck for each in found)
    return {"stuck": stuck, "diagnoses": msgspec.to_builtins(found), **msgspec.to_builtins(state)}


def _controller(
    loop: ReconcileLoop, now: float, before: tuple[float, dict[str, QueueStatistics]] | None
) -> ControllerSeen:
    controller, queue = loop.controller, loop.queue
    running = sorted(loop.runs.present(), key=lambda run: run.started_at)
    parked = [
        ParkedKey(
            key=letter.item,
            error="" if letter.error is None else type(letter.error).__name__,
            attempts=letter.attempts,
            seconds=letter.parked_for,
            where=() if letter.error is None else tuple(own_frames(letter.error)),
        )
        for letter in queue.dead_letters()[:MOST_LISTED]
    ]
    return ControllerSeen(
        name=controller.name,
        kind=str(controller.resource),
        workers=controller.workers,
        timeout=controller.timeout,
        paused_for=None if loop.paused_at is None else now - loop.paused_at,
        queue=_queue(queue.statistics(), now, controller.name, before),
        running=tuple(
            SlotSeen(
                key=run.key,
                reconcile=run.number,
                seconds=now - run.started_at,
                where=run.where(),
                stopping="" if run.reason is None else run.reason.value,
                triggers=_shown(run.context.triggers),
            )
            for run in running[:MOST_LISTED]
        ),
        failing=_failing(loop, now),
        parked=tuple(parked),
        hot=tuple(
            HotKey(
                key=fact.key,
                fight=fact.cause == "fight",
                kind=fact.kind,
                object=fact.object_key,
                other=fact.other,
                fields=tuple(change.partition(": ")[0] for change in fact.changes),  # without values
                seconds=seconds,
                interval=interval,
            )
            for fact, seconds, interval in loop.hot_keys()[:MOST_LISTED]
        ),
    )


def _failing(loop: ReconcileLoop, now: float) -> tuple[FailingKey, ...]:
    """Return the keys in back-off, those that fail for longest first."""
    queue, seen = loop.queue, loop.queue.statistics()
    delays: dict[str, float] = {}
    if seen.delayed <= _MOST_DELAYS:
        delays = {delayed.item: delayed.delay for delayed in queue.delayed() if delayed.rate_limited}
    parked = {letter.item for letter in queue.dead_letters()}
    # Result(requeue=True) requests a retry without an error.
    errors = (item for item in loop.failing().items() if item[1].error and item[0] not in parked)
    failing = heapq.nsmallest(MOST_LISTED, errors, key=lambda item: item[1].since)
    return tuple(
        FailingKey(
            key=key,
            error=failure.error,
            attempts=failure.attempts,
            seconds=now - failure.since,
            next_in=delays.get(key) if delays else seen.next_due_in,
            where=failure.where,
        )
        for key, failure in failing
    )


def _queue(
    seen: QueueStatistics, now: float, name: str, before: tuple[float, dict[str, QueueStatistics]] | None
) -> QueueSeen:
    added = done = None
    if before is not None and name in before[1] and now - before[0] >= _SAMPLE / 2:
        seconds, then = now - before[0], before[1][name]
        added, done = (seen.adds - then.adds) / seconds, (seen.done - then.done) / seconds
    return QueueSeen(
        queued=seen.queued,
        processing=seen.processing,
        delayed=seen.delayed,
        failing=seen.failing,
        parked=seen.parked,
        adds=seen.adds,
        done=seen.done,
        added_rate=added,
        done_rate=done,
    )


def _shown(triggers: Iterable[Trigger]) -> tuple[str, ...]:
    return tuple(str(trigger) for trigger, _ in zip(triggers, range(_TRIGGERS), strict=False))
