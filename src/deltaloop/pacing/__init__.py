"""When to try again: backoff with jitter, and token buckets.

Ground that four rooms share. Everything here is pure: ``now`` is seconds on the caller's clock, ``random`` a number in
[0, 1) that the caller drew.
"""

from deltaloop.pacing.backoff import LONGEST_ASKED as LONGEST_ASKED
from deltaloop.pacing.backoff import Backoff as Backoff
from deltaloop.pacing.backoff import BackoffManager as BackoffManager
from deltaloop.pacing.backoff import asked_delay as asked_delay
from deltaloop.pacing.backoff import jitter as jitter
from deltaloop.pacing.token_bucket import Reservation as Reservation
from deltaloop.pacing.token_bucket import TokenBucket as TokenBucket
from deltaloop.pacing.wait import Wait as Wait
