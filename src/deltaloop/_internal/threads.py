"""Computing in threads beside an event loop.

A computing thread delays the loop in two ways. Each system call of the loop releases the interpreter, and then waits
for the switch interval, 5 ms by default. And the garbage collector visits all containers that the thread has made,
which takes more than 100 ms for a large object.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

T = TypeVar("T")

_INTERVAL: Final = 0.000_5
_LONGEST_WITHOUT_GC: Final = 10.0


class _Interpreter:
    lock: Final = threading.Lock()
    sharing = 0
    interval = 0.0
    collects = False
    since = 0.0


@contextmanager
def shared_interpreter() -> Generator[None]:
    """Switch threads often and do not collect garbage inside the block, which must end by itself.

    If threads are always inside, garbage is collected every 10 seconds.
    """
    here = _Interpreter
    with here.lock:
        here.sharing += 1
        if here.sharing == 1:
            here.interval, here.collects, here.since = sys.getswitchinterval(), gc.isenabled(), time.monotonic()
            sys.setswitchinterval(min(_INTERVAL, here.interval))
            gc.disable()
    try:
        yield
    finally:
        with here.lock:
            here.sharing -= 1
            if not here.sharing:
                sys.setswitchinterval(here.interval)
                if here.collects:
                    _age()
                    gc.enable()
            elif here.collects and time.monotonic() - here.since > _LONGEST_WITHOUT_GC:
                here.since = time.monotonic()
                gc.collect()


def _age() -> None:
    """Move all objects to the oldest generation, because a collection of young objects would follow at once."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


async def beside_loop(work: Callable[[], T], executor: Executor | None = None) -> T:
    """Compute in a thread, so that the event loop can serve others. Cancellation does not stop the work."""
    return await asyncio.get_running_loop().run_in_executor(executor, partial(_compute, work))


def _compute(work: Callable[[], T]) -> T:
    with shared_interpreter():
        return work()
