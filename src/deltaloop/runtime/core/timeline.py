"""Timeline of one object: its reconciles, the versions that they saw, and the Events about it, without values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final, final

import msgspec

from deltaloop.runtime.core.history import Reconciled

MOST_EVENTS: Final = 1000
MOST_SHOWN: Final = 50


@final
class SeenEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded Event without its message, because that can contain data."""

    kind: str
    key: str
    at: float
    type: str
    reason: str
    component: str


@final
class RecentEvents:
    """The last Events of a program, at most ``MOST_EVENTS``."""

    def __init__(self) -> None:
        self._events: deque[SeenEvent] = deque(maxlen=MOST_EVENTS)

    def add(self, event: SeenEvent) -> None:
        self._events.append(event)

    def about(self, kind: str, key: str) -> list[SeenEvent]:
        """Return the latest Events about an object, earliest first; ``kind`` is ``apps/v1/Deployment``."""
        found = [event for event in tuple(self._events) if event.key == key and event.kind == kind]
        return found[-MOST_SHOWN:]


def timeline(
    kind: str, key: str, reconciles: Iterable[Reconciled], events: Iterable[SeenEvent], *, now: float
) -> list[dict[str, Any]]:
    """Return the entries of a timeline, latest first, with ``entry`` and ``secondsAgo``.

    ``entry`` is ``reconcile``, ``version`` or ``event``.
    """
    entries: list[dict[str, Any]] = []
    versions: dict[str, dict[str, Any]] = {}
    for run in reconciles:
        entries.append({"entry": "reconcile", **run.to_dict(now)})
        for trigger in run.triggers:
            seen, version = trigger.reference, trigger.new_resource_version
            if seen is not None and version and (f"{seen.api_version}/{seen.kind}", seen.key) == (kind, key):
                ago = round(max(0.0, now - trigger.at), 3)
                by = trigger.origin
                versions[version] = {"version": version, "verb": trigger.verb, "by": by, "secondsAgo": ago}
    entries += [{"entry": "version", **each} for each in versions.values()]
    entries += [
        {
            "entry": "event",
            "type": event.type,
            "reason": event.reason,
            "component": event.component,
            "secondsAgo": round(max(0.0, now - event.at), 3),
        }
        for event in events
    ]
    entries.sort(key=lambda entry: float(entry["secondsAgo"]))
    return entries
