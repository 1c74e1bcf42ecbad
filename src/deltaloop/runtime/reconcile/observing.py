"""Metrics, logs, history, spans and hot keys of reconciles."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.keys import split_meta_namespace_key
from deltaloop.api.references import Trigger
from deltaloop.client.client import Client
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.core.history import History, Reconciled
from deltaloop.runtime.core.hot_loop import Cooled, HotLoop, HotLoops
from deltaloop.runtime.core.outcomes import SUCCESSES, KeyDecision
from deltaloop.runtime.reconcile.context import Context
from deltaloop.runtime.reconcile.execution import Execution
from deltaloop.runtime.reconcile.metrics import CLEANUPS, GuardedControllerMetrics
from deltaloop.runtime.reconcile.tracing import Tracing, end

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from deltaloop.sharding.share import Share

_logger: Final = logging.getLogger("deltaloop.runtime")
_reconciles: Final = logging.getLogger("deltaloop.runtime.reconcile")

_LOOK_TIMEOUT: Final = 2.0
_WRITES_KEPT: Final = 20


@final
class Observer:
    """Observe the reconciles of one controller."""

    def __init__(
        self,
        controller: Controller,
        metrics: GuardedControllerMetrics,
        *,
        history: History,
        tracing: Tracing,
        share: Share | None = None,
    ) -> None:
        self._share = share
        self._name = controller.name
        self._kind = str(controller.resource)
        self._metrics = metrics
        self._history = history
        self.tracing = tracing
        self.hot: HotLoops | None = None if controller.hot_loops is None else HotLoops(controller.hot_loops)

    def wait(self, key: str, *, now: float) -> float:
        """Return the delay in seconds of a hot key's reconcile; 0 for other keys."""
        if self.hot is None:
            return 0.0
        seconds = self.hot.delay(key, now)
        if seconds > 0:
            self._metrics.slowed_down()
        return seconds

    async def look(self, key: str, *, triggers: Sequence[Trigger], client: Client) -> None:
        """Read an object that another writer changes, so that the coming warning can name the writer."""
        subject = None if self.hot is None else self.hot.wants_to_see(key, triggers=triggers)
        if self.hot is None or subject is None:
            return
        kind, object_key = subject
        place = split_meta_namespace_key(object_key)
        try:
            obj = await client.get(kind, place.name, namespace=place.namespace, timeout=_LOOK_TIMEOUT)
        except DeltaloopError as error:
            extra = {"controller": self._name, "key": key, "kind": kind, "object": object_key}
            _logger.debug(
                "cannot read an object that two writers change", extra={**extra, "error": type(error).__name__}
            )
        else:
            self.hot.saw(key, subject, obj)

    def last_error(self, key: str) -> str:
        """Return the exception type of a key's last reconcile; empty if it succeeded or is no longer known."""
        last = self._history.latest(self._name, key)
        return "" if last is None else last.error

    def begins(self, context: Context, *, now: float) -> Span | None:
        """Start the span of a reconcile in its task; None if the program does not collect spans."""
        if now >= self.tracing.look_at:
            self.tracing.look(now)
        return self.tracing.start(context, name=self._name) if self.tracing.is_on else None

    def ended(self, run: Execution, decision: KeyDecision, now: float, news: Sequence[Trigger] | None = None) -> None:
        """Record an ended reconcile; ``news`` are the triggers that did not wait for a retry, or None for all."""
        row, context, error, seconds = decision.row, run.context, decision.error, now - run.started_at
        result = row.result or decision.case.value
        if self._metrics.is_on and row.result:
            counters = (*row.counters, CLEANUPS) if context.cleanup else row.counters
            self._metrics.reconciled(row.result, counters, seconds)
        if run.span is not None:
            end(run.span, result=result, error=error)
        if _reconciles.isEnabledFor(logging.DEBUG):
            context.logger.debug(
                "reconciled",
                extra={
                    "result": result,
                    "seconds": seconds,
                    "attempt": context.attempts,
                    "cleanup": context.cleanup,
                    "triggers": [str(trigger) for trigger in context.triggers],
                    "triggers_dropped": context.triggers_dropped,
                },
            )
        writes = context.client._cached.noted  # noqa: SLF001 - of the same family
        kept, dropped = tuple(writes) if writes else (), 0
        if writes and len(kept) > _WRITES_KEPT:
            kept, dropped = kept[:_WRITES_KEPT], context.client.writes_dropped + len(kept) - _WRITES_KEPT
        self._history.add(
            Reconciled(  # by position, because Python builds a dict for more than 15 keywords
                self._name,
                self._kind,
                run.key,
                run.number,
                now,
                seconds,
                context.attempts,
                result,
                "" if error is None else type(error).__name__,
                context.triggers,
                context.triggers_dropped,
                kept,
                dropped,
                row.action,
                context.cleanup,
                "" if self._share is None else self._share.range_name(run.key),
            )
        )
        if self.hot is not None and (writes or run.key in self.hot.watched):
            succeeded, triggers = row.action in SUCCESSES, context.triggers if news is None else news
            for fact in self.hot.observe(run.key, triggers=triggers, writes=writes, succeeded=succeeded, now=now):
                self._tell(run.key, fact)

    def _tell(self, key: str, fact: HotLoop | Cooled) -> None:
        extra: dict[str, object] = {
            "controller": self._name,
            "key": key,
            "cause": fact.cause,
            "seconds": round(fact.seconds, 3),
        }
        if self._share is not None:
            extra["range"] = self._share.range_name(key)
        if isinstance(fact, Cooled):
            _logger.info("key is no longer slowed down", extra=extra)
            return
        self._metrics.hot_loop(fact.cause)
        extra |= {
            "kind": fact.kind,
            "object": fact.object_key,
            "changes": fact.changes,
            "reconciles": fact.strikes,
            "interval": fact.interval,
        }
        message = "slowing down a key that triggers itself: write only changes"
        if fact.cause == "fight":
            message = "slowing down a key with two writers of one object: use one writer for each field"
            extra["other"] = fact.other or "unknown"
        _logger.warning(message, extra=extra)
