"""Many pieces, a few at a time."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from deltaloop.workqueue import parallelize_until
from tests.having import having
from tests.nightly import by_day

DAY = (
    *((0, 3, 2), (1, 3, 2), (2, 1, 1), (2, 3, 1), (2, 10, 2), (7, 1, 10), (7, 3, 1), (7, 3, 2), (7, 10, 1)),
    *((7, 2000, 5000), (1000, 1, 2), (1000, 3, 1), (1000, 3, 10), (1000, 10, 2), (1000, 2000, 1), (1000, 10, 5000)),
)
ALL = itertools.product((0, 1, 2, 7, 1000), (1, 3, 10, 2000), (1, 2, 10, 5000))


@pytest.mark.parametrize(("pieces", "workers", "chunk_size"), by_day(ALL, DAY))
async def test_each_piece_runs_once_with_limited_concurrency(pieces: int, workers: int, chunk_size: int) -> None:
    done, present, most = [0] * pieces, 0, 0

    async def do_piece(number: int) -> None:
        nonlocal present, most
        present += 1
        most = max(most, present)
        await asyncio.sleep(0)
        done[number] += 1
        present -= 1

    await parallelize_until(workers, pieces, do_piece, chunk_size=chunk_size)
    assert done == [1] * pieces
    assert most <= min(workers, -(-pieces // chunk_size))


async def test_parallelize_takes_expected_time() -> None:
    loop = asyncio.get_running_loop()
    await parallelize_until(3, 10, lambda number: asyncio.sleep(1.0))
    assert loop.time() == 4.0


async def test_first_failure_cancels_other_pieces_and_is_raised() -> None:
    begun, cancelled = list[int](), list[int]()
    cause = OSError("why")

    async def do_piece(number: int) -> None:
        begun.append(number)
        try:
            await asyncio.sleep(1.0 + number)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        raise LookupError(number) from cause

    with pytest.raises(LookupError, match="0") as caught:
        await parallelize_until(3, 10, do_piece)
    assert (begun, sorted(cancelled)) == ([0, 1, 2], [1, 2])
    assert caught.value.__cause__ is cause


async def test_canceled_parallelize_cancels_running_pieces() -> None:
    begun, ended = list[int](), list[int]()

    async def do_piece(number: int) -> None:
        begun.append(number)
        try:
            await asyncio.sleep(10.0)
        finally:
            ended.append(number)

    task = asyncio.create_task(parallelize_until(2, 10, do_piece))
    await asyncio.sleep(15.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun == [0, 1, 2, 3]
    assert sorted(ended) == [0, 1, 2, 3]


@pytest.mark.parametrize(("workers", "pieces", "chunk_size"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
async def test_invalid_numbers_are_rejected(workers: int, pieces: int, chunk_size: int) -> None:
    with pytest.raises(ValueError, check=having(argument="workers")):
        await parallelize_until(workers, pieces, asyncio.sleep, chunk_size=chunk_size)
