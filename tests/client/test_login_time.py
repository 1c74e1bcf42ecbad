"""The clock of a request stands still while somebody logs in."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.client.transport.base_transport import _Outside


async def slow(seconds: float, error: Exception | None = None) -> str:
    await asyncio.sleep(seconds)
    if error is not None:
        raise error
    return "credential"


async def test_the_time_that_was_left_is_left_afterwards() -> None:
    await asyncio.sleep(3.0)
    async with asyncio.timeout(5.0) as limit:
        await asyncio.sleep(2.0)
        assert await _Outside(limit, slow(100.0)) == "credential"
        assert limit.when() == 108.0
        with pytest.raises(ValueError, match="no"):
            await _Outside(limit, slow(10.0, ValueError("no")))
        assert limit.when() == 118.0


async def test_without_a_limit_there_is_none_afterwards() -> None:
    async with asyncio.timeout(None) as limit:
        assert await _Outside(limit, slow(100.0)) == "credential"
        assert limit.when() is None
