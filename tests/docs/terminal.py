"""Runs a page's commands as its reader would: each block is a terminal.

A program that serves (``deltaloop run``, ``deltaloop apiserver``, ``deltaloop leader-elect`` without a command) is
started, and the page goes on when it says that it is ready. Ctrl-C ends it before the next command of its block; the
last one of a block runs on until the page's end. It must end with 0, as every other command must.

``cd`` holds to the end of its block. Pages run beside each other, so the ports that ``deltaloop run`` takes by default
are free ones here, and commands that ask them are led there. A question to a program that has just begun is asked again
for some seconds.

Only the programs in ``RUN`` are run, those of other people (``kubectl``, ``helm``, ``curl``) where they are installed.
All others, such as ``pip`` and ``podman``, change a machine or need a network; ``make`` targets are what CI runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests import warm
from tests.docs import console
from tests.nightly import NIGHTLY

RUN = frozenset({"cat", "cd", "curl", "deltaloop", "export", "helm", "kubectl", "pytest"})
LIMIT = 60.0
"""Seconds that a command may take, a start until it is ready, or an end."""

_READY = {
    "apiserver": "is ready at https://",
    "leader-elect": "successfully acquired lease",
    "run": "starting workers",
}
_QUESTION = re.compile(r"\b(deltaloop why|kubectl (-n \S+ )?get|curl)\b")
_ASKED_AGAIN_FOR = 8.0
_PYTEST_ADDOPTS = "--ignore=examples"  # a reader's folder has none; their tests are run by themselves


class Started:
    """A program that serves, and what it prints."""

    def __init__(self, command: str, process: subprocess.Popen[bytes], ready: str) -> None:
        self.command = command
        self.process = process
        self.changed = threading.Event()  # it is ready, or has ended
        self._ready = ready
        self._printed = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._printed += line.decode(errors="replace")
            if self.is_ready:
                self.changed.set()
        self.changed.set()

    @property
    def is_ready(self) -> bool:
        return self._ready in self._printed

    @property
    def story(self) -> str:
        return f"{self.command!r}, which printed\n{self._printed}"

    def close(self) -> None:
        """Kill what is left of it, and read to the end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Terminals:
    """The terminals of one page."""

    def __init__(self, folder: Path) -> None:
        self._folder = self._here = folder
        self._exported: dict[str, str] = {}
        self._running: list[Started] = []
        self._metrics, self._health = 0, 0

    def run(self, commands: list[str], *, skipped: tuple[str, ...] = ()) -> str:
        """Run a block's commands, but not those with one of the skipped words, and return what they printed.

        Raises:
            AssertionError: One failed, did not end, or did not get ready.
        """
        mine: Started | None = None
        printed = ""
        self._here = self._folder
        for command in commands:
            if not runs_here(command) or any(word in command for word in skipped):
                continue
            if mine is not None:
                self._end(mine)
                mine = None
            exported = re.fullmatch(r"export (\w+)=(\S+)", command)
            entered = re.fullmatch(r"cd (\S+)", command)
            if exported is not None:
                self._exported[exported[1]] = exported[2]
            elif entered is not None:
                self._here /= entered[1]
                assert self._here.is_dir(), f"{command!r}: there is no such folder"
            elif (ready := ready_words(command)) is not None:
                mine = self._start(command, ready)
            else:
                printed += self._ask(command)
        return printed

    def close(self) -> None:
        """End what still runs, the last one first.

        Raises:
            AssertionError: One did not end in good order.
        """
        failures: list[AssertionError] = []
        for started in reversed([*self._running]):
            try:
                self._end(started)
            except AssertionError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def kill(self) -> None:
        """Kill what still runs."""
        while self._running:
            self._running.pop().close()

    def _start(self, command: str, ready: str) -> Started:
        if " run " in command:
            self._metrics, self._health = _free_ports(2)
        started = Started(command, self._open(command), ready)
        self._running.append(started)
        assert started.changed.wait(LIMIT), f"not ready after {LIMIT:g} s: {started.story}"
        assert started.is_ready, f"it ended before it was ready: {started.story}"
        return started

    def _end(self, started: Started) -> None:
        self._running.remove(started)
        try:
            assert started.process.poll() is None, f"it ended by itself: {started.story}"
            os.killpg(started.process.pid, signal.SIGINT)
            code = started.process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {LIMIT:g} s: {started.story}") from None
        finally:
            started.close()
        assert code == 0, f"Ctrl-C ended it with {code}: {started.story}"

    def _ask(self, command: str) -> str:
        deadline = time.monotonic() + _ASKED_AGAIN_FOR
        while True:
            try:
                return self._command(command)
            except AssertionError:
                if not _QUESTION.match(command) or time.monotonic() > deadline:
                    raise

    def _command(self, command: str) -> str:
        with self._open(command) as process:
            try:
                printed = process.communicate(timeout=LIMIT)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(f"{command!r} did not end within {LIMIT:g} s") from None
        assert process.returncode == 0, f"{command!r} ended with {process.returncode}:\n{printed}"
        return printed

    def _open(self, command: str) -> subprocess.Popen[bytes]:
        path = f"{warm.folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(self._folder), "COLUMNS": "120", "PYTEST_ADDOPTS": _PYTEST_ADDOPTS}
        return subprocess.Popen(
            # Of a list of commands the shell stays; alone it becomes the program, which then is the one to be ended.
            ["/bin/bash", "-c", self._led(command)],
            cwd=self._here,
            env={**os.environ, **own, **self._exported},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _led(self, command: str) -> str:
        """Return the command with the ports of this page, and with few runs by day."""
        metrics, health = f"127.0.0.1:{self._metrics}", f"127.0.0.1:{self._health}"
        ports = f"--metrics-bind-address {metrics} --health-probe-bind-address {health}"
        command = re.sub(r"\bdeltaloop run\b", f"deltaloop run {ports}", command)
        command = re.sub(r"\bdeltaloop why\b", f"deltaloop why --address {health}", command)
        if not NIGHTLY:
            command = re.sub(r"--runs \d+", "--runs 4", command)
        command = re.sub(r"\bcurl\b", "curl --fail --silent --show-error", command)
        return command.replace("localhost:8080", metrics).replace("localhost:8081", health)


def runs_here(command: str) -> bool:
    """Tell whether all programs of a command are among those that are run, and installed."""
    programs = [words[0] for words in console.simple_commands(command) if words]
    return all(program in RUN and (program == "cd" or _is_installed(program)) for program in programs)


def ready_words(command: str) -> str | None:
    """Return what a program that serves prints when it is ready; None for one that ends by itself."""
    found = console.simple_commands(command)
    words = found[0] if found else []
    if words[:1] != ["deltaloop"] or "--help" in words or (words[1] == "leader-elect" and "--" in words):
        return None
    return _READY.get(words[1])


def _is_installed(program: str) -> bool:
    return program in ("deltaloop", "export", "pytest") or shutil.which(program) is not None


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
