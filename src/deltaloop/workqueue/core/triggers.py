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
from copy import copy
from typing import Any, Final, TypeAlias, final

import msgspec

DEFAULT_MAX_TRIGGERS: Final = 16

IsEcho: TypeAlias = Callable[[Any, object], bool]
"""Takes an item and a trigger; returns whether a failed run of the item caused the trigger. It must not raise."""

MergeTriggers: TypeAlias = Callable[[tuple[object, ...], object], Sequence[object]]
"""Takes the triggers that are kept, oldest first, and a new one; returns what to keep of them, oldest first."""


@final
class TriggerLog(msgspec.Struct, eq=False, gc=False):
    """The triggers of one item, oldest first, at most ``bound`` of them, and its priority.

    Attributes:
        bound: Most triggers kept; 0 keeps none and only counts them.
        stated_priority: How urgent the item is, for queues with priorities; higher is more urgent. None says nothing.
        merge: Folds a new trigger into those that are kept; None appends it. It must not raise.
        since: When the item began to need the run that these triggers are for; the queue core says when.
        dropped: How many triggers came that are not kept.
        kept: The triggers, oldest first.
    """

    bound: int = DEFAULT_MAX_TRIGGERS
    stated_priority: int | None = None
    merge: MergeTriggers | None = None
    since: float = 0.0
    dropped: int = 0
    kept: tuple[object, ...] = ()

    @property
    def priority(self) -> int:
        """The highest priority of all that was merged; 0 if nothing was said."""
        return 0 if self.stated_priority is None else self.stated_priority

    def add(self, trigger: object | None, *, priority: int | None = None) -> None:
        """Append a trigger, or merge it; None stands for no trigger.

        Args:
            trigger: Why the item is to run.
            priority: How urgent it is; the highest counts.
        """
        if priority is not None and (self.stated_priority is None or priority > self.stated_priority):
            self.stated_priority = priority
        if trigger is None:
            return
        kept, bound = self.kept, self.bound
        if self.merge is None or not kept:
            kept = (*kept, trigger)
        else:
            before = len(kept)
            kept = tuple(self.merge(kept, trigger))[: before + 1]
            self.dropped += before + 1 - len(kept)
        if len(kept) > bound:
            first = (bound + 1) // 2
            kept = kept[:first] + kept[first + 1 :]
            self.dropped += 1
        self.kept = kept

    def extend(self, later: TriggerLog) -> None:
        """Append everything that ``later`` has, its count of dropped triggers too; the higher priority stays."""
        for trigger in later.kept:
            self.add(trigger)
        self.dropped += later.dropped
        self.add(None, priority=later.stated_priority)

    def shorten(self, bound: int) -> TriggerLog:
        """Return a log with the same content and a smaller bound."""
        if len(self.kept) <= bound:
            self.bound = bound
            return self
        log = TriggerLog(bound, self.stated_priority, self.merge, self.since)
        log.extend(self)
        return log

    def copy(self) -> TriggerLog:
        """Return a log of its own with the same content."""
        return copy(self)

    def __len__(self) -> int:
        return len(self.kept)

    def __repr__(self) -> str:
        return f"<TriggerLog of {len(self.kept)}, {self.dropped} dropped>"
