"""Runner of a command that must not outlive a lease, even if the elector is killed or paused.

It is a separate program of the standard library only. It gets two deadlines on the clock that runs during suspend. At
the first it sends SIGTERM to the command's process group, at the second SIGKILL. Each renewal moves them, with a line
through a pipe. If the pipe closes, it sends SIGTERM immediately.

The lines are ``renewed STOP_AT KILL_AT``, ``stop`` (SIGTERM now) and ``kill`` (SIGKILL now). It exits with the
command's exit code, or with 128 plus the number of the signal that ended it.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

_LONGEST_WAIT = 0.25
_PR_SET_PDEATHSIG = 1


def now() -> float:
    """Return the seconds of the clock that runs during suspend, like the elector's ``boot_time``."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.clock_gettime(time.CLOCK_MONOTONIC) if sys.platform == "darwin" else time.monotonic()


class Keeper:
    def __init__(self, command: list[str], lines: int, stop_at: float, kill_at: float) -> None:
        """Start the command. ``lines`` is the reading end of the pipe."""
        self._lines = lines
        self._stop_at = stop_at
        self._kill_at = kill_at
        self._rest = b""
        self._stopping = False
        self._killed = False
        self._ended, ended = os.pipe()
        # Start it in the main thread, because PDEATHSIG refers to the thread that forks (Linux).
        self._child = subprocess.Popen(command, process_group=0, close_fds=True, preexec_fn=_end_with_the_parent)  # noqa: PLW1509, S603
        threading.Thread(target=self._wait, args=(ended,), daemon=True).start()

    def run(self) -> int:
        """Enforce the deadlines until the command has ended, and return its exit code."""
        sources = [self._lines, self._ended]
        while True:
            instant = now()
            if instant >= self._kill_at:
                self._kill()
            elif instant >= self._stop_at:
                self._stop()
            due = self._kill_at if self._stopping else min(self._stop_at, self._kill_at)
            wait = _LONGEST_WAIT if self._killed else min(_LONGEST_WAIT, max(0.0, due - instant))
            ready, _, _ = select.select(sources, [], [], wait)
            if self._ended in ready:
                break
            if self._lines in ready and not self._read():
                sources.remove(self._lines)
        code = self._child.returncode
        self._signal(signal.SIGKILL)  # remaining processes of its group
        return code if code >= 0 else 128 - code

    def _wait(self, ended: int) -> None:
        self._child.wait()
        os.write(ended, b"x")

    def _read(self) -> bool:
        data = os.read(self._lines, 4096)
        if not data:
            self._stop()
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(line.decode().split())
        return True

    def _obey(self, words: list[str]) -> None:
        match words:
            case ["renewed", stop_at, kill_at]:
                if not self._stopping:
                    self._stop_at, self._kill_at = float(stop_at), float(kill_at)
            case ["stop"]:
                self._stop()
            case ["kill"]:
                self._kill_at = -math.inf
            case _:
                raise ValueError(f"unknown line {words!r}")

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._signal(signal.SIGTERM)

    def _kill(self) -> None:
        self._stopping = True
        if not self._killed:
            self._killed = True
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._child.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def _end_with_the_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _let_pass(_: int, __: FrameType | None) -> None:
    """Ignore a signal, because the elector decides when to stop. The command would inherit SIG_IGN."""


def main() -> None:
    """Run the command from the command line."""
    lines, stop_at, kill_at, command = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _let_pass)
    try:
        keeper = Keeper(command, lines, stop_at, kill_at)
    except (FileNotFoundError, PermissionError) as error:
        print(f"error: {command[0]} cannot be run: {error.strerror}", file=sys.stderr)
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from None
    raise SystemExit(keeper.run())


if __name__ == "__main__":
    main()
