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
from typing import Final, TypeVar, final

from deltaloop._internal.fork_safety import fork_safe

T = TypeVar("T")

_INTERVAL: Final = 0.000_5
_LONGEST_WITHOUT_GC: Final = 10.0


@final
class _Sharing:
    """Settings of the interpreter while threads compute."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock(), self._forked)
        self._threads = 0
        self._interval = 0.0
        self._collects = False
        self._collected_at = 0.0
        self._frozen = False

    def begin(self) -> None:
        with self._lock:
            self._threads += 1
            if self._threads > 1:
                return
            self._interval, self._collects = sys.getswitchinterval(), gc.isenabled()
            self._collected_at = time.monotonic()
            sys.setswitchinterval(min(_INTERVAL, self._interval))
            gc.disable()

    def end(self) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads:
                self._restore()
            elif self._collects and time.monotonic() - self._collected_at > _LONGEST_WITHOUT_GC:
                self._collected_at = time.monotonic()
                gc.collect()

    def _restore(self) -> None:
        sys.setswitchinterval(self._interval)
        if not self._collects:
            return
        # Objects that a program has frozen stay frozen. A positive count is kept, because it visits all these objects.
        self._frozen = self._frozen or gc.get_freeze_count() > 0
        if not self._frozen:
            # All objects move to the oldest generation, because a collection of the new ones would follow at once.
            gc.freeze()
            gc.unfreeze()
        gc.enable()

    def _forked(self, _held: bool) -> None:
        if self._threads:
            self._threads = 0
            self._restore()


_sharing: Final = _Sharing()


@contextmanager
def shared_interpreter() -> Generator[None]:
    """Switch threads often and do not collect garbage inside the block, which must end by itself."""
    _sharing.begin()
    try:
        yield
    finally:
        _sharing.end()


async def beside_loop(work: Callable[[], T], executor: Executor | None = None) -> T:
    """Compute in a thread, so that the event loop can serve others. Cancellation does not stop the work."""
    return await asyncio.get_running_loop().run_in_executor(executor, partial(_compute, work))


def _compute(work: Callable[[], T]) -> T:
    with shared_interpreter():
        return work()
