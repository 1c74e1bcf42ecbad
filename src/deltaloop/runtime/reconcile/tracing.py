"""OpenTelemetry spans of reconciles (extra ``otel``)."""

from __future__ import annotations

import math
import os
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, final

from deltaloop.api.references import Trigger
from deltaloop.runtime.reconcile.context import Context

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer

_LIMIT: Final = 1000
_LOOK_INTERVAL: Final = 1.0


def reasons(triggers: tuple[Trigger, ...]) -> tuple[str, ...]:
    """Return the distinct causes of a reconcile with low cardinality, sorted."""
    named = {f"{_who(trigger)} {trigger.verb}" for trigger in triggers}
    return tuple(sorted(named))


def _who(trigger: Trigger) -> str:
    return trigger.origin.partition(",")[0] if trigger.origin else trigger.source


@final
class Tracing:
    """Create the spans of one program's reconciles; ``look_at`` is the next time to call ``look``."""

    def __init__(self) -> None:
        self.is_on: bool = False
        self.look_at: float = -math.inf
        self._tracer: Tracer | None = None
        self._spans: OrderedDict[tuple[str, str], SpanContext] = OrderedDict()

    def start(self, context: Context, *, name: str) -> Span:
        """Start the span of a reconcile and make it the task's current span."""
        from opentelemetry import context as contexts
        from opentelemetry.trace import Link, SpanKind, get_tracer, set_span_in_context

        if self._tracer is None:
            self._tracer = get_tracer("deltaloop.runtime")
        links = [Link(found) for found in self._causes(context.triggers, name)]
        span = self._tracer.start_span(
            f"reconcile {name}",
            kind=SpanKind.CONSUMER,
            links=links,
            attributes={
                "deltaloop.controller": name,
                "deltaloop.namespace": context.request.namespace,
                "deltaloop.name": context.request.name,
                "deltaloop.reconcile": context.number,
                "deltaloop.attempt": context.attempts,
                "deltaloop.triggers": reasons(context.triggers),
            },
        )
        contexts.attach(set_span_in_context(span))
        made = span.get_span_context()
        if made.is_valid:
            self._spans[name, str(context.number)] = made
            while len(self._spans) > _LIMIT:
                self._spans.popitem(last=False)
        return span

    def look(self, now: float) -> None:
        """Check whether the program collects spans, for which it imports the API at any time, or names a provider."""
        self.look_at = now + _LOOK_INTERVAL
        if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
            return
        try:
            from opentelemetry import trace
        except ImportError:
            return
        self.is_on = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def _causes(self, triggers: tuple[Trigger, ...], name: str) -> list[SpanContext]:
        found: dict[tuple[str, str], SpanContext] = {}
        for trigger in triggers:
            who, _, rest = trigger.origin.partition(", reconcile ")
            cause = (name if who == "self" else who, rest.partition(",")[0])
            if cause in self._spans:
                found[cause] = self._spans[cause]
        return [*found.values()]


def end(span: Span, *, result: str, error: BaseException | None) -> None:
    """End a span. It records only the type of an error, because the text can contain data."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("deltaloop.result", result)
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR, type(error).__name__)
    span.end()
