"""What is explored: whole by ``make -C lab explore-election``, near the start by the suite.

A tick is the retry period, and everything happens at ticks. The two clock rates are 1 and 11/16: that is a ratio of
1.45, and lease duration to renew deadline is 1.5.
"""

from __future__ import annotations

from typing import Final

from deltaloop.leaderelection.core.election import ElectionTiming
from tests.leaderelection.core.frozen import Member
from tests.leaderelection.core.worlds import Settings

TIMING: Final = ElectionTiming(lease_duration=3, renew_deadline=2, retry_period=1)
HALVES: Final = ElectionTiming(lease_duration=6, renew_deadline=4, retry_period=2)

USUAL: Final = Member(TIMING)
SLOW: Final = Member(TIMING, rate=11 / 16)

TWO: Final = Settings(members=(USUAL, USUAL))
THREE: Final = Settings(members=(USUAL, USUAL, USUAL))
