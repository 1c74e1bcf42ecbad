"""Time per operation of a work queue at several sizes: run it with ``make -C lab bench-workqueue``.

``add``, ``get`` and ``done`` should cost the same at each size; delays grow with the logarithm. Each number is the
median of several rounds, of the process's own CPU time. Sizes can be given: ``python lab/bench/workqueue.py 1000
10000``.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from deltaloop.testing import VirtualLoop
from deltaloop.workqueue import DelayingQueue, QueueOptions, WorkQueue, by_namespace

SIZES = (1_000, 10_000, 100_000, 1_000_000)
NAMESPACES = 50


def rounds_for(size: int) -> int:
    """Return how often a size is measured: small sizes are noisy."""
    return max(1, min(25, 200_000 // size))


async def add_get_done(size: int, options: QueueOptions) -> dict[str, float]:
    """Fill a queue, take everything, end everything; return microseconds per item."""
    queue = WorkQueue[str](options=options)
    keys = [f"namespace-{number % NAMESPACES}/name-{number}" for number in range(size)]
    gc.collect()
    began = time.process_time()
    for key in keys:
        queue.add(key)
    added = time.process_time()
    for _ in range(size):
        await queue.get()
    taken = time.process_time()
    for key in keys:
        queue.done(key)
    done = time.process_time()
    return {
        "add": (added - began) / size * 1e6,
        "get": (taken - added) / size * 1e6,
        "done": (done - taken) / size * 1e6,
    }


async def delays(size: int, options: QueueOptions) -> dict[str, float]:
    """Let items wait, all for another time, in no order; then let them all become due."""
    queue = DelayingQueue[int](options=options)
    step = 7_919  # a prime: the times come in no order, each once
    gc.collect()
    began = time.process_time()
    for number in range(size):
        queue.add_after(number, 10.0 + number * step % size * 1e-3)
    added = time.process_time()
    for _ in range(size):
        queue.done(await queue.get())
    taken = time.process_time()
    return {"add_after": (added - began) / size * 1e6, "due, get, done": (taken - added) / size * 1e6}


CASES = (
    ("plain", add_get_done, QueueOptions()),
    ("priorities", add_get_done, QueueOptions(priority_aging={0: 0.0, -100: 30.0})),
    ("fair shares", add_get_done, QueueOptions(fairness_key=by_namespace)),
    ("delays", delays, QueueOptions()),
)


def once(
    run: Callable[[int, QueueOptions], Coroutine[Any, Any, dict[str, float]]], size: int, options: QueueOptions
) -> dict[str, float]:
    """Measure once, on a loop of its own; its time is virtual, so that no delay is waited for."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run(size, options))


def median_of(size: int, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Measure several times; return the median of each number."""
    found = [measure() for _ in range(rounds_for(size))]
    return {name: statistics.median(numbers[name] for numbers in found) for name in found[0]}


def main() -> None:
    """Print one line for each operation, one column for each size."""
    sizes = [int(size) for size in sys.argv[1:]] or list(SIZES)
    print(f"microseconds per operation (CPU, Python {sys.version.split()[0]})")
    print(f"{'':<28}" + "".join(f"{size:>12,}" for size in sizes))
    for case, run, options in CASES:
        columns = [median_of(size, partial(once, run, size, options)) for size in sizes]
        for name in columns[0]:
            print(f"{case + ': ' + name:<28}" + "".join(f"{column[name]:>12.2f}" for column in columns), flush=True)


if __name__ == "__main__":
    main()
