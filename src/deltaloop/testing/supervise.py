"""Run one program that does not outlive whoever asked for it: run by its path, it imports nothing of this package.

    python -I -S supervise.py FOLDER PROGRAM ARGUMENT...

Standard input is a pipe that nobody writes to. Its end means that the asker is gone, however it went: a killed process
closes its pipes, too. Then the program is killed and the folder with its data removed. The first line on standard
output is the program's process id; its own output goes to standard error. SIGTERM is passed on, and the code that the
program ends with is this process's own.

A process that forks (not: that starts programs) while a server runs hands the pipe on; the program then lives as long
as the last copy.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading


def main() -> int:
    """Run the program to its end and return its code, 128 and the signal's number if it was killed."""
    folder, *command = sys.argv[1:]
    programs: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:
        if not programs:
            sys.exit(128 + signal.SIGTERM)
        programs[0].terminate()

    signal.signal(signal.SIGTERM, end)
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=folder)  # noqa: S603 - as named
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
