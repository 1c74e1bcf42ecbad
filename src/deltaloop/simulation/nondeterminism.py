"""Detection of events that the seed does not decide: threads, processes, and connections to the real network.

It reports only lines of the program under test, by audit events (PEP 578) and a wrapper of ``Thread.start``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, final

from deltaloop.simulation.under_test import is_turn_of_loop, is_under_test

_TOLD: Final = {
    "threading.Thread.start": "starts a thread",  # our own event: Python has one only since 3.12
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.exec": "replaces this process",
    "os.fork": "forks this process",
    "socket.connect": "connects to the real network",
    "socket.sendto": "sends to the real network",
    "socket.getaddrinfo": "resolves an address in the real network",
}


@final
class Nondeterminism:
    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def saw(self, event: str, frame: FrameType) -> None:
        place = _place(frame)
        if place:
            self.found.setdefault(f"{place} {_TOLD[event]}")


def _place(start: FrameType) -> str:
    """Return the line of the program under test that caused an event, or an empty string."""
    frame: FrameType | None = start
    while frame is not None and not is_turn_of_loop(frame.f_code):
        file = frame.f_code.co_filename
        if is_under_test(file):
            return f"{Path(file).name}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return ""


class _Hook:
    """State of the only hook in the process."""

    watching: Nondeterminism | None = None
    added = False


def _hook(event: str, _: tuple[object, ...]) -> None:
    watching = _Hook.watching
    if watching is not None and event in _TOLD:
        watching.saw(event, sys._getframe(1))  # noqa: SLF001 - the only way to find the caller


@contextmanager
def detect_nondeterminism() -> Generator[Nondeterminism, None, None]:
    if not _Hook.added:
        _Hook.added = True
        sys.addaudithook(_hook)
    before, start = _Hook.watching, threading.Thread.start
    _Hook.watching = watching = Nondeterminism()

    def reported(thread: threading.Thread) -> None:
        watching.saw("threading.Thread.start", sys._getframe(1))  # noqa: SLF001
        start(thread)

    threading.Thread.start = reported  # type: ignore[method-assign, assignment]
    try:
        yield watching
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        _Hook.watching = before
