"""Work queues: what needs work, in order, each item once, never with two workers; later, and at a bearable rate.

This room owns the plain, the delaying and the rate limiting queue, the rate limiters, the orders of the line, dead
letters, the context manager around one run, the hooks for metrics, and bounded fan-out. It is generic over items
(anything hashable) and triggers (any object) and knows no Kubernetes.

Every decision is in ``core/``, free of clocks and loops. The drivers add a lock, wake workers, keep one timer, and log.

To read: ``queue.py`` beside ``core/queue.py``, then ``delaying.py``, ``rate_limiting.py``, ``work.py`` and
``core/orders.py``.
"""

from deltaloop.workqueue.core.limiters import BucketRateLimiter as BucketRateLimiter
from deltaloop.workqueue.core.limiters import ByErrorRateLimiter as ByErrorRateLimiter
from deltaloop.workqueue.core.limiters import ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter
from deltaloop.workqueue.core.limiters import ItemFastSlowRateLimiter as ItemFastSlowRateLimiter
from deltaloop.workqueue.core.limiters import MaxOfRateLimiter as MaxOfRateLimiter
from deltaloop.workqueue.core.limiters import RateLimiter as RateLimiter
from deltaloop.workqueue.core.limiters import RefundableRateLimiter as RefundableRateLimiter
from deltaloop.workqueue.core.limiters import WithJitterRateLimiter as WithJitterRateLimiter
from deltaloop.workqueue.core.limiters import WithMaxWaitRateLimiter as WithMaxWaitRateLimiter
from deltaloop.workqueue.core.limiters import default_controller_rate_limiter as default_controller_rate_limiter
from deltaloop.workqueue.core.orders import FairOrder as FairOrder
from deltaloop.workqueue.core.orders import FirstInFirstOut as FirstInFirstOut
from deltaloop.workqueue.core.orders import PriorityOrder as PriorityOrder
from deltaloop.workqueue.core.orders import QueueOrder as QueueOrder
from deltaloop.workqueue.core.orders import by_namespace as by_namespace
from deltaloop.workqueue.core.queue import QueueStatistics as QueueStatistics
from deltaloop.workqueue.delaying import DelayedItem as DelayedItem
from deltaloop.workqueue.delaying import DelayingQueue as DelayingQueue
from deltaloop.workqueue.metrics import QueueMetrics as QueueMetrics
from deltaloop.workqueue.options import QueueOptions as QueueOptions
from deltaloop.workqueue.parallelize import parallelize_until as parallelize_until
from deltaloop.workqueue.queue import RunningItem as RunningItem
from deltaloop.workqueue.queue import WorkQueue as WorkQueue
from deltaloop.workqueue.rate_limiting import DeadLetter as DeadLetter
from deltaloop.workqueue.rate_limiting import RateLimitingQueue as RateLimitingQueue
from deltaloop.workqueue.work import Work as Work
