"""A pytest plugin that collects tests once and runs them in forks: ``pytest -p tools.forked_tests --forks 3``.

Each worker of pytest-xdist imports and collects everything, but a fork inherits what was collected. A fork runs the
tests of one file after another and takes the number of the next file from a pipe that all forks share. It sends its
reports, many in a message, to the process that was started, which shows and counts them.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import selectors
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NoReturn, cast, final

import pytest

_NUMBER: Final = 4  # bytes of a file's number in the pipe, which holds some ten thousand of them
_LENGTH: Final = 8  # bytes of a message's length
_MOST_WAITING: Final = 100  # reports in a message


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the number of forks."""
    parser.getgroup("forks").addoption(
        "--forks", type=int, default=0, metavar="COUNT", help="run the tests in this many forks (default: 0, in none)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take over the loop of tests."""
    forks = int(config.getoption("--forks") or 0)
    if forks > 0:
        config.pluginmanager.register(Forks(config, forks), "forks")


@final
class Fork:
    """The process that was started sees a fork as the socket that its messages come from."""

    def __init__(self, pid: int, connection: socket.socket, running: mmap.mmap) -> None:
        """Know a fork by its id, its socket, and the memory that holds the number of its running test."""
        self.pid = pid
        self.connection = connection
        self.running = running
        self._received = b""

    def messages(self) -> Iterator[tuple[Any, ...]]:
        """Read what is there.

        Raises:
            EOFError: The fork has ended.
        """
        received = self.connection.recv(1 << 20)
        if not received:
            raise EOFError
        self._received += received
        while len(self._received) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._received[:_LENGTH])
            if len(self._received) < end:
                return
            message, self._received = self._received[_LENGTH:end], self._received[end:]
            yield from pickle.loads(message)  # noqa: S301 - from a fork of this process


@final
class Forks:
    """Runs tests in forks, and reports them here."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        """Run the tests in this many forks."""
        self._config = config
        self._count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Fork, and report until all forks have ended."""
        if session.testsfailed or session.config.getoption("collectonly"):
            return None  # pytest's own loop ends the run
        if (terminal := self._config.pluginmanager.get_plugin("terminalreporter")) is not None:
            terminal.showfspath = False  # files are not run one after another
        cast("Any", self._config)._tmp_path_factory.getbasetemp()  # noqa: SLF001 - as below; forks make theirs in it
        files = [[*items] for _, items in groupby(session.items, key=lambda item: item.path)]
        numbers, writing = os.pipe()
        os.write(writing, b"".join(number.to_bytes(_NUMBER) for number in range(len(files))))
        os.close(writing)
        forks: list[Fork] = []
        try:
            forks += [self._fork(session, files, numbers, number) for number in range(min(self._count, len(files)))]
            os.close(numbers)
            self._report(session, forks)
        finally:
            for fork in forks:
                fork.connection.close()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(fork.pid, signal.SIGKILL)
                    os.waitpid(fork.pid, 0)
        return True

    def _fork(self, session: pytest.Session, files: list[list[pytest.Item]], numbers: int, number: int) -> Fork:
        ours, theirs = socket.socketpair()
        running = mmap.mmap(-1, _NUMBER)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            ours.close()
            _run_fork(session, files, numbers, number, Sender(session.config, theirs, running))
        theirs.close()
        return Fork(pid, ours, running)

    def _report(self, session: pytest.Session, forks: list[Fork]) -> None:
        with selectors.DefaultSelector() as selector:
            for fork in forks:
                selector.register(fork.connection, selectors.EVENT_READ, fork)
            while selector.get_map():
                for key, _ in selector.select():
                    fork = key.data
                    try:
                        for name, *arguments in fork.messages():
                            getattr(self, f"_{name}")(*arguments)
                    except (EOFError, ConnectionError):
                        selector.unregister(fork.connection)
                        self._ended(fork, session)
                        forks.remove(fork)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)

    def _start(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)

    def _result(self, data: dict[str, Any]) -> None:
        report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
        self._config.hook.pytest_runtest_logreport(report=report)

    def _finish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _warning(self, text: str, place: tuple[str, int], when: str, nodeid: str) -> None:
        message = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, *place)
        arguments = {"warning_message": message, "when": when, "nodeid": nodeid, "location": None}
        self._config.hook.pytest_warning_recorded.call_historic(kwargs=arguments)

    def _ended(self, fork: Fork, session: pytest.Session) -> None:
        """Fail the test that a fork was running when it ended."""
        fork.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
        running = int.from_bytes(fork.running[:])
        if code == 0 and not running:
            return
        item = session.items[running - 1] if running else session
        words = f"the process that ran it ended with {code}; reports of up to {_MOST_WAITING} other tests are missing"
        location = item.location if isinstance(item, pytest.Item) else ("", None, "a fork")
        report = pytest.TestReport(item.nodeid, location, {}, outcome="failed", longrepr=words, when="call")
        self._config.hook.pytest_runtest_logreport(report=report)


