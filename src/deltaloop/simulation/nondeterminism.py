"""Detection of what a run's seed does not decide: threads, other processes, connections to the real network.

Audit events (PEP 578) report processes and connections; a wrapper of ``Thread.start`` reports threads. Only the lines
of the program under test are named. Plain functions that the event loop runs in threads take turns with it and do not
count, except in pools that prepare their threads.

An audit hook stays for the life of the process. Outside of ``detect_nondeterminism`` it returns at once.
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
    "threading.Thread.start": "starts a thread",  # our own: the interpreter's is of Python 3.12 and later
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.exec": "replaces this process",
    "os.fork": "forks this process",
    "socket.connect": "connects to the real network",
    "socket.sendto": "sends to the real network",
    "socket.getaddrinfo": "asks the real network for an address",
}


@final
class Nondeterminism:
    """Events of one run.

    Attributes:
        found: Texts for people, each once, oldest first.
    """

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def saw(self, event: str, frame: FrameType) -> None:
        """Take an audit event.

        Args:
            event: Its name.
            frame: Where it happens.
        """
        place = _place(frame)
        if place:
            self.found.setdefault(f"{place} {_TOLD[event]}")


def _place(start: FrameType) -> str:
    """Return the line of the program under test that leads here; empty if none does."""
    frame: FrameType | None = start
    while frame is not None and not is_turn_of_loop(frame.f_code):
        file = frame.f_code.co_filename
        if is_under_test(file):
            return f"{Path(file).name}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return ""


class _Hook:
    """There is one in a process."""

    watching: Nondeterminism | None = None
    added = False


def _hook(event: str, _: tuple[object, ...]) -> None:
    watching = _Hook.watching
    if watching is not None and event in _TOLD:
        watching.saw(event, sys._getframe(1))  # noqa: SLF001 - the one way to see who asks


@contextmanager
def detect_nondeterminism() -> Generator[Nondeterminism, None, None]:
    """Detect it in this block."""
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
