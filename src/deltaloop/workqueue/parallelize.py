"""Run many pieces of work with bounded concurrency.

Source: client-go util/workqueue/parallelizer.go ``ParallelizeUntil``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from deltaloop._internal.root_error import InvalidArgumentError


async def parallelize_until(
    workers: int, pieces: int, do_piece: Callable[[int], Awaitable[object]], *, chunk_size: int = 1
) -> None:
    """Await ``do_piece(number)`` for each number from 0 to ``pieces - 1``, with at most ``workers`` at a time.

    If a piece raises, the running pieces are canceled, no more pieces start, and its exception is raised. If the call
    is canceled, it cancels the running pieces and waits for their end.

    Args:
        workers: Largest number of concurrent pieces.
        pieces: Number of pieces.
        do_piece: Async function called with the number of each piece.
        chunk_size: Number of consecutive pieces that a worker takes at once.

    Raises:
        InvalidArgumentError: If ``workers`` or ``chunk_size`` is less than 1, or ``pieces`` is less than 0.
    """
    if workers < 1 or chunk_size < 1 or pieces < 0:
        raise InvalidArgumentError(
            f"must be >= 1, chunk_size >= 1 and pieces >= 0, got {workers}, {chunk_size} and {pieces}.",
            argument="workers",
        )
    chunks = iter(range(0, pieces, chunk_size))
    failures: list[Exception] = []

    async def work() -> None:
        for first in chunks:
            for piece in range(first, min(first + chunk_size, pieces)):
                try:
                    await do_piece(piece)
                except Exception as error:
                    failures.append(error)
                    raise

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(range(0, pieces, chunk_size)))):
                group.create_task(work())
    except ExceptionGroup:
        first_failure = failures[0]
    else:
        return
    raise first_failure
