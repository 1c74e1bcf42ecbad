"""A pytest plugin: end a test at the limit of pytest-timeout, also if its code keeps what the limit raises.

pytest-timeout raises ``Failed`` once. asyncio stores it as the result of the task that happens to run, so a loop that
spins continues; Hypothesis takes it for a finding, and runs the example again. Both let a ``KeyboardInterrupt`` pass.
It is raised again until the phase of the test (setup, call or teardown) has ended, each of which has the whole limit.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType, TracebackType
from typing import Any, Final, Protocol, cast

import pytest

_MOST_SECONDS_BETWEEN: Final = 10.0


class TimeLimitReached(KeyboardInterrupt):
    """Raised wherever the main thread is when a test's limit has passed."""


class _Settings(Protocol):
    @property
    def timeout(self) -> float: ...

    @property
    def method(self) -> str: ...


_LIMIT: Final = pytest.StashKey[float]()
_REACHED: Final = pytest.StashKey[bool]()
_Handler = Callable[[int, FrameType | None], Any] | int | None
_BEFORE: Final = pytest.StashKey[_Handler]()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: _Settings) -> bool | None:
    """Take the limit of a test from pytest-timeout; leave tests outside the main thread to it."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    limit = item.stash[_LIMIT] = settings.timeout

    def reached(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimitReached(f"the test has run for {limit:g} s")

    item.stash[_BEFORE] = signal.signal(signal.SIGALRM, reached)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give the signal back to the test that runs pytest within itself, if one does."""
    try:
        return (yield)
    finally:
        if _BEFORE in item.stash:
            signal.signal(signal.SIGALRM, item.stash[_BEFORE])
            del item.stash[_BEFORE], item.stash[_LIMIT]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Keep the failure like pytest keeps other failures, because the next test can request the fixture, too."""
    try:
        return (yield)
    except TimeLimitReached as error:
        failure = _failure(error, request.config)
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (failure, failure.__traceback__))  # type: ignore[arg-type]
        raise failure from None


def _failure(error: TimeLimitReached, config: pytest.Config) -> BaseException:
    config.stash[_REACHED] = True
    return pytest.fail.Exception(str(error)).with_traceback(_with_lines(error.__traceback__))


def _limited(item: pytest.Item) -> Generator[None, object, object]:
    limit = item.stash.get(_LIMIT, None)
    if limit is None:
        return (yield)
    left = signal.setitimer(signal.ITIMER_REAL, limit, min(limit, _MOST_SECONDS_BETWEEN))
    try:
        return (yield)
    except TimeLimitReached as error:
        raise _failure(error, item.config) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)


def _with_lines(entry: TracebackType | None) -> TracebackType | None:
    """Leave out jumps to which CPython gives no line: a signal can interrupt them, and pytest cannot print them."""
    kept: list[TracebackType] = []
    while entry is not None:
        # Typeshed does not know that this is None in such an entry.
        if cast("int | None", entry.tb_lineno) is not None:
            kept.append(entry)
        entry = entry.tb_next
    for this, following in itertools.zip_longest(kept, kept[1:]):
        this.tb_next = following
    return kept[0] if kept else None


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process although a thread of a test that reached its limit never ends: Python would wait for it."""
    if not config.stash.get(_REACHED, False):
        return
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    if others:
        sys.stderr.write(f"threads that do not end: {', '.join(sorted(thread.name for thread in others))}\n")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
