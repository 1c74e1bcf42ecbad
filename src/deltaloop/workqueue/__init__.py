"""Work queues: what needs work, in order, each item once, never with two workers; later, and at a bearable rate.

This room owns the plain, the delaying and the rate limiting queue, the rate limiters, the orders of the line, dead
letters, the context manager around one run, the hooks for metrics, and bounded fan-out. It is generic over items
(anything hashable) and triggers (any object) and knows no Kubernetes.

Every decision is in ``core/``, free of clocks and loops. The drivers add a lock, wake workers, keep one timer, and log.

To read: ``queue.py`` beside ``core/queue.py``, then ``delaying.py``, ``rate_limiting.py``, ``work.py`` and
``core/orders.py``.
"""

from deltaloop.workqueue.core.limiters import (
    BucketRateLimiter,
    ByErrorRateLimiter,
    GivesBack,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithJitterRateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)
from deltaloop.workqueue.core.orders import FairOrder, FirstInFirstOut, PriorityOrder, QueueOrder, namespace_flow
from deltaloop.workqueue.core.queue import QueueStatistics
from deltaloop.workqueue.delaying import DelayedItem, DelayingQueue
from deltaloop.workqueue.errors import QueueShutDownError, TerminalError
from deltaloop.workqueue.metrics import QueueMetrics
from deltaloop.workqueue.options import QueueOptions
from deltaloop.workqueue.parallelize import parallelize_until
from deltaloop.workqueue.queue import RunningItem, WorkQueue
from deltaloop.workqueue.rate_limiting import DeadLetter, RateLimitingQueue
from deltaloop.workqueue.work import Work

__all__ = [
    "BucketRateLimiter",
    "ByErrorRateLimiter",
    "DeadLetter",
    "DelayedItem",
    "DelayingQueue",
    "FairOrder",
    "FirstInFirstOut",
    "GivesBack",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "PriorityOrder",
    "QueueMetrics",
    "QueueOptions",
    "QueueOrder",
    "QueueShutDownError",
    "QueueStatistics",
    "RateLimiter",
    "RateLimitingQueue",
    "RunningItem",
    "TerminalError",
    "WithJitterRateLimiter",
    "WithMaxWaitRateLimiter",
    "Work",
    "WorkQueue",
    "default_controller_rate_limiter",
    "namespace_flow",
    "parallelize_until",
]
