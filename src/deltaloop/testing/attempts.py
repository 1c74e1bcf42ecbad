"""Assertions that wait until a condition becomes true.

    await eventually(lambda: pods.lister().find("default/a"))               # async tests, on any loop
    eventually_blocking(lambda: client.get(dl.kinds.POD, "a"), within=30)   # plain tests

In virtual time, the wait takes no real time and ends exactly on time.
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
    """Call a check until it returns a true value, and return that value.

    The check is called again if it raises or returns a false value (None, False, an empty list). Therefore, it can
    assert, and it can get an object that does not exist yet.

    Args:
        check: Plain or ``async def`` function.
        within: Seconds of the event loop's time until the last attempt. A slower check is canceled, but never before it
            had ``every`` seconds.
        every: Seconds between attempts.
        what: Name of the condition, for the error message.

    Raises:
        EventuallyError: If the check never succeeds; an ``AssertionError`` with the result of the last attempt.
        ValueError: If a number of seconds is out of range.
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
        except Exception as error:  # noqa: BLE001 - a later attempt may succeed; only the last error is reported
            if not limit.expired():
                attempts.raised(error)
        pause = attempts.pause(clock())
        if pause is None:
            raise attempts.failure()
        await asyncio.sleep(pause)


def eventually_blocking(check: Callable[[], T], *, within: float = _WITHIN, every: float = _EVERY, what: str = "") -> T:
    """Call a plain check until it returns a true value, and return that value; ``eventually`` for threads.

    A check that does not return cannot be interrupted.

    Raises:
        EventuallyError: If the check never succeeds.
        ValueError: If a number of seconds is out of range.
        RuntimeError: On an event loop, which the call would block. Await ``eventually`` there.
    """
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the public function raises if no loop runs
        raise RuntimeError(
            "eventually_blocking must not run on an event loop, because it would block it. Use: await eventually(...)"
        )
    attempts = Attempts(what, within=within, every=every, now=time.monotonic())
    never = threading.Event()
    while True:
        attempts.begin()
        try:
            value = check()
            if attempts.returned(value):
                assert value is not None  # a true value is never None
                return value
        except Exception as error:  # noqa: BLE001 - a later attempt may succeed; only the last error is reported
            attempts.raised(error)
        pause = attempts.pause(time.monotonic())
        if pause is None:
            raise attempts.failure()
        never.wait(pause)
