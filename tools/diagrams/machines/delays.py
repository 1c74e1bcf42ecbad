"""Tables of the delays of rate limiters, and of the reflector's requests and reactions to errors."""

from __future__ import annotations

from tools.diagrams.machines.reflector import requests_of_states
from tools.diagrams.model import Table

from deltaloop.cache.core.reflector.reactions import Operation, Recovery
from deltaloop.cache.core.reflector.recoveries import RECOVERIES, ErrorKind
from deltaloop.workqueue import (
    BucketRateLimiter,
    ByErrorRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithJitterRateLimiter,
    WithMaxWaitRateLimiter,
)

ITEM = "default/web"
FAILURES = (1, 2, 3, 4, 11, 19)


def _noon() -> float:
    return 0.0


def _middle() -> float:
    return 0.5


def _limiters() -> list[tuple[str, RateLimiter[str]]]:
    """Return each limiter with the words that make it; no time passes, and chance is always in the middle."""
    slow = ItemExponentialFailureRateLimiter(1.0, 60.0)
    return [
        ("`ItemExponentialFailureRateLimiter()`", ItemExponentialFailureRateLimiter()),
        ("`ItemExponentialFailureRateLimiter(1, 60)`", slow),
        (
            "`ItemFastSlowRateLimiter(0.1, 30, max_fast_attempts=3)`",
            ItemFastSlowRateLimiter(0.1, 30, max_fast_attempts=3),
        ),
        ("`BucketRateLimiter(qps=10, burst=2)`", BucketRateLimiter(clock=_noon, qps=10, burst=2)),
        (
            "`MaxOfRateLimiter` of the first and the bucket",
            MaxOfRateLimiter[str](ItemExponentialFailureRateLimiter(), BucketRateLimiter(clock=_noon, qps=10, burst=2)),
        ),
        (
            "`WithMaxWaitRateLimiter` of the first, 10 s",
            WithMaxWaitRateLimiter[str](ItemExponentialFailureRateLimiter(), max_delay=10.0),
        ),
        (
            "`WithJitterRateLimiter` of the second, 0.1",
            WithJitterRateLimiter[str](ItemExponentialFailureRateLimiter(1.0, 60.0), factor=0.1, random=_middle),
        ),
        (
            "`ByErrorRateLimiter`, 2 s for this error",
            ByErrorRateLimiter[str]([(OSError, 2.0)], default=ItemExponentialFailureRateLimiter()),
        ),
    ]


def rate_limiters() -> Table:
    """Let one item fail again and again."""
    rows: list[tuple[str, ...]] = []
    for words, limiter in _limiters():
        delays = [limiter.when(ITEM, error=OSError()) for _ in range(max(FAILURES))]
        rows.append((words, *(f"{delays[number - 1]:.4g} s" for number in FAILURES)))
    heads = ("limiter", *(f"failure {number}" for number in FAILURES))
    return Table("rate-limiters", "workqueue", "workqueue/core/limiters.py", heads, rows)


def reactions() -> Table:
    """Write the reflector's table of errors: a row for each operation and each recovery."""
    rows: list[tuple[str, ...]] = []
    for operation in Operation:
        special = {kind: RECOVERIES[operation, kind] for kind in ErrorKind if (operation, kind) in RECOVERIES}
        for recovery in dict.fromkeys(special.values()):
            faults = ", ".join(kind.value for kind, what in special.items() if what is recovery)
            rows.append((operation.value, faults, recovery.value))
        if len(special) < len(ErrorKind):
            rows.append((operation.value, "all others" if special else "all", Recovery.LIST_LATER.value))
    heads = ("operation", "error", "reaction")
    return Table("reactions", "reflector", "cache/core/reflector/reactions.py", heads, rows)


def tables() -> list[Table]:
    """Return the tables of this module."""
    return [rate_limiters(), reactions(), requests_of_states()]
