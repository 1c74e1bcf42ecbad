"""Many pieces of work, a few at a time, in the order of their numbers.

Source: client-go util/workqueue/parallelizer.go ``ParallelizeUntil``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def parallelize_until(
    workers: int, pieces: int, do_piece: Callable[[int], Awaitable[object]], *, chunk_size: int = 1
) -> None:
    """Await ``do_piece(number)`` for each number from 0 to ``pieces - 1``, at most ``workers`` of them at a time.

    The first piece that raises ends everything: pieces that run are cancelled, others never begin, and its exception is
    raised. A cancelled call cancels the pieces that run, waits for them to end, and begins no others.

    Args:
        workers: How many pieces are worked on at a time, at most.
        pieces: How many pieces there are; they are numbered from 0.
        do_piece: Called with the number of each piece.
        chunk_size: How many pieces in a row one worker takes at once; larger chunks keep neighbours together.

    Raises:
        ValueError: If ``workers`` or ``chunk_size`` is less than 1, or ``pieces`` less than 0.
    """
    if workers < 1 or chunk_size < 1 or pieces < 0:
        raise ValueError(
            f"parallelize_until(workers={workers}, pieces={pieces}, chunk_size={chunk_size}): "
            "at least one worker, one piece in a chunk, and no negative number of pieces are needed"
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
