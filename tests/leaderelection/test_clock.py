from __future__ import annotations

import sys
import time

import pytest

from deltaloop.leaderelection.clock import boot_time


def test_it_does_not_go_back() -> None:
    readings = [boot_time() for _ in range(100)]
    assert readings == sorted(readings)


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux's")
def test_it_counts_the_time_asleep() -> None:
    assert boot_time() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)
