"""Our work queue as the Go peer measures client-go's: ``python -m lab.bench.queue_operations SIZE``, nanoseconds of
CPU."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time

from deltaloop.workqueue import DelayingQueue, WorkQueue


async def main(size: int) -> None:
    """Fill a queue, take all, end all; then let all wait for a time of their own, and take them as they come."""
    keys = [f"namespace-{number % 50}/name-{number}" for number in range(size)]
    found: dict[str, float] = {}

    def each(began: float) -> float:
        return (time.process_time() - began) / size * 1e9

    plain = WorkQueue[str]()
    gc.collect()
    began = time.process_time()
    for key in keys:
        plain.add(key)
    found["add"] = each(began)
    began = time.process_time()
    for _ in keys:
        await plain.get()
    found["get"] = each(began)
    began = time.process_time()
    for key in keys:
        plain.done(key)
    found["done"] = each(began)
    plain.shut_down()

    delaying = DelayingQueue[str]()
    gc.collect()
    began = time.process_time()
    for number, key in enumerate(keys):
        delaying.add_after(key, 0.1 + number * 7_919 % size * 1e-6)
    for _ in keys:
        delaying.done(await delaying.get())
    found["delayed"] = each(began)
    delaying.shut_down()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
