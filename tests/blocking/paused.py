"""A thread that stops in the middle of a function of ours, to see who waits for it."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Paused:
    """A call in a thread that stops before one line of its function, until it may go on."""

    def __init__(self, function: Callable[[], object], line: str) -> None:
        self.line = line
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.found = list[object]()
        self.thread = threading.Thread(target=self._run, args=(function,))
        self.thread.start()
        assert self.inside.wait(5)

    def _run(self, function: Callable[[], object]) -> None:
        sys.settrace(self._trace)
        try:
            self.found.append(function())
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == self.line:
            self.inside.set()
            assert self.go_on.wait(5)
        return self._trace
