"""Trace events of reconciles and log records, which viewers of Chrome traces open.

Each reconcile is one event with its causes, its decision and its writes, without values. The reconciles of a controller
that overlap are on different lanes. Log records become events with their constant message and harmless extras.

Source: Trace Event Format, JSON Array Format (Google).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, final

from deltaloop.runtime.core.history import Reconciled

_MICROSECONDS: Final = 1e6
_EXTRAS: Final = frozenset({
    "action", "attempts", "cause", "controller", "delay", "identity", "interval", "key", "keys", "kind", "lock",
    "object", "operation", "other", "queue", "range", "ranges", "recovery", "reflector", "resource", "seconds",
    "source", "task", "user",
})  # fmt: skip
"""Extras of log records without data of objects. Texts of errors can contain such data."""


@final
class TraceEvents:
    """Events of one process in the order in which they end; ``began_at`` is the time of the trace's beginning."""

    def __init__(self, process: int, name: str, *, began_at: float) -> None:
        self._process = process
        self._began_at = began_at
        self._lanes: dict[str, list[tuple[int, float]]] = {}  # by controller, each with its number and its last end
        self._count = 0
        self._new: list[dict[str, Any]] = [self._named("process_name", 0, name)]

    def reconciled(self, run: Reconciled) -> Iterator[dict[str, Any]]:
        """Return the events of an ended reconcile."""
        begin = run.ended_at - run.seconds
        lane = self._lane(run.controller, begin, run.ended_at)
        yield from self._names()
        fields = run.to_dict(run.ended_at)
        del fields["secondsAgo"], fields["seconds"]
        yield {
            "name": f"{run.controller} {run.key}",
            "cat": "reconcile",
            "ph": "X",
            "ts": self._at(begin),
            "dur": round(run.seconds * _MICROSECONDS),
            "pid": self._process,
            "tid": lane,
            "args": fields,
        }

    def logged(self, message: str, extras: Mapping[str, object], now: float) -> Iterator[dict[str, Any]]:
        """Return the events of a log record."""
        yield from self._names()
        known = {name: value for name, value in extras.items() if name in _EXTRAS}
        plain = {name: each if isinstance(each, int | float) else str(each) for name, each in known.items()}
        place = {"pid": self._process, "tid": 0}
        yield {"name": message, "cat": "log", "ph": "i", "s": "p", "ts": self._at(now), **place, "args": plain}

    def _lane(self, controller: str, begin: float, end: float) -> int:
        lanes = self._lanes.setdefault(controller, [])
        for place, (number, last) in enumerate(lanes):
            if last <= begin:
                lanes[place] = number, end
                return number
        self._count += 1
        lanes.append((self._count, end))
        self._new.append(self._named("thread_name", self._count, f"{controller} {len(lanes)}"))
        return self._count

    def _names(self) -> list[dict[str, Any]]:
        new, self._new = self._new, []
        return new

    def _named(self, event: str, lane: int, name: str) -> dict[str, Any]:
        return {"name": event, "ph": "M", "pid": self._process, "tid": lane, "args": {"name": name}}

    def _at(self, now: float) -> int:
        return round((now - self._began_at) * _MICROSECONDS)
