"""Run one program that does not outlive whoever asked for it: run by its path, it imports nothing of this package.

    python -I -S supervise.py FOLDER PROGRAM ARGUMENT...

Standard input is a pipe that nobody writes to. Its end means that the asker is gone, however it went: a killed process
closes its pipes, too. Then the program is killed and the folder with its data removed. The first line on standard
output is the program's process id; its own output goes to standard error. SIGTERM is passed on, and the code that the
program ends with is this process's own.

The program does not outlive this process either, where the system can see to that: Linux kills it when this process
is killed. macOS cannot; there it stays behind if this process, and not its asker, is killed.

A process that forks (not: that starts programs) while a server runs hands the pipe on; the program then lives as long
as the last copy.
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

PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with(supervisor: int) -> None:
    """Have Linux kill this process when its parent ends, or end now if that is too late; runs in the new process."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != supervisor:
        os._exit(128 + signal.SIGKILL)


def main() -> int:
    """Run the program to its end and return its code, 128 and the signal's number if it was killed."""
    folder, *command = sys.argv[1:]
    programs: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:
        if not programs:
            sys.exit(128 + signal.SIGTERM)
        programs[0].terminate()

    signal.signal(signal.SIGTERM, end)
    # No thread runs yet, so nothing can be held half-way by a thread that the new process does not have.
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
