"""Work queues: each item is queued once, never processed by two workers at once, and retried with rate limits.

The package contains plain, delaying and rate-limiting queues, rate limiters, queue orders, dead letters, metrics hooks
and bounded concurrency. Items are hashable, triggers are any objects; nothing here depends on Kubernetes.

The decisions are in ``core``, without clocks and event loops. The drivers add locks, wake-ups, a timer and logs.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
