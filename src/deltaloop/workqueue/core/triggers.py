"""Why an item is to be worked on: a bounded list of triggers that knows how many it had to leave out.

A trigger is any object; the queue never looks into it. When more triggers come than the bound allows, the ones in the
middle go: what started the work and what happened last say the most about a run. Half of the places (rounded up) belong
to the first triggers, the other half to the latest ones. ``dropped`` counts the rest, so nothing is lost silently.
"""

from __future__ import annotations

from typing import Final, final

DEFAULT_MAX_TRIGGERS: Final = 16


@final
class TriggerLog:
    """The triggers of one item, oldest first, at most ``bound`` of them."""

    __slots__ = ("_bound", "_kept", "dropped")

    def __init__(self, bound: int = DEFAULT_MAX_TRIGGERS) -> None:
        """Make an empty log.

        Args:
            bound: Most triggers kept; 0 keeps none and only counts them.
        """
        self._bound = bound
        self._kept: list[object] = []
        self.dropped = 0

    def add(self, trigger: object | None) -> None:
        """Append a trigger; None stands for no trigger and changes nothing."""
        if trigger is None:
            return
        self._kept.append(trigger)
        if len(self._kept) > self._bound:
            del self._kept[(self._bound + 1) // 2]
            self.dropped += 1

    def extend(self, later: TriggerLog) -> None:
        """Append everything that ``later`` has, its count of dropped triggers too."""
        for trigger in later._kept:
            self.add(trigger)
        self.dropped += later.dropped

    def copy(self) -> TriggerLog:
        """Return a log of its own with the same content."""
        other = TriggerLog(self._bound)
        other.extend(self)
        return other

    def snapshot(self) -> tuple[object, ...]:
        """Return the kept triggers, oldest first."""
        return tuple(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<TriggerLog of {len(self._kept)}, {self.dropped} dropped>"
