"""Work queues: each item is queued once, never processed by two workers at once, and retried with rate limits.

The package contains plain, delaying and rate-limiting queues, rate limiters, queue orders, dead letters, metrics hooks
and bounded concurrency. Items are hashable, triggers are any objects; nothing here depends on Kubernetes.

The decisions are in ``core``, without clocks and event loops. The drivers add locks, wake-ups, a timer and logs.
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
