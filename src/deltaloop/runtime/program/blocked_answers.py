"""Responses to ``deltaloop doctor`` while the event loop is blocked.

The watchdog thread accepts connections of the health server during a block. It responds to local requests for the
diagnosis, and passes all other connections to the event loop, which serves them after the block.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, final

from deltaloop.runtime.program.health_pages import DOCTOR_PATH
from deltaloop.runtime.program.health_server import HealthServer, is_local

_LOOK: Final = 0.05
_REQUEST: Final = 0.2
"""Seconds for the head of a request. A slow client must not delay the watchdog."""
_HEAD: Final = 16 * 1024


@final
class BlockedAnswers:
    """Responses of the watchdog thread; the function returns the document during a block, or None."""

    def __init__(self, server: HealthServer, document: Callable[[], Mapping[str, Any] | None]) -> None:
        """Copy the sockets of a server that listens on the running loop."""
        self._server = server
        self._document = document
        self._loop = asyncio.get_running_loop()
        self._sockets = server.copies_of_sockets()
        for each in self._sockets:
            each.setblocking(False)

    def serve(self, seconds: float) -> None:
        """Wait for one connection, for at most ``seconds``, and respond to it."""
        with suppress(OSError, ValueError):  # the server closes meanwhile, or the client does
            ready, _, _ = select.select(self._sockets, (), (), min(seconds, _LOOK))
            for each in ready[:1]:
                connection, address = each.accept()
                try:
                    self._answer(connection, str(address[0]))
                except (OSError, RuntimeError, ValueError):
                    connection.close()

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def _answer(self, connection: socket.socket, remote: str) -> None:
        connection.settimeout(_REQUEST)
        with suppress(TimeoutError):
            connection.recv(1, socket.MSG_PEEK)
        connection.setblocking(False)
        try:
            head = connection.recv(_HEAD, socket.MSG_PEEK).decode("latin-1")
        except BlockingIOError:
            head = ""
        document = self._document() if _asks(head, remote) else None
        if document is None:
            # The loop is running again, or another page was requested.
            self._loop.call_soon_threadsafe(self._server.adopt, connection)
            return
        connection.settimeout(_REQUEST)
        connection.recv(_HEAD)
        body = json.dumps(document).encode()
        status = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        with connection:
            connection.sendall(f"{status}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + body)


def _asks(head: str, remote: str) -> bool:
    """Return whether the head is that of a local request for the diagnosis."""
    request, complete, _ = head.partition("\r\n\r\n")
    first, *lines = request.split("\r\n")
    method, _, target = first.partition(" ")
    host = next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")), "")
    path = target.partition(" ")[0].partition("?")[0]
    return bool(complete) and method == "GET" and path == DOCTOR_PATH and is_local(host, remote)
