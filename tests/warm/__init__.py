"""Start ``deltaloop`` as a process in milliseconds: fork an interpreter that has imported the command line.

``start`` returns the process. ``command`` returns a program for a shell or for ``subprocess``, which costs one bare
interpreter. Both run in a process of their own with their own arguments, environment, folder and files. Tests of
imports, of signals during the start, and of other interpreter options start a new interpreter instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self, final

_HERE = Path(__file__).parent


@final
class WarmInterpreter:
    """The interpreter that is forked, and the folder of its socket and of the commands."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="warm-"))
        self.socket = self.folder / "socket"
        self.command = self.folder / "deltaloop"
        for path in (self.command, self.folder / "pytest"):
            path.write_text(f"#!{sys.executable} -IS\n{(_HERE / 'shim.py').read_text()}")
            path.chmod(0o700)
        self.owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE / "server.py"), str(self.socket)],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End it, and what it has started."""
        self._process.communicate(timeout=60)
        shutil.rmtree(self.folder)


_interpreter: WarmInterpreter | None = None


def interpreter() -> WarmInterpreter:
    """Return the interpreter of this process; it is started by the first caller."""
    global _interpreter  # noqa: PLW0603 - one for each worker
    if _interpreter is None:
        _interpreter = WarmInterpreter()
    return _interpreter


def close() -> None:
    """End the interpreter that this process has started, not the one of a process that it is a fork of."""
    global _interpreter  # noqa: PLW0603 - see above
    if _interpreter is not None and _interpreter.owner == os.getpid():
        _interpreter.close()
        _interpreter = None


def folder() -> Path:
    """Return the folder of the commands ``deltaloop`` and ``pytest``, for a ``PATH``."""
    return interpreter().folder


def command() -> str:
    """Return the path of ``deltaloop``."""
    return str(interpreter().command)


@final
class WarmProcess:
    """A process, with the methods of ``subprocess.Popen`` that tests need."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(60)

    def poll(self) -> int | None:
        """Return the exit code if it has ended; the number of a signal is negative."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._read()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: It still runs.
        """
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("deltaloop", timeout or 0.0)
            self._read()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read(self) -> None:
        self.returncode = int(self._answers.readline())
        self._answers.close()
        self._connection.close()


def start(
    *arguments: str,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> WarmProcess:
    """Start ``deltaloop`` with these arguments; files are open ones or descriptors."""
    message = {
        "argv": ["deltaloop", *arguments],
        "cwd": str(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
    }
    with Path(os.devnull).open("r+b") as nothing:
        files = [nothing if file == subprocess.DEVNULL else file for file in (stdin, stdout, stderr)]
        numbers = [file if isinstance(file, int) else file.fileno() for file in files]
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(interpreter().socket))
        socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], numbers)
    return WarmProcess(connection)
