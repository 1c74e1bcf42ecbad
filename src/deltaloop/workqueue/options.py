"""The options of queues, and how the functions among them are kept from costing an item.

A function that a caller brings along (the flow of an item, the merging of triggers) is called under the queue's lock,
in the middle of an add. If it raises, the add must still take effect: the error is logged, and a default stands in.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.core.dead_letters import DEFAULT_MAX_DEAD_LETTERS
from deltaloop.workqueue.core.orders import FairOrder, FirstInFirstOut, Patience, PriorityOrder, QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, MergeTriggers

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


@final
class QueueOptions(Options, frozen=True, kw_only=True):
    """What can be chosen about a queue; the defaults are upstream's behaviour.

    Attributes:
        max_triggers: Most triggers kept for one run of one item; 0 keeps none.
        merge_triggers: Folds a new trigger into those that an item has: it gets them, oldest first, and the new one,
            and returns what to keep. None keeps all, as far as ``max_triggers`` allows. It is called under the queue's
            lock; what it raises is logged, and the trigger is kept then.
        priority_aging: Turns priorities on: how many seconds an item of each priority may be overtaken by others. A
            priority that is not listed has the patience of the next lower one that is. For example ``{0: 0.0, -100:
            30.0}``: what is added with ``priority=-100`` lets everything else pass for half a minute. None takes no
            notice of priorities.
        fairness_key: Turns fair shares on: says to which flow an item belongs, and flows take turns. ``by_namespace``
            is made for keys such as ``namespace/name``. It is called under the queue's lock; what it raises is logged,
            and the item is in the flow None then. None lets items of all flows stand in one line.
        order: Makes a line of your own instead, which may do whatever it likes about order.
        max_requeues: How often in a row a ``RateLimitingQueue`` retries a failed item before it parks it; None for
            always.
        max_dead_letters: Most dead letters kept; the oldest goes then.
        jitter: By which part of itself a ``RateLimitingQueue`` lengthens a retry's delay at most, by chance.
        metrics_period: Seconds between reports of unfinished work to the metrics hooks (upstream: 0.5).
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
        """Refuse what makes no sense."""
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
            Patience(self.priority_aging)
        if self.order is not None and (self.priority_aging is not None or self.fairness_key is not None):
            raise ValueError("QueueOptions.order cannot be combined with patience or flow. Use one of them.")


def new_order(options: QueueOptions, *, queue: str) -> QueueOrder[Any] | None:
    """Make the line that the options ask for, empty; None is first come, first served."""
    if options.order is not None:
        return options.order()
    patience, flow = options.priority_aging, options.fairness_key

    def one_line() -> QueueOrder[Any]:
        return FirstInFirstOut() if patience is None else PriorityOrder(patience)

    if flow is None:
        return None if patience is None else one_line()
    return FairOrder(_guarded_flow(flow, queue), make_order=one_line)


def guarded_merge(options: QueueOptions, *, queue: str) -> MergeTriggers | None:
    """Return the merge function as one that never raises."""
    merge = options.merge_triggers
    if merge is None:
        return None

    errors = ErrorSummaries()

    def guarded(kept: tuple[object, ...], trigger: object) -> tuple[object, ...]:
        try:
            return tuple(merge(kept, trigger))
        except Exception as error:  # noqa: BLE001 - it is logged, and nothing is lost
            message = "a merge function for triggers failed; the trigger is kept"
            errors.log(logger, logging.ERROR, message, error, now=time.monotonic(), extra={"queue": queue})
            return (*kept, trigger)

    return guarded


def _guarded_flow(flow: Callable[[Any], Hashable], queue: str) -> Callable[[Any], Hashable]:
    errors = ErrorSummaries()

    def guarded(item: object) -> Hashable:
        try:
            found = flow(item)
            hash(found)
        except Exception as error:  # noqa: BLE001 - it is logged, and the item has no flow
            extra = {"queue": queue, "key": item}
            errors.log(logger, logging.ERROR, "a flow function failed", error, now=time.monotonic(), extra=extra)
            return None
        return found

    return guarded
