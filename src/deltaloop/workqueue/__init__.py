"""Work queues: what needs work, in order, each item once, never with two workers; later, and at a bearable rate.

This room owns the plain, the delaying and the rate limiting queue, the rate limiters, the context manager around one
run, and the hooks for metrics. It is generic over items (anything hashable) and triggers (any object) and knows no
Kubernetes.

Every decision is in ``core/``, free of clocks and loops. The drivers add a lock, wake workers, keep one timer, and log.
To read: ``queue.py`` beside ``core/queue.py``, then ``delaying.py``, ``rate_limiting.py`` and ``work.py``.
"""

from deltaloop.workqueue.core.limiters import (
    BucketRateLimiter,
    GivesBack,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)
from deltaloop.workqueue.core.queue import QueueStatistics
from deltaloop.workqueue.delaying import DelayedItem, DelayingQueue
from deltaloop.workqueue.errors import QueueShutDownError
from deltaloop.workqueue.metrics import NoMetrics, QueueMetrics
from deltaloop.workqueue.queue import QueueOptions, WorkQueue
from deltaloop.workqueue.rate_limiting import RateLimitingQueue
from deltaloop.workqueue.work import Work

__all__ = [
    "BucketRateLimiter",
    "DelayedItem",
    "DelayingQueue",
    "GivesBack",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "NoMetrics",
    "QueueMetrics",
    "QueueOptions",
    "QueueShutDownError",
    "QueueStatistics",
    "RateLimiter",
    "RateLimitingQueue",
    "WithMaxWaitRateLimiter",
    "Work",
    "WorkQueue",
    "default_controller_rate_limiter",
]
