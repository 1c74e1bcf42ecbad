"""HTTP/1.1 for the two anchors: as little as the two servers of the benchmark need, over asyncio's protocols."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

_END: Final = b"\r\n\r\n"
_STREAMED_LIST: Final = (
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3000"
)


def unchunked(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the chunks of a body that are complete, and the bytes that follow them."""
    chunks: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end], 16)
        if len(data) < end + size + 4:
            break
        chunks.append(data[end + 2 : end + 2 + size])
        at = end + size + 4
    return chunks, data[at:]


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport


P = TypeVar("P", bound=_Connection)


@final
class PlainConnection(_Connection):
    """Connection for one request at a time; it returns to its pool with each answer."""

    def __init__(self, pool: list[PlainConnection]) -> None:
        """Belong to a pool."""
        self._pool = pool
        self._received = b""
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None

    def data_received(self, data: bytes) -> None:
        """Set the answer's status code and body once they are complete."""
        received = self._received + data if self._received else data
        body = self._body(received)
        if body is None:
            self._received = received
            return
        self._received = b""
        answer, self.answer = self.answer, None
        self._pool.append(self)
        if answer is not None and not answer.done():
            answer.set_result((int(received[9:12]), body))

    @staticmethod
    def _body(received: bytes) -> bytes | None:
        end = received.find(_END)
        if end < 0:
            return None
        head, body = received[:end].lower(), received[end + 4 :]
        at = head.find(b"content-length:")
        if at >= 0:
            line_end = head.find(b"\r\n", at)
            size = int(head[at + 15 : line_end if line_end > 0 else end])
            return body if len(body) >= size else None
        return b"".join(unchunked(body)[0]) if body.endswith(b"0\r\n\r\n") else None

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that is under way."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(exc or ConnectionError("the server closed the connection"))


@final
class PlainWatch(_Connection):
    """Connection of one watch, which gives each line to a function."""

    def __init__(self, on_line: Callable[[bytes], object]) -> None:
        """Have received nothing."""
        self._on_line = on_line
        self._received = self._line = b""
        self._in_body = False

    def data_received(self, data: bytes) -> None:
        """Give away the lines that are complete."""
        received = self._received + data if self._received else data
        if not self._in_body:
            end = received.find(_END)
            if end < 0:
                self._received = received
                return
            if received[9:12] != b"200":
                raise ConnectionError(f"the server rejected a watch: {received[:300]!r}")
            self._in_body, received = True, received[end + 4 :]
        chunks, self._received = unchunked(received)
        *lines, self._line = (self._line + b"".join(chunks)).split(b"\n")
        for line in lines:
            self._on_line(line)


@final
class PlainClient:
    """Client of the server in ``KUBECONFIG``, with a token."""

    def __init__(self) -> None:
        """Read the kubeconfig, which is JSON."""
        config: Any = json.loads(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        server = urlsplit(str(cluster["server"]))
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._host, self._port = server.hostname or "", server.port or 443
        self._tls = ssl.create_default_context(cadata=authority)
        head = f"Host: {server.netloc}\r\nUser-Agent: anchor\r\nAuthorization: Bearer {user['token']}\r\n"
        self._head = f"{head}Accept: application/json\r\n".encode()
        self._pool: list[PlainConnection] = []
        self._loop = asyncio.get_running_loop()

    async def ask(self, method: bytes, path: str, body: bytes, content_type: bytes = b"application/json") -> bytes:
        """Send a request and return the body of its answer."""
        answer = await self.sent(method, path, body, content_type)
        status, content = await answer
        if status >= 300:
            raise ConnectionError(f"{method.decode()} {path}: {status} {content[:200]!r}")
        return content

    async def sent(
        self, method: bytes, path: str, body: bytes, content_type: bytes
    ) -> asyncio.Future[tuple[int, bytes]]:
        """Send a request; the future is its status code and body."""
        while self._pool and self._pool[-1].transport.is_closing():
            self._pool.pop()
        connection = self._pool.pop() if self._pool else await self._connect(PlainConnection(self._pool))
        connection.answer = answer = self._loop.create_future()
        head = b"%b %b HTTP/1.1\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
        connection.transport.write(head % (method, path.encode(), self._head, content_type, len(body), body))
        return answer

    async def watch(self, path: str, on_line: Callable[[bytes], object]) -> None:
        """Open a watch that begins with a streamed list."""
        watch = await self._connect(PlainWatch(on_line))
        watch.transport.write(f"GET {path}?{_STREAMED_LIST} HTTP/1.1\r\n".encode() + self._head + b"\r\n")

    async def _connect(self, protocol: P) -> P:
        await self._loop.create_connection(lambda: protocol, self._host, self._port, ssl=self._tls)
        return protocol
