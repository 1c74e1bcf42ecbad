"""What a run does that its seed does not decide: threads, other processes, connections to the real network.

The interpreter tells of processes and connections itself, by audit events, whoever asks for them (PEP 578); of threads
``Thread.start`` does, for as long as somebody looks. Those that come from the program under test are named, by the line
of it that has led there; what the standard library, installed packages and deltaloop do of their own accord is left
alone. Plain functions that the event loop runs in threads take turns with it and are not named, but for those of pools
that prepare their threads: these start threads.

An audit hook stays for as long as the process lives. This one is added by the first simulation, and asks one thing of
each event otherwise: whether anybody looks.
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
class Uncontrolled:
    """What has been seen in a run.

    Attributes:
        told: For people, each once, in the order in which they came.
    """

    def __init__(self) -> None:
        """See nothing yet."""
        self.told: dict[str, None] = {}

    def saw(self, event: str, frame: FrameType) -> None:
        """Take an audit event.

        Args:
            event: Its name.
            frame: Where it happens.
        """
        place = _place(frame)
        if place:
            self.told.setdefault(f"{place} {_TOLD[event]}")


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

    watching: Uncontrolled | None = None
    added = False


def _hook(event: str, _: tuple[object, ...]) -> None:
    watching = _Hook.watching
    if watching is not None and event in _TOLD:
        watching.saw(event, sys._getframe(1))  # noqa: SLF001 - the one way to see who asks


@contextmanager
def looked_for() -> Generator[Uncontrolled, None, None]:
    """Look for it in this block."""
    if not _Hook.added:
        _Hook.added = True
        sys.addaudithook(_hook)
    before, start = _Hook.watching, threading.Thread.start
    _Hook.watching = watching = Uncontrolled()

    def told(thread: threading.Thread) -> None:
        watching.saw("threading.Thread.start", sys._getframe(1))  # noqa: SLF001
        start(thread)

    threading.Thread.start = told  # type: ignore[method-assign, assignment]
    try:
        yield watching
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        _Hook.watching = before
