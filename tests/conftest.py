"""Settings of the whole suite, and the restoration of loggers after each test."""

from __future__ import annotations

import ast
import gc
import logging
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests import warm
from tests.nightly import NIGHTLY, examples, is_for_the_night

# The plugins are tested by running pytest inside a test. pytest takes this from the topmost conftest only.
pytest_plugins = ["pytester", "tests.time_limit"]

# The time of an example depends on the load of the machine. Continuous integration draws the same examples in each run,
# so that a new example never fails an unrelated change.
settings.register_profile(
    "deltaloop",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("deltaloop")

_LONG_RUN = 3000  # tests

# Imports and collection create much and free little: a quarter of their CPU would be the garbage collector's.
gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests and the tests of tests to the night, unless they are named."""
    if NIGHTLY or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if is_for_the_night(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        chosen = {*items}.difference(left_out)
        items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and tests, which live as long as the run, from garbage collection.

    Rare collections save a tenth of the CPU of the run. The forks of a long run share one warm interpreter.
    """
    if int(session.config.getoption("--forks", 0) or 0) > 1 and len(session.items) > _LONG_RUN:
        warm.interpreter()
        st.text().validate()  # reads or computes the table of all characters, which each fork would do again
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)
    gc.enable()


def parse_uninterrupted(*args: Any, **options: Any) -> Any:
    """Parse source without a garbage collection in between.

    A finalizer can format a traceback, and so parse source while the collector runs. CPython's conversion of a syntax
    tree cannot be entered twice: the outer one fails with a SystemError about its recursion depth.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _parse(*args, **options)
    finally:
        if enabled:
            gc.enable()


_parse = ast.parse
ast.parse = parse_uninterrupted


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """End the interpreter that tests fork, if there is one."""
    warm.close()


@pytest.fixture(scope="session", autouse=True)
def warm_interpreter() -> Iterator[None]:
    """End the interpreter of a process that has no end of its session: a fork."""
    yield
    warm.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Undo what a test does to our loggers, and to the level of all: the next one may look at what is logged."""
    logger, root = logging.getLogger("deltaloop"), logging.getLogger()
    level, handlers, propagate, level_of_all = logger.level, [*logger.handlers], logger.propagate, root.level
    of_all = [*root.handlers]
    try:
        return (yield)
    finally:
        for each, former in ((root, level_of_all), (logger, level)):
            if each.level != former:  # each call empties the caches of all loggers
                each.setLevel(former)
        logger.handlers[:] = handlers
        logger.propagate = propagate
        # A program under test may have sent all records to a stream that closes with the test.
        root.handlers[:] = of_all
