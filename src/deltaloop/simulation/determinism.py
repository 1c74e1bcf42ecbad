"""Deterministic time and randomness for a run, in the whole process.

    random.*               the module's own generator, seeded; instances of random.Random belong to the program
    os.urandom             also uuid.uuid4, secrets and random.SystemRandom
    time.time, monotonic   and similar functions, datetime.now, today, utcnow: the clock of the run's event loop;
                           also time.clock_gettime, except for clocks of processor time

Modules of the program under test also get the simulated functions that they imported by name. Other processes, thread
scheduling and extension modules are not controlled. Set ``PYTHONHASHSEED`` to get the same order of sets.
"""

from __future__ import annotations

import datetime as dt
import importlib
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any, Final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.simulation.under_test import TURN, is_turn_of_loop, is_under_test
from deltaloop.testing.deterministic_loop.thread_turns import sleep

_REAL_DATETIME: Final = dt.datetime
_REAL_DATE: Final = dt.date
_IMPORTS: Final = "<frozen importlib._bootstrap>"
# Importing a module creates a lock for it. If Python has no such list, the frames are searched each time.
_IMPORT_LOCKS: Final[Collection[object]] = getattr(
    importlib.import_module("_frozen_importlib"), "_module_locks", (None,)
)
_NANOSECONDS: Final = 1_000_000_000
_OF_THE_WALL: Final = {vars(time).get(name) for name in ("CLOCK_REALTIME", "CLOCK_TAI")} - {None}
_RUNNING: Final = ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_UPTIME", "CLOCK_UPTIME_RAW")
_CLOCKS: Final = _OF_THE_WALL | ({vars(time).get(name) for name in _RUNNING} - {None})


# Acquired without blocking, so that a second simulation fails instead of waiting.
_ONE_AT_A_TIME: Final = threading.Lock()


class SimulationRunningError(DeltaloopError):
    """A simulation was started while the process runs a different one, in a thread or within a scenario."""

    def __init__(self) -> None:
        super().__init__(
            "another simulation is running, and it controls the clock and randomness of this process. Run simulations "
            "one after another, or in separate processes."
        )


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Disable logging in this block, because the run reports the errors of the program itself."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def deterministic(seed: int, *, clock: Callable[[], float], epoch: float) -> Generator[None, None, None]:
    """Make randomness and time deterministic in this block, and restore both afterwards."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise SimulationRunningError
    try:
        state = random.getstate()
        with _replaced(_simulated(seed, clock, epoch)):
            random.seed(seed)
            try:
                yield
            finally:
                random.setstate(state)
    finally:
        _ONE_AT_A_TIME.release()


def _simulated(seed: int, clock: Callable[[], float], epoch: float) -> dict[tuple[ModuleType, str], object]:
    entropy = random.Random(f"entropy of {seed}")

    real_urandom = os.urandom

    def urandom(size: int, /) -> bytes:
        # The first run that imports a module executes it. Its random numbers must not shift those of the run.
        return real_urandom(size) if _imports(sys._getframe(1)) else entropy.randbytes(size)  # noqa: SLF001

    def now() -> float:
        return epoch + clock()

    def now_ns() -> int:
        return int(now() * _NANOSECONDS)

    def monotonic_ns() -> int:
        return int(clock() * _NANOSECONDS)

    real_clock = time.clock_gettime

    def clock_gettime(clock_id: int, /) -> float:
        return real_clock(clock_id) if clock_id not in _CLOCKS else now() if clock_id in _OF_THE_WALL else clock()

    def clock_gettime_ns(clock_id: int, /) -> int:
        return int(clock_gettime(clock_id) * _NANOSECONDS)

    simulated: dict[tuple[ModuleType, str], object] = {
        (time, "clock_gettime"): clock_gettime,
        (time, "clock_gettime_ns"): clock_gettime_ns,
        (os, "urandom"): urandom,
        (random, "_urandom"): urandom,
        (time, "time"): now,
        (time, "time_ns"): now_ns,
        (time, "monotonic"): clock,
        (time, "monotonic_ns"): monotonic_ns,
        (time, "perf_counter"): clock,
        (time, "perf_counter_ns"): monotonic_ns,
        (time, "sleep"): sleep,
        (dt, "datetime"): _datetime_at(now),
        (dt, "date"): _date_at(now),
    }
    return simulated


def _imports(frame: FrameType | None) -> bool:
    if not _IMPORT_LOCKS:
        return False  # fast path: no import is running
    while frame is not None:
        code = frame.f_code
        if code.co_name == TURN and is_turn_of_loop(code):
            return False  # outer frames run the simulation, possibly during an import
        if code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False


@contextmanager
def _replaced(simulated: dict[tuple[ModuleType, str], object]) -> Generator[None, None, None]:
    real = {id(vars(module)[name]): value for (module, name), value in simulated.items()}
    changed: list[tuple[ModuleType, str, object]] = []

    def put(module: ModuleType, name: str, value: object) -> None:
        changed.append((module, name, vars(module)[name]))
        setattr(module, name, value)

    try:
        for (module, name), value in simulated.items():
            put(module, name, value)
        modules = _modules_under_test(len(sys.modules))
        for module, name in _holding(tuple(real), tuple(len(vars(module)) for module in modules)):
            value = real.get(id(vars(module).get(name)))
            if value is not None:
                put(module, name, value)
        yield
    finally:
        for module, name, value in reversed(changed):
            setattr(module, name, value)


@lru_cache(maxsize=1)
def _modules_under_test(loaded: int) -> list[ModuleType]:
    """Return modules that belong neither to the standard library nor to installed packages nor to deltaloop."""
    del loaded
    found: list[ModuleType] = []
    for name, module in [*sys.modules.items()]:
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top == "deltaloop":
            continue
        file = getattr(module, "__file__", None)
        if name == "__main__" or (isinstance(file, str) and is_under_test(file)):
            found.append(module)
    return found


@lru_cache(maxsize=1)
def _holding(real: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[ModuleType, str]]:
    """Return the names in modules under test that refer to replaced objects, compared by identity."""
    del sizes
    return [
        (module, name)
        for module in _modules_under_test(len(sys.modules))
        for name, value in [*vars(module).items()]
        if id(value) in real
    ]


class _Instances(type):
    """Metaclass that accepts real dates as instances of their simulated classes."""

    real: type = object

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.real)


def _datetime_at(now: Callable[[], float]) -> type:
    class SimulatedDatetime(dt.datetime, metaclass=_Instances):
        real = _REAL_DATETIME

        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            return _REAL_DATETIME(*arguments, **keywords)

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return _REAL_DATETIME.fromtimestamp(now(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return _REAL_DATETIME.fromtimestamp(now(), dt.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return _REAL_DATETIME.fromtimestamp(now())

    return SimulatedDatetime


def _date_at(now: Callable[[], float]) -> type:
    class SimulatedDate(dt.date, metaclass=_Instances):
        real = _REAL_DATE

        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            return _REAL_DATE(*arguments, **keywords)

        @classmethod
        def today(cls) -> Any:
            return _REAL_DATETIME.fromtimestamp(now()).date()

    return SimulatedDate
