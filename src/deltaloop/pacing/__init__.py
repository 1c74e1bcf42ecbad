"""When to try again: backoff with jitter, and token buckets.

Ground that four rooms share. Everything here is pure: ``now`` is seconds on the caller's clock, ``chance`` a number in
[0, 1) that the caller drew.
"""

from deltaloop.pacing.backoff import LONGEST_ASKED, Backoff, BackoffManager, asked_delay, jitter
from deltaloop.pacing.token_bucket import Reservation, TokenBucket
from deltaloop.pacing.wait import Wait

__all__ = ["LONGEST_ASKED", "Backoff", "BackoffManager", "Reservation", "TokenBucket", "Wait", "asked_delay", "jitter"]
