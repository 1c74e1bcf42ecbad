"""``eventually`` in virtual time, in real time, and without a loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from deltaloop.errors import EventuallyError
from deltaloop.testing import eventually, eventually_blocking
from tests.having import having


async def test_eventually_ends_at_exact_virtual_time() -> None:
    clock = asyncio.get_running_loop().time
    assert await eventually(lambda: clock() >= 1800 and "there", within=3600, every=60) == "there"
    assert clock() == 1800
    with pytest.raises(EventuallyError, match=r"^the lease ", check=having(within=90, attempts=3)):
        await eventually(lambda: False, within=90, every=60, what="the lease")
    assert clock() == 1890


async def test_checks_can_be_async_assert_and_raise() -> None:
    seen = list[int]()

    async def check() -> int:
        await asyncio.sleep(1)
        seen.append(len(seen))
        if len(seen) == 1:
            raise LookupError("not there yet")
        assert len(seen) == 3
        return len(seen)

    assert await eventually(check, within=10, every=1) == 3
    assert asyncio.get_running_loop().time() == 5


async def test_hanging_check_is_canceled_at_timeout() -> None:
    ended = list[float]()
    clock = asyncio.get_running_loop().time

    async def check() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(clock())

    with pytest.raises(EventuallyError, check=having(attempts=1)):
        await eventually(check, within=5)
    assert ended == [5.0]


async def test_timeout_inside_check_is_cause() -> None:
    async def check() -> None:
        async with asyncio.timeout(0.5):
            await asyncio.sleep(3600)

    with pytest.raises(EventuallyError) as caught:
        await eventually(check, within=2.5, every=1)
    assert isinstance(caught.value.__cause__, TimeoutError)


async def test_cancellation_is_propagated() -> None:
    waiting = asyncio.create_task(eventually(lambda: False, within=3600))
    await asyncio.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.real_time
async def test_eventually_waits_in_real_time() -> None:
    began = time.monotonic()
    set_later = threading.Event()
    asyncio.get_running_loop().call_later(0.05, set_later.set)
    assert await eventually(set_later.is_set)
    assert 0.04 < time.monotonic() - began < 4


def test_blocking_eventually_waits_in_thread() -> None:
    there = threading.Event()
    timer = threading.Timer(0.03, there.set)
    timer.start()
    assert eventually_blocking(there.is_set)
    timer.join()

    def fail() -> bool:
        raise LookupError("x")

    with pytest.raises(EventuallyError, match=r"^the map .* LookupError: x", check=having(within=0.02)):
        eventually_blocking(fail, within=0.02, every=0.01, what="the map")


async def test_blocking_eventually_in_event_loop_is_rejected() -> None:
    with pytest.raises(RuntimeError):
        eventually_blocking(lambda: True)
