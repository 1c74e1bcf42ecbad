from __future__ import annotations

import sys
import time

import pytest

from deltaloop.leaderelection.clock import boot_time


def test_boot_time_does_not_decrease() -> None:
    readings = [boot_time() for _ in range(100)]
    assert readings == sorted(readings)


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux's")
def test_boot_time_includes_suspended_time() -> None:
    assert boot_time() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)


@pytest.mark.parametrize(("platform", "clock"), [("linux", "CLOCK_BOOTTIME"), ("darwin", "CLOCK_MONOTONIC"), ("x", "")])
def test_boot_clock_of_each_platform(platform: str, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {"CLOCK_BOOTTIME": 7, "CLOCK_MONOTONIC": 1}
    for name, number in clocks.items():
        monkeypatch.setattr(time, name, number, raising=False)

    def clock_gettime(number: int) -> str:
        return f"clock {number}"

    with monkeypatch.context() as patched:
        patched.setattr(sys, "platform", platform)
        patched.setattr(time, "clock_gettime", clock_gettime, raising=False)
        patched.setattr(time, "monotonic", lambda: "monotonic")
        found: object = boot_time()
    assert found == (f"clock {clocks[clock]}" if clock else "monotonic")
