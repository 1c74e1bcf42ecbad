"""Backoff with jitter, token buckets and option checks.

All functions are pure: ``now`` is in seconds on the caller's clock, and ``random`` is a number in [0, 1).
"""

from typing import final

import msgspec

from deltaloop._internal.pacing.backoff import LONGEST_ASKED as LONGEST_ASKED
from deltaloop._internal.pacing.backoff import Backoff as Backoff
from deltaloop._internal.pacing.backoff import BackoffManager as BackoffManager
from deltaloop._internal.pacing.backoff import jitter as jitter
from deltaloop._internal.pacing.backoff import retry_after_delay as retry_after_delay
from deltaloop._internal.pacing.token_bucket import Reservation as Reservation
from deltaloop._internal.pacing.token_bucket import TokenBucket as TokenBucket


@final
class Wait(msgspec.Struct, frozen=True):
    """Effect of a state machine: wait until ``until``, then call ``ask`` again."""

    until: float
