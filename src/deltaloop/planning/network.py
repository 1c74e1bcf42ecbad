"""Denial of network access during a plan: every attempt fails and is recorded with the line of the program.

Connections of the event loop reach only servers in the memory network of the plan. Sockets of other code, and new
processes, are denied by an audit hook. Extension modules that open their own sockets are not controlled.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn, cast, final

import msgspec

from deltaloop.runtime.reconcile.execution import running_reconcile
from deltaloop.simulation.under_test import is_turn_of_loop, is_under_test

_PROCESSES: Final = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.startfile"})
_SOCKETS: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


class NetworkDeniedError(ConnectionRefusedError):
    """Error of an attempt to use the network during a plan."""

    def __init__(self, target: str) -> None:
        super().__init__(
            errno.ECONNREFUSED,
            f"a plan denies access to {target}. Declare a stub for the lifespan with @LIFESPAN.stub",
        )


class DeniedAttempt(msgspec.Struct, frozen=True):
    """Attempt to use the network: its target, and the place ``file:line`` in the program."""

    target: str
    place: str


@final
class _Denials:
    def __init__(self) -> None:
        self.active: dict[DeniedAttempt, int] | None = None
        self.installed = False
        self.lock = threading.Lock()

    def deny(self, target: str) -> NoReturn:
        if self.active is not None:
            attempt = DeniedAttempt(target, _place(sys._getframe(1)))  # noqa: SLF001
            self.active[attempt] = self.active.get(attempt, 0) + 1
        raise NetworkDeniedError(target)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Deny an event of the interpreter during a plan; Python cannot remove an audit hook afterwards."""
        if self.active is None:
            return
        if event in _SOCKETS:
            address: object = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments[:2]
            self.deny(_target(address))
        elif event in _PROCESSES:
            self.deny(f"the program {arguments[0]}")


_denials: Final = _Denials()


@contextmanager
def denied_network() -> Generator[dict[DeniedAttempt, int], None, None]:
    """Deny access in this block, also in threads; yields the attempts with their counts.

    Enter it on the event loop of the plan.
    """
    with _denials.lock:
        if not _denials.installed:
            sys.addaudithook(_denials.audit)
            _denials.installed = True
    loop = asyncio.get_running_loop()
    connect, create = loop.sock_connect, loop.create_connection

    async def getaddrinfo(host: Any, port: Any, **_: Any) -> Any:
        if _is_numeric(host):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        return _denials.deny(_target((host, port)))

    async def sock_connect(sock: socket.socket, address: Any) -> None:
        try:
            await connect(sock, address)
        except OSError:
            _denials.deny(_target(address))

    async def create_connection(factory: Any, host: Any = None, port: Any = None, **keywords: Any) -> Any:
        try:
            return await create(factory, host, port, **keywords)
        except ConnectionRefusedError:
            _denials.deny(_target((host, port)))

    async def create_datagram_endpoint(_: Any, **keywords: Any) -> Any:
        _denials.deny(_target(keywords.get("remote_addr") or keywords.get("local_addr") or ("a datagram socket", "")))

    attempts: dict[DeniedAttempt, int] = {}
    replaced = {
        "getaddrinfo": getaddrinfo,
        "sock_connect": sock_connect,
        "create_connection": create_connection,
        "create_datagram_endpoint": create_datagram_endpoint,
    }
    for name, function in replaced.items():
        setattr(loop, name, function)
    _denials.active = attempts
    try:
        yield attempts
    finally:
        _denials.active = None
        for name in replaced:
            delattr(loop, name)


def _target(address: object) -> str:
    if isinstance(address, tuple):
        parts: tuple[Any, ...] = cast("tuple[Any, ...]", address)
        host, port = (*parts, "", "")[:2]
        host = host.decode(errors="replace") if isinstance(host, bytes) else host
        return f"{host}:{port}" if port not in ("", None) else str(host)
    return str(address)


def _is_numeric(host: object) -> bool:
    try:
        socket.inet_aton(str(host))
    except OSError:
        return False
    return True


def _place(frame: FrameType | None) -> str:
    """Return the innermost line of the program, or the line at which its reconcile waits for a library's task."""
    while frame is not None and not is_turn_of_loop(frame.f_code):
        if is_under_test(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    running, place = running_reconcile(), ""
    if running is None or frame is None:
        return place
    name = f"reconcile {running.controller} {running.request}"
    waiting: Any = next((task.get_coro() for task in asyncio.all_tasks() if task.get_name() == name), None)
    while waiting is not None:
        inner: FrameType | None = getattr(waiting, "cr_frame", None)
        if inner is not None and is_under_test(inner.f_code.co_filename):
            place = f"{inner.f_code.co_filename}:{inner.f_lineno}"
        waiting = getattr(waiting, "cr_await", None)
    return place
