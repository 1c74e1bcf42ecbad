"""Why an item is to be worked on, and how urgently: what its adds brought along, merged.

A trigger is any object; the queue never looks into it. When more triggers come than the bound allows, the ones in the
middle go: what started the work and what happened last say the most about a run. Half of the places (rounded up) belong
to the first triggers, the other half to the latest ones. ``dropped`` counts the rest, so nothing is lost silently: the
triggers kept and the ones dropped are together as many as were added.

A merge function may fold a new trigger into the ones that are kept, for example several changes of one object into one.
What it leaves out counts as dropped, too.

The priority of several adds is the highest of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

DEFAULT_MAX_TRIGGERS: Final = 16

MergeTriggers: TypeAlias = Callable[[tuple[object, ...], object], Sequence[object]]
"""Takes the triggers that are kept, oldest first, and a new one; returns what to keep of them, oldest first."""


@final
class TriggerLog:
    """The triggers of one item, oldest first, at most ``bound`` of them, and its priority."""

    __slots__ = ("_bound", "_kept", "_merge", "_priority", "dropped")

    def __init__(
        self, bound: int = DEFAULT_MAX_TRIGGERS, *, priority: int | None = None, merge: MergeTriggers | None = None
    ) -> None:
        """Make an empty log.

        Args:
            bound: Most triggers kept; 0 keeps none and only counts them.
            priority: How urgent the item is, for queues with priorities; higher is more urgent. None says nothing.
            merge: Folds a new trigger into those that are kept; None appends it. It must not raise.
        """
        self._bound = bound
        self._merge = merge
        self._kept: list[object] = []
        self.dropped: int = 0
        self._priority = priority

    @property
    def priority(self) -> int:
        """The highest priority of all that was merged; 0 if nothing was said."""
        return 0 if self._priority is None else self._priority

    def add(self, trigger: object | None, *, priority: int | None = None) -> None:
        """Append a trigger, or merge it; None stands for no trigger.

        Args:
            trigger: Why the item is to run.
            priority: How urgent it is; the highest counts.
        """
        if priority is not None and (self._priority is None or priority > self._priority):
            self._priority = priority
        if trigger is None:
            return
        if self._merge is None and len(self._kept) < self._bound:
            self._kept.append(trigger)
            return
        if self._merge is None or not self._kept:
            self._kept.append(trigger)
        else:
            before = len(self._kept)
            self._kept = list(self._merge(tuple(self._kept), trigger))[: before + 1]
            self.dropped += before + 1 - len(self._kept)
        if len(self._kept) > self._bound:
            del self._kept[(self._bound + 1) // 2]
            self.dropped += 1

    def extend(self, later: TriggerLog) -> None:
        """Append everything that ``later`` has, its count of dropped triggers too; the higher priority stays."""
        for trigger in later._kept:
            self.add(trigger)
        self.dropped += later.dropped
        self._priority = max((p for p in (self._priority, later._priority) if p is not None), default=None)

    def copy(self) -> TriggerLog:
        """Return a log of its own with the same content."""
        other = TriggerLog(self._bound, priority=self._priority, merge=self._merge)
        other._kept = list(self._kept)
        other.dropped = self.dropped
        return other

    def snapshot(self) -> tuple[object, ...]:
        """Return the kept triggers, oldest first."""
        return tuple(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<TriggerLog of {len(self._kept)}, {self.dropped} dropped>"
