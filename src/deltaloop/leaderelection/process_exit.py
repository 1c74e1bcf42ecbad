"""Exit of the process if the work continues after leadership was lost."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import Final, final

_log: Final = logging.getLogger("deltaloop.leaderelection")

LEADERSHIP_LOST_EXIT_CODE: Final = 70
_LOG_PATIENCE: Final = 1.0


def end_process() -> None:
    """Exit immediately with code 70, without cleanup and ``atexit``, because the work does not respond."""
    # The work may hang while it holds the logging lock. The timer does not need that lock.
    timer = threading.Timer(_LOG_PATIENCE, os._exit, (LEADERSHIP_LOST_EXIT_CODE,))
    timer.daemon = True
    timer.start()
    _log.critical(
        "the work goes on without leadership; the process is ended", extra={"exit": LEADERSHIP_LOST_EXIT_CODE}
    )
    os._exit(LEADERSHIP_LOST_EXIT_CODE)


@final
class ExitTimer:
    """Timer that ends the process some time after leadership was lost, unless it is canceled."""

    def __init__(self, after: float | None, end: Callable[[], object]) -> None:
        """Create the timer. ``after`` is in seconds, and None disables it."""
        self._after = after
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._after is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._end)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
