"""Options of work queues; if functions of the caller raise, the error is logged and a default applies."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop._internal.root_error import InvalidArgumentError
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.core.dead_letters import DEFAULT_MAX_DEAD_LETTERS
from deltaloop.workqueue.core.queue_order import FirstInFirstOut, QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, MergeTriggers

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


@final
class QueueOptions(Options, frozen=True, kw_only=True):
    """Options of a queue.

    The defaults correspond to client-go's behavior.

    Attributes:
        max_triggers: Largest number of stored triggers per run of an item. 0 stores none.
        merge_triggers: Function that gets the triggers of an item, oldest first, and a new one, and returns the
            triggers to store. None stores all up to ``max_triggers``. It runs under the queue's lock. If it raises, the
            error is logged and the trigger is stored.
        priority_aging: Seconds for which other items may overtake an item, by priority. An unlisted priority has the
            value of the next lower priority. For example, with ``{0: 0.0, -100: 30.0}``, an item added with
            ``priority=-100`` lets other items pass for half a minute. None ignores priorities.
        fairness_key: Function that returns the flow of an item; flows take turns. ``by_namespace`` is suitable for keys
            such as ``namespace/name``. It runs under the queue's lock. If it raises, the error is logged and the item
            is in the flow None. None disables fair shares.
        order: Function that creates a custom order, instead of ``priority_aging`` and ``fairness_key``.
        max_requeues: Number of consecutive retries before a ``RateLimitingQueue`` parks an item, or None for no limit.
        max_dead_letters: Largest number of dead letters. The oldest is dropped first.
        jitter: Largest random extension of retry delays in a ``RateLimitingQueue``, relative to the delay.
        metrics_period: Seconds between reports of unfinished work to the metrics hooks (client-go: 0.5).
    """

    max_triggers: int = DEFAULT_MAX_TRIGGERS
    merge_triggers: MergeTriggers | None = None
    priority_aging: Mapping[int, float] | None = None
    fairness_key: Callable[[Any], Hashable] | None = None
    order: Callable[[], QueueOrder[Any]] | None = None
    max_requeues: int | None = None
    max_dead_letters: int = DEFAULT_MAX_DEAD_LETTERS
    jitter: float = 0.0
    metrics_period: float = 0.5

    def __post_init__(self) -> None:
        check_types(self)
        require_not_negative(
            "QueueOptions",
            max_triggers=self.max_triggers,
            max_requeues=0 if self.max_requeues is None else self.max_requeues,
            max_dead_letters=self.max_dead_letters,
            jitter=self.jitter,
        )
        require_positive("QueueOptions", metrics_period=self.metrics_period)
        if self.priority_aging is not None:
            from deltaloop.workqueue.core.orders import Patience  # for priorities

            Patience(self.priority_aging)
        if self.order is not None and (self.priority_aging is not None or self.fairness_key is not None):
            raise InvalidArgumentError(
                "cannot be combined with patience or flow. Use one.", argument="QueueOptions.order"
            )


def new_order(options: QueueOptions, *, queue: str) -> QueueOrder[Any] | None:
    """Create the empty order of the options. None means first in, first out."""
    if options.order is not None:
        return options.order()
    patience, flow = options.priority_aging, options.fairness_key

    if patience is None and flow is None:
        return None
    from deltaloop.workqueue.core.orders import FairOrder, PriorityOrder

    def one_line() -> QueueOrder[Any]:
        return FirstInFirstOut() if patience is None else PriorityOrder(patience)

    if flow is None:
        return one_line()
    return FairOrder(_guarded_flow(flow, queue), make_order=one_line)


def guarded_merge(options: QueueOptions, *, queue: str) -> MergeTriggers | None:
    """Return the merge function with a guard against exceptions."""
    merge = options.merge_triggers
    if merge is None:
        return None

    errors = ErrorSummaries()

    def guarded(kept: tuple[object, ...], trigger: object) -> tuple[object, ...]:
        try:
            return tuple(merge(kept, trigger))
        except Exception as error:  # noqa: BLE001 - logged, and the trigger is stored
            message = "merge function for triggers failed, keeping the trigger"
            errors.log(logger, logging.ERROR, message, error, now=time.monotonic(), extra={"queue": queue})
            return (*kept, trigger)

    return guarded


def _guarded_flow(flow: Callable[[Any], Hashable], queue: str) -> Callable[[Any], Hashable]:
    errors = ErrorSummaries()

    def guarded(item: object) -> Hashable:
        try:
            found = flow(item)
            hash(found)
        except Exception as error:  # noqa: BLE001 - logged, and the item has no flow
            extra = {"queue": queue, "key": item}
            errors.log(logger, logging.ERROR, "flow function failed", error, now=time.monotonic(), extra=extra)
            return None
        return found

    return guarded
