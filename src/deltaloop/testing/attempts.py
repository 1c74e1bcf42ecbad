"""Assertions that wait until a condition becomes true.

    await eventually(lambda: pods.lister().find("default/a"))           in tests that are async, on any loop
    eventually_blocking(lambda: client.get(dl.kinds.POD, "a"), within=30)   in plain tests

In virtual time the wait is instant, and ends exactly on time.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload

from deltaloop.testing.core.attempts import Attempts

T = TypeVar("T")

_WITHIN: Final = 5.0
_EVERY: Final = 0.02


@overload
async def eventually(
    check: Callable[[], Awaitable[T | None]], *, within: float = ..., every: float = ..., what: str = ""
) -> T: ...
@overload
async def eventually(
    check: Callable[[], T | None], *, within: float = ..., every: float = ..., what: str = ""
) -> T: ...
async def eventually(
    check: Callable[[], Any], *, within: float = _WITHIN, every: float = _EVERY, what: str = ""
) -> Any:
    """Call a check until it returns something true, and return that.

    A check that raises is tried again like one that returns something that is not true (None, False, an empty list).
    What it raised is shown if it never succeeds. So a check may assert, and may get what is not there yet.

    Args:
        check: A function, plain or ``async def``.
        within: Seconds of the event loop's time until the last try. A check that waits longer is cancelled, but not
            before it had ``every`` seconds.
        every: Seconds between tries.
        what: What should become true, for the report.

    Raises:
        EventuallyError: If it never did; an ``AssertionError``. It tells what the last try returned or raised.
        ValueError: If a number of seconds makes no sense.
    """
    clock = asyncio.get_running_loop().time
    attempts = Attempts(what, within=within, every=every, now=clock())
    while True:
        attempts.begin()
        limit = asyncio.timeout_at(None)
        try:
            async with limit:
                value = check()
                if inspect.isawaitable(value):
                    limit.reschedule(max(attempts.until, clock() + every))
                    value = await value
            if attempts.returned(value):
                return value
        except Exception as error:  # noqa: BLE001 - the next try may succeed; the last one's error is shown
            if not limit.expired():
                attempts.raised(error)
        pause = attempts.pause(clock())
        if pause is None:
            raise attempts.failure()
        await asyncio.sleep(pause)


def eventually_blocking(check: Callable[[], T], *, within: float = _WITHIN, every: float = _EVERY, what: str = "") -> T:
    """Call a plain check until it returns something true, and return that; as ``eventually``, for threads.

    A check that does not return cannot be interrupted.

    Raises:
        EventuallyError: If it never became true.
        ValueError: If a number of seconds makes no sense.
        RuntimeError: On an event loop, which it would stop: await ``eventually`` there.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the public one raises where there is none
        raise RuntimeError("eventually_blocking would stop the event loop: await eventually(...) here")
    attempts = Attempts(what, within=within, every=every, now=time.monotonic())
    never = threading.Event()
    while True:
        attempts.begin()
        try:
            value = check()
            if attempts.returned(value):
                assert value is not None  # or it would not be true
                return value
        except Exception as error:  # noqa: BLE001 - the next try may succeed; the last one's error is shown
            attempts.raised(error)
        pause = attempts.pause(time.monotonic())
        if pause is None:
            raise attempts.failure()
        never.wait(pause)
