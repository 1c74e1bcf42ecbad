"""What a program sees of chance and time."""

# ruff: noqa: DTZ001, DTZ005, DTZ011, TID251 - these are what programs under test call, and nothing sleeps here

from __future__ import annotations

import datetime as dt
import importlib
import os
import random
import secrets
import sys
import threading
import time
import uuid
from pathlib import Path
from random import SystemRandom
from time import time as wall_time
from typing import Any

import pytest

from deltaloop.api.times import utc_now
from deltaloop.errors import SimulationRunningError
from deltaloop.simulation.determinism import deterministic
from deltaloop.simulation.under_test import is_under_test

EPOCH = 1_767_225_600.0


def seen(seed: int, now: float = 5.0) -> list[Any]:
    with deterministic(seed, clock=lambda: now, epoch=EPOCH):
        return [
            random.random(),
            random.choice(range(1000)),
            SystemRandom().random(),
            secrets.token_hex(8),
            os.urandom(4),
            str(uuid.uuid4()),
            time.time(),
            time.time_ns(),
            time.monotonic(),
            wall_time(),
            time.clock_gettime(time.CLOCK_REALTIME),
            time.clock_gettime_ns(time.CLOCK_MONOTONIC),
            dt.datetime.now(dt.UTC),
            dt.datetime.now(),
            dt.date.today(),
            utc_now(),
        ]


@pytest.mark.real_time
def test_seed_determines_random_values() -> None:
    assert seen(1) == seen(1)
    assert not {*map(str, seen(1)[:6])} & {*map(str, seen(2)[:6])}


@pytest.mark.real_time
def test_time_functions_use_virtual_clock() -> None:
    instant = dt.datetime(2026, 1, 1, 0, 0, 5, tzinfo=dt.UTC)
    *_, wall, nanoseconds, monotonic, imported, of_the_system, running, aware, naive, day, ours = seen(1)
    assert (of_the_system, running) == (EPOCH + 5, 5_000_000_000)
    assert (wall, nanoseconds, monotonic, imported) == (EPOCH + 5, int((EPOCH + 5) * 1e9), 5.0, EPOCH + 5)
    assert aware == ours == instant
    assert naive.tzinfo is None
    assert day == naive.date()


@pytest.mark.real_time
def test_cpu_time_is_real() -> None:
    with deterministic(1, clock=lambda: 1e9, epoch=EPOCH):
        assert time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) < 1e9
        assert time.clock_gettime(time.pthread_getcpuclockid(threading.get_ident())) < 1e9


@pytest.mark.real_time
def test_random_values_of_import_do_not_shift_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "draws_at_once.py").write_text("import uuid\n\ndrawn = uuid.uuid4()\n")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])

    def drawn() -> str:
        with deterministic(1, clock=lambda: 0.0, epoch=EPOCH):
            importlib.import_module("draws_at_once")
            return str(uuid.uuid4())

    assert drawn() == drawn()


@pytest.mark.real_time
def test_determinism_restores_functions() -> None:
    state, real = random.getstate(), (time.time, time.sleep, os.urandom, dt.datetime, wall_time)
    seen(1)
    assert random.getstate() == state
    assert (time.time, time.sleep, os.urandom, dt.datetime, wall_time) == real
    with pytest.raises(LookupError), deterministic(1, clock=lambda: 0.0, epoch=0.0):
        raise LookupError
    assert (time.time, time.sleep, os.urandom, dt.datetime, wall_time) == real


@pytest.mark.real_time
def test_earlier_dates_remain_valid() -> None:
    before = dt.datetime(2026, 1, 1)
    with deterministic(1, clock=lambda: 0.0, epoch=EPOCH):
        assert isinstance(before, dt.datetime)
        assert isinstance(before, dt.date)
        assert not isinstance("2026", dt.date)
        assert dt.datetime(2026, 1, 1) == before
        assert isinstance(dt.datetime.now() - before, dt.timedelta)
        assert dt.datetime.fromisoformat("2026-01-01") == before


@pytest.mark.real_time
def test_new_module_names_are_replaced() -> None:
    module = sys.modules[__name__]
    with deterministic(1, clock=lambda: 5.0, epoch=EPOCH):
        pass
    setattr(module, "since_then", time.time)  # noqa: B010
    try:
        with deterministic(1, clock=lambda: 5.0, epoch=EPOCH):
            assert vars(module)["since_then"]() == EPOCH + 5.0
    finally:
        delattr(module, "since_then")


def test_second_simulation_in_process_is_rejected() -> None:
    def other() -> None:
        with pytest.raises(SimulationRunningError):
            seen(2)

    with deterministic(1, clock=lambda: 0.0, epoch=EPOCH):
        other()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen(1) == seen(1)


@pytest.mark.parametrize(
    ("module", "is_the_program_s"),
    [
        (sys.modules[__name__], True),
        (uuid, False),
        (pytest, False),
        (sys.modules[deterministic.__module__], False),
    ],
)
def test_only_modules_of_program_are_under_test(module: Any, *, is_the_program_s: bool) -> None:
    assert is_under_test(module.__file__) is is_the_program_s


def test_package_with_similar_name_is_under_test() -> None:
    ours = Path(sys.modules["deltaloop"].__file__ or "").parent
    assert not is_under_test(str(ours / "kinds.py"))
    assert is_under_test(str(ours.with_name("deltaloop_operators") / "main.py"))


def test_sleep_takes_no_time() -> None:
    with deterministic(1, clock=lambda: 0.0, epoch=EPOCH):
        time.sleep(3600)
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)


class NeverEqual:
    """As arrays of numbers are: comparing gives no yes or no."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("the truth value of this is ambiguous")


NEVER_EQUAL = NeverEqual()


@pytest.mark.real_time
def test_module_values_are_not_compared() -> None:
    with deterministic(1, clock=lambda: 0.0, epoch=EPOCH):
        assert wall_time() == EPOCH
        assert isinstance(NEVER_EQUAL, NeverEqual)
