"""Supervisor that runs one program and ends it with its caller; it is run by path, and imports nothing of this package.

    python -I -S supervise.py FOLDER PROGRAM ARGUMENT...

Standard input is an unused pipe. Its end means that the caller has ended. The supervisor then kills the program and
removes the folder. The first line on standard output is the program's process ID, and its output goes to standard
error. SIGTERM is passed on, and the program's exit code is returned. On Linux, the program is also killed if this
process is killed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial

PR_SET_PDEATHSIG = 1  # option of prctl(2)


def end_with(supervisor: int) -> None:
    """Make Linux kill this new process when its parent ends, or end now if it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != supervisor:
        os._exit(128 + signal.SIGKILL)


def main() -> int:
    """Run the program and return its exit code; 128 plus the signal number if it was killed."""
    folder, *command = sys.argv[1:]
    programs: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:
        if not programs:
            sys.exit(128 + signal.SIGTERM)
        programs[0].terminate()

    signal.signal(signal.SIGTERM, end)
    # No thread runs yet, so no lock can be held by a thread that does not exist in the new process.
    before = partial(end_with, os.getpid()) if sys.platform == "linux" else None
    program = subprocess.Popen(  # noqa: S603 - as named
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        cwd=folder,
        preexec_fn=before,  # noqa: PLW1509 - same
    )
    programs.append(program)
    sys.stdout.write(f"{program.pid}\n")
    sys.stdout.flush()
    abandoned = threading.Event()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        abandoned.set()
        program.kill()

    threading.Thread(target=watch, daemon=True).start()
    code = program.wait()
    if abandoned.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
