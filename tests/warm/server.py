"""The warm interpreter: imports the command line, then forks for each connection and runs one command in the child.

A connection brings one line of JSON and three open files. It is sent the child's id, and later its exit code. The child
is killed when the connection ends first. The interpreter ends when its standard input does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

_codes: list[int] = []
"""The exit code of a child that ends."""


def _wake(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal has woken the selector."""


@atexit.register
def leave() -> None:
    """End a child without the hundred milliseconds in which an interpreter frees what was imported.

    It is registered before all others, so it is called after them.
    """
    if _codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_codes[0])


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, files, _, _ = socket.recv_fds(connection, 65536, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(65536)
    return json.loads(data), list(files)


def run(message: dict[str, Any], files: list[int]) -> NoReturn:
    """Run the command in this process, the child."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(message["env"])
    os.chdir(message["cwd"])
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ.setdefault("PYTHONHASHSEED", "0")  # as this interpreter has it
    sys.argv = message["argv"]
    sys.orig_argv = [sys.executable, str(Path(sys.executable).with_name("deltaloop")), *sys.argv[1:]]
    import pytest

    from deltaloop.cli.main import main

    code: object = 0
    try:
        if os.path.basename(sys.argv[0]) == "pytest":  # noqa: PTH119 - a quick start
            sys.argv[1:1] = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # all is imported already
            code = pytest.console_main()
        else:
            main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    _codes.append(code or 0)
    sys.exit(code)


def serve(listener: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each connection; return in a child what it has to do, and None at the end."""
    waking, woken = socket.socketpair()
    for each in (waking, woken, listener):
        each.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connections: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(waking, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == 0:
                    for pid in connections:
                        _kill(pid)
                        os.waitpid(pid, 0)
                    return None
                if key.fileobj is waking:
                    waking.recv(4096)
                    _reap(connections, selector)
                elif key.fileobj is listener:
                    connection, _ = listener.accept()
                    connection.setblocking(True)
                    message, files = receive(connection)
                    pid = os.fork()
                    if not pid:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        signal.signal(signal.SIGINT, signal.default_int_handler)
                        for each in (waking, woken, listener, connection, *connections.values()):
                            each.close()
                        return message, files
                    for file in files:
                        os.close(file)
                    connections[pid] = connection
                    selector.register(connection, selectors.EVENT_READ, pid)
                    connection.sendall(b"%d\n" % pid)
                elif key.data in connections:  # whoever started it is gone
                    selector.unregister(key.fileobj)
                    _kill(key.data)


def _kill(pid: int) -> None:
    """Kill a child and what it has started; it may not have made its group yet."""
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _reap(connections: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    while connections:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with connections.pop(pid) as connection, contextlib.suppress(OSError, KeyError):
            if connection in selector.get_map():
                selector.unregister(connection)
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def warm_up() -> None:
    """Import and build what commands use."""
    del sys.path[0]
    import deltaloop

    modules = [each.name for each in pkgutil.walk_packages(deltaloop.__path__, "deltaloop.")]
    modules += [each.module for each in importlib.metadata.entry_points(group="pytest11")]
    used = ("pytest", "hypothesis", "typer._adapters", "cryptography.x509", "prometheus_client", "encodings.idna")
    for module in (*modules, *used):
        if not module.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen(64)
        warm_up()
        print("ready", flush=True)
        if (work := serve(server)) is not None:
            run(*work)
