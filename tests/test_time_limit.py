"""A test whose code keeps what the time limit raises ends at the limit nevertheless."""

from __future__ import annotations

import pytest

SPINNING = """
import asyncio
import itertools
import threading
import time

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test


async def spin():
    asyncio.current_task()._log_destroy_pending = False  # the limit ends the loop before the task ends
    while True:
        await asyncio.sleep(0)


async def test_task_of_a_virtual_loop():
    task = asyncio.create_task(spin())
    try:
        await asyncio.Event().wait()
    finally:
        task.cancel()


async def test_callbacks_of_a_virtual_loop():
    loop = asyncio.get_running_loop()

    def again():
        time.sleep(0.001)
        loop.call_soon(again)

    again()
    await asyncio.sleep(1)


def test_machine():
    class Machine(RuleBasedStateMachine):
        @rule()
        def spin(self):
            while True:
                pass

    run_state_machine_as_test(Machine, settings=settings(database=None))


def test_jump_without_a_line():
    for number in itertools.repeat(1):
        if number:
            pass


def test_code_that_catches_all():
    for _ in range(2):
        try:
            while True:
                pass
        except BaseException:
            pass
    while True:
        pass


def test_thread():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        thread.join()
    finally:
        ended.set()


@pytest.fixture
def slow_to_leave():
    yield
    while True:
        pass


def test_failure_before_a_teardown_that_spins(slow_to_leave):
    assert False


@pytest.fixture(scope="module")
def slow_to_begin():
    while True:
        pass


@pytest.mark.parametrize("number", range(2))
def test_fixture_of_several_tests_that_spins(number, slow_to_begin):
    pass


def test_afterwards():
    pass
"""


def test_tests_that_spin_end_at_the_limit(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(
        "[tool.pytest.ini_options]\n"
        'filterwarnings = ["ignore"]\n'
        'timeout = 0.05\ntimeout_method = "signal"\n'
        'deltaloop_async_tests = "virtual"\n'
    )
    pytester.makepyfile(SPINNING)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "tests.time_limit")
    result.assert_outcomes(passed=1, failed=7, errors=3)
    assert result.stdout.str().count("E       Failed: the test has run for 0.05 s") == 9
