"""Snapshots of items."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.dead_letters import ParkedItem
from deltaloop.workqueue.core.delay_heap import WaitingItem
from deltaloop.workqueue.core.queue import Run

K = TypeVar("K", bound=Hashable)


@final
class RunningItem(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that a worker is processing.

    Attributes:
        item: Item, usually the key of an object.
        seconds: Duration of the run in seconds.
        attempts: Number of this attempt, beginning with 1.
        triggers: Triggers of the run.
    """

    item: K
    seconds: float
    attempts: int
    triggers: tuple[object, ...]


@final
class DelayedItem(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """A delayed item.

    Attributes:
        item: Item to add.
        delay: Seconds until the item is added, or zero if it is due.
        triggers: Triggers of the future run.
        rate_limited: Whether the delay comes from a rate limiter, as for retries.
    """

    item: K
    delay: float
    triggers: tuple[object, ...]
    rate_limited: bool = False


@final
class DeadLetter(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that failed permanently and is parked.

    Attributes:
        item: Item whose run failed.
        error: Last error, or None if the call did not specify one.
        attempts: Number of consecutive failed runs.
        triggers: Triggers of its last run.
        triggers_dropped: Number of triggers that were not stored.
        parked_for: Seconds since the last failure.
    """

    item: K
    error: BaseException | None
    attempts: int
    triggers: tuple[object, ...]
    triggers_dropped: int
    parked_for: float


def show_run(run: Run[K], now: float) -> RunningItem[K]:
    return RunningItem(
        item=run.item,
        seconds=max(0.0, now - run.started_at),
        attempts=run.failures + 1,
        triggers=run.triggers.kept,
    )


def show_delay(delay: WaitingItem[K], now: float) -> DelayedItem[K]:
    left = max(0.0, delay.due_at - now)
    return DelayedItem(item=delay.item, delay=left, triggers=delay.triggers.kept, rate_limited=delay.paid)


def show_letter(letter: ParkedItem[K], now: float) -> DeadLetter[K]:
    return DeadLetter(
        item=letter.item,
        error=letter.error,
        attempts=letter.attempts,
        triggers=letter.triggers.kept,
        triggers_dropped=letter.triggers.dropped,
        parked_for=max(0.0, now - letter.parked_at),
    )
