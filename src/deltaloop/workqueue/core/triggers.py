"""Triggers and priority of an item, merged from its adds; surplus triggers in the middle are dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

DEFAULT_MAX_TRIGGERS: Final = 16

IsEcho: TypeAlias = "Callable[[Any, object], bool]"
"""Function that returns whether a failed run of an item caused a trigger. It must not raise."""

MergeTriggers: TypeAlias = Callable[[tuple[object, ...], object], Sequence[object]]
"""Function that merges the stored triggers and a new trigger, and returns the triggers to store, oldest first."""


@final
class TriggerLog(msgspec.Struct, eq=False, gc=False):
    """Triggers of one item, oldest first, and its priority.

    Attributes:
        bound: Largest number of stored triggers. With 0, triggers are only counted.
        since: Time at which the item began to need this run. The queue core sets it.
        dropped: Number of triggers that were not stored.
    """

    bound: int = DEFAULT_MAX_TRIGGERS
    stated_priority: int | None = None
    merge: MergeTriggers | None = None
    since: float = 0.0
    dropped: int = 0
    kept: tuple[object, ...] = ()

    @property
    def priority(self) -> int:
        """Highest priority of all adds, or 0 if unspecified."""
        return 0 if self.stated_priority is None else self.stated_priority

    def add(self, trigger: object | None, priority: int | None = None) -> None:
        """Append or merge a trigger; None adds none. The highest priority counts."""
        if priority is not None and (self.stated_priority is None or priority > self.stated_priority):
            self.stated_priority = priority
        if trigger is None:
            return
        kept = self.kept
        if self.merge is None or not kept:
            kept += (trigger,)
        else:
            before = len(kept)
            kept = tuple(self.merge(kept, trigger))[: before + 1]
            self.dropped += before + 1 - len(kept)
        if len(kept) > self.bound:
            first = (self.bound + 1) // 2
            kept = kept[:first] + kept[first + 1 :]
            self.dropped += 1
        self.kept = kept

    def extend(self, later: TriggerLog) -> None:
        """Append the triggers and counts of a later log, and keep the higher priority."""
        for trigger in later.kept:
            self.add(trigger)
        self.dropped += later.dropped
        self.add(None, priority=later.stated_priority)

    def shorten(self, bound: int) -> TriggerLog:
        """Return a log with the same content and a smaller bound."""
        log = TriggerLog(bound, self.stated_priority, self.merge, self.since)
        log.extend(self)
        return log

    def copy(self) -> TriggerLog:
        return msgspec.structs.replace(self)

    def __len__(self) -> int:
        return len(self.kept)

    def __repr__(self) -> str:
        return f"<TriggerLog of {len(self.kept)}, {self.dropped} dropped>"