@final
class Sender:
    """Sends what a fork reports."""

    def __init__(self, config: pytest.Config, connection: socket.socket, running: mmap.mmap) -> None:
        """Send through this connection, and note the running test in this memory."""
        self._config = config
        self._connection = connection
        self._running = running
        self._waiting: list[tuple[object, ...]] = []

    def note(self, number: int) -> None:
        """Note the test that runs, from 1, or 0 for none."""
        self._running[:] = number.to_bytes(_NUMBER)

    def send(self) -> None:
        """Send the reports that wait."""
        data = pickle.dumps(self._waiting)
        self._waiting = []
        self._connection.sendall(len(data).to_bytes(_LENGTH) + data)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send that a test starts."""
        self._add("start", nodeid, location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send the result of a phase, unless it is a setup or a teardown that passed: only the others are shown."""
        if report.passed and report.when != "call":
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._add("result", data)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send that a test has ended."""
        self._add("finish", nodeid, location)

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        """Send a warning as text."""
        place = warning_message.filename, warning_message.lineno
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        self._add("warning", text, place, when, nodeid)

    def _add(self, *message: object) -> None:
        self._waiting.append(message)
        if len(self._waiting) >= _MOST_WAITING:
            self.send()


def _run_fork(
    session: pytest.Session, files: list[list[pytest.Item]], numbers: int, number: int, sender: Sender
) -> NoReturn:
    code = 1
    try:
        config = session.config
        _isolate(config, number)
        config.pluginmanager.register(sender, "sender")
        _run_files(session, files, numbers, sender)
        code = 0
    except BaseException:  # noqa: BLE001 - the process that was started reports the code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _isolate(config: pytest.Config, number: int) -> None:
    """Give a fork its own captured output and temporary folder, and no terminal."""
    plugins = config.pluginmanager
    plugins.unregister(name="forks")
    plugins.unregister(name="terminalreporter")
    capture = plugins.get_plugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    capture.start_global_capturing()
    factory = cast("Any", config)._tmp_path_factory  # noqa: SLF001 - pytest has no public name for it
    factory._basetemp = factory.getbasetemp() / f"fork-{number}"  # noqa: SLF001 - as above
    factory._basetemp.mkdir(mode=0o700)  # noqa: SLF001 - as above


def _run_files(session: pytest.Session, files: list[list[pytest.Item]], numbers: int, sender: Sender) -> None:
    def take() -> list[pytest.Item]:
        number = os.read(numbers, _NUMBER)
        return files[int.from_bytes(number)] if number else []

    places = {item: place for place, item in enumerate(session.items, 1)}
    items = take()
    while items:
        following = take()
        for item, next_item in zip(items, [*items[1:], following[0] if following else None], strict=True):
            sender.note(places[item])
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
            if session.shouldfail or session.shouldstop:
                break
        sender.send()
        sender.note(0)
        if session.shouldfail or session.shouldstop:
            return
        items = following
