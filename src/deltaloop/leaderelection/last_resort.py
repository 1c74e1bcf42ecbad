"""The last resort against work that goes on after leadership was lost: the end of the process."""

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
    """End the process at once with exit code 70: no cleanup, no ``atexit``, because the work does not answer."""
    # The work may have stopped inside the log, holding its lock; the timer does not need it.
    timer = threading.Timer(_LOG_PATIENCE, os._exit, (LEADERSHIP_LOST_EXIT_CODE,))
    timer.daemon = True
    timer.start()
    _log.critical(
        "the work goes on without leadership; the process is ended", extra={"exit": LEADERSHIP_LOST_EXIT_CODE}
    )
    os._exit(LEADERSHIP_LOST_EXIT_CODE)


@final
class LastResort:
    """Ends the process some time after leadership was lost, unless the work has ended by then."""

    def __init__(self, after: float | None, end: Callable[[], object]) -> None:
        """Wait ``after`` seconds, for ever if None, and call ``end``."""
        self._after = after
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Leadership is lost; begin to wait on the loop that runs."""
        if self._after is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._end)

    def cancel(self) -> None:
        """The work has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
