"""Recording of a program as a trace in a file of bounded size."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, Self, final

from deltaloop.runtime.core.history import History, Reconciled
from deltaloop.runtime.core.trace_events import TraceEvents
from deltaloop.runtime.program.private_file import open_private

MOST_BYTES: Final = 32 * 1024 * 1024
_END: Final = b"\n]\n"
_FLUSH_AFTER: Final = 0.5
_MOST_WAITING: Final = 500
_logger: Final = logging.getLogger("deltaloop")


@final
class Recording(logging.Handler):
    """Recording of the reconciles and log records of one process, while its context is entered."""

    def __init__(
        self, file: Path, history: History, *, name: str, clock: Callable[[], float], most: int = MOST_BYTES
    ) -> None:
        """Keep the name of the file, of which two can exist, each with at most ``most`` bytes."""
        super().__init__(logging.INFO)
        self._path = file
        self._history = history
        self._name = name
        self._clock = clock
        self._most = most
        self._waiting: list[Reconciled | tuple[logging.LogRecord, float]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: TraceEvents | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Create the file, or raise OSError."""
        self._loop = asyncio.get_running_loop()
        self._open()
        self._history.on_add = self.add
        _logger.addHandler(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _logger.removeHandler(self)
        self._history.on_add = None
        self._write()
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, run: Reconciled) -> None:
        """Record an ended reconcile, on the event loop."""
        self._waiting.append(run)
        if len(self._waiting) >= _MOST_WAITING:
            self._write()
        elif self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(_FLUSH_AFTER, self._write)

    def emit(self, record: logging.LogRecord) -> None:
        """Record a log record, on any thread. It is written together with the next reconcile, or at the end."""
        if len(self._waiting) < 2 * _MOST_WAITING:
            self._waiting.append((record, self._clock()))

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if self._file is None or self._events is None:
            return
        if self._file.tell() > self._most:
            self._file.close()
            self._path.replace(f"{self._path}.1")
            self._open()
        lines: list[str] = []
        for each in waiting:
            if isinstance(each, Reconciled):
                lines += map(json.dumps, self._events.reconciled(each))
            else:
                record, at = each
                lines += map(json.dumps, self._events.logged(record.msg, vars(record), at))
        if lines:
            self._file.seek(-len(_END), os.SEEK_CUR)
            comma = b"," if self._file.tell() > 1 else b""
            self._file.write(comma + b"\n" + ",\n".join(lines).encode() + _END)
            self._file.flush()

    def _open(self) -> None:
        self._events = TraceEvents(os.getpid(), self._name, began_at=self._clock())
        self._file = open_private(self._path)
        self._file.write(b"[" + _END)
        self._file.flush()
