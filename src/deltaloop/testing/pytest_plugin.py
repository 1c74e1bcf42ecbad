"""A pytest plugin that runs ``async def`` tests, in virtual time unless a test is marked ``real_time``.

It stays out of the way unless it is asked for, because other plugins run async tests, too:

* ``deltaloop_async_tests = "virtual"`` in the configuration takes all async tests that no other plugin has taken;
* ``@pytest.mark.virtual_time`` takes one test, ``@pytest.mark.real_time`` runs one on the real clock.

A test that leaves a task running fails and names the task.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    parser.addini(
        "deltaloop_async_tests", "'virtual' runs async tests in virtual time; '' leaves them alone", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "virtual_time: run this async test in virtual time")
    config.addinivalue_line("markers", "real_time: run this async test on the real clock")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run an async test; leave everything else to others."""
    function = pyfuncitem.obj
    real = pyfuncitem.get_closest_marker("real_time") is not None
    virtual = pyfuncitem.get_closest_marker("virtual_time") is not None
    if not inspect.iscoroutinefunction(inspect.unwrap(function)):
        return None
    if not (real or virtual or pyfuncitem.config.getini("deltaloop_async_tests") == "virtual"):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    _run(lambda: function(**arguments), real=real)
    return True


def _run(make: Callable[[], Coroutine[Any, Any, object]], *, real: bool) -> None:
    from deltaloop.testing.virtual_loop import VirtualLoop

    with asyncio.Runner(debug=True, loop_factory=None if real else VirtualLoop) as runner:
        runner.run(_without_leftovers(make))


async def _without_leftovers(make: Callable[[], Coroutine[Any, Any, object]]) -> None:
    await make()
    current = asyncio.current_task()
    for _ in range(3):  # tasks that were cancelled just now get their turn to end
        await asyncio.sleep(0)
    leftover = sorted(repr(task.get_coro()) for task in asyncio.all_tasks() if task is not current)
    if leftover:
        pytest.fail(f"the test left {len(leftover)} task(s) running: {'; '.join(leftover)}", pytrace=False)
