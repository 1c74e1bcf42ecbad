"""When to try again: backoff with jitter, and token buckets.

Ground that four rooms share. Everything here is pure: ``now`` is seconds on the caller's clock, ``random`` a number in
[0, 1) that the caller drew.
"""

from deltaloop._internal.pacing.backoff import LONGEST_ASKED as LONGEST_ASKED
from deltaloop._internal.pacing.backoff import Backoff as Backoff
from deltaloop._internal.pacing.backoff import BackoffManager as BackoffManager
from deltaloop._internal.pacing.backoff import jitter as jitter
from deltaloop._internal.pacing.backoff import retry_after_delay as retry_after_delay
from deltaloop._internal.pacing.token_bucket import Reservation as Reservation
from deltaloop._internal.pacing.token_bucket import TokenBucket as TokenBucket
from deltaloop._internal.pacing.wait import Wait as Wait
