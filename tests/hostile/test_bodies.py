"""What any sender can do with a body: it is not unpacked, and what nobody wants is read to a bound only."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp.http_parser import DeflateBuffer

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.health_server import HealthServer
from deltaloop.runtime.program.pages import HttpPage
from tests.apiserver.serving import CONFIG_MAPS, config_map, serving

_PIECE = 64 * 1024
_MOST_SENT = 64 * 2**20
# What a server may take after its answer (3 MiB), and what lies in the sockets' buffers on the way.
_MOST_TAKEN = 20 * 2**20
_BOMB = gzip.compress(bytes(_PIECE * 1000))[:_PIECE].ljust(_PIECE, b"\0")


@dataclass
class Unpacking:
    """What the HTTP library has handed to a decompressor: the sizes of the packed pieces."""

    pieces: list[int] = field(default_factory=list[int])


@pytest.fixture
def unpacking(monkeypatch: pytest.MonkeyPatch) -> Unpacking:
    """Count what would be unpacked, and unpack nothing."""
    seen = Unpacking()

    def feed_data(_: DeflateBuffer, chunk: bytes, *__: Any) -> bool:
        seen.pieces.append(len(chunk))
        return False

    def feed_eof(buffer: DeflateBuffer) -> None:
        buffer.out.feed_eof()

    monkeypatch.setattr(DeflateBuffer, "feed_data", feed_data)
    monkeypatch.setattr(DeflateBuffer, "feed_eof", feed_eof)
    return seen


async def _page(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
    return HttpPage(b"ok")


@asynccontextmanager
async def _server(kind: str) -> AsyncGenerator[int]:
    async with AsyncExitStack() as stack:
        server: HealthServer | ApiServer
        if kind == "health":
            server = await stack.enter_async_context(HealthServer(BindAddress(), {"/healthz": _page}))
        else:
            token = SecretText("right") if kind == "with a token" else None
            options = ServerOptions(insecure_http=token is None, token=token, controllers=frozenset())
            server = await stack.enter_async_context(ApiServer(options))
        yield int(server.url.rpartition(":")[2])


_REQUESTS = [
    ("health", "GET /healthz", 200),
    ("health", "POST /healthz", 405),
    ("health", "GET /nothing", 404),
    ("open", "GET /healthz", 200),
    ("open", "POST /healthz", 405),
    ("open", "GET /nothing", 404),
    ("open", "PUT /api/v1/nothing", 404),
    ("open", f"POST {CONFIG_MAPS} HTTP/1.1\r\nContent-Type: text/plain\r\nX: ", 413),
    ("open", f"POST {CONFIG_MAPS} HTTP/1.1\r\nContent-Type: application/json\r\nX: ", 413),
    ("open", f"PATCH {CONFIG_MAPS}/a HTTP/1.1\r\nContent-Type: application/merge-patch+json\r\nX: ", 413),
    ("open", f"DELETE {CONFIG_MAPS}/a HTTP/1.1\r\nContent-Type: application/json\r\nX: ", 413),
    ("open", "POST /deltaloop/faults HTTP/1.1\r\nContent-Type: application/json\r\nX: ", 413),
    ("open", "DELETE /deltaloop/faults", 200),
    ("elsewhere", f"POST {CONFIG_MAPS}", 421),
]


def _name(value: object) -> str:
    return str(value).split("\r", 1)[0]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(("kind", "request_line", "status"), _REQUESTS, ids=_name)
async def test_endless_body_is_neither_decompressed_nor_read(
    kind: str, request_line: str, status: int, encoding: str, unpacking: Unpacking
) -> None:
    async with _server(kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        host = "evil.example" if kind == "elsewhere" else "127.0.0.1"
        line = request_line if "\r\n" in request_line else f"{request_line} HTTP/1.1\r\nX: "
        head = f"{line}y\r\nHost: {host}\r\nContent-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        answer = asyncio.create_task(reader.readline())
        sent = 0
        try:
            while sent < _MOST_SENT:
                writer.write(f"{_PIECE:x}\r\n".encode() + _BOMB + b"\r\n")
                await writer.drain()
                sent += _PIECE
        except ConnectionError:
            pass
        assert int((await answer).split()[1]) == status
        writer.transport.abort()
    assert unpacking.pieces == []
    assert sent < _MOST_TAKEN


async def test_wrong_token_is_rejected_before_body() -> None:
    body = json.dumps(config_map("a")).encode()
    async with _server("with a token") as port:
        for token, expected in (("wrong", [b"HTTP/1.1 401"]), ("right", [b"HTTP/1.1 100", b"HTTP/1.1 201"])):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_trusting())
            writer.write(
                f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
                "Expect: 100-continue\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
            )
            lines = [(await reader.readline())[:12]]
            if lines == [b"HTTP/1.1 100"]:
                writer.write(body)
                await reader.readline()
                lines.append((await reader.readline())[:12])
            assert lines == expected
            writer.transport.abort()


async def test_sending_client_receives_rejection() -> None:
    """4 MiB, which are too many, in one piece: the answer is read although not all was taken."""
    async with serving() as s:
        answer = await s.call.post(CONFIG_MAPS, {**config_map("a"), "data": {"a": "x" * 4 * 2**20}})
        assert answer.refuses(413, "RequestEntityTooLarge") == "Request entity too large: limit is 3145728"
        assert answer.headers["Connection"] == "close"


async def test_body_of_rejected_request_is_drained() -> None:
    """2 MiB, as much as would be taken of somebody who may: a client that reads when it has sent all is answered."""
    async with _server("open") as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            size = 2 * 2**20
            head = f"PUT /api/v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n"
            writer.write(head.encode())
            for _ in range(size // _PIECE):
                writer.write(bytes(_PIECE))
                await writer.drain()
            answer = await reader.readuntil(b'"code":404}\n')
            assert answer.startswith(b"HTTP/1.1 404")
        writer.transport.abort()


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize("kind", ["health", "open"])
@pytest.mark.parametrize(
    "sent",
    [b"\x00\x01\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 10_000],
    ids=["no HTTP", "version", "long"],
)
async def test_malformed_request_is_logged_at_debug_level(
    kind: str, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with _server(kind) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert b" 400 " in await reader.readline()
            writer.transport.abort()
    (line,) = [record for record in caplog.records if record.msg == "cannot read request"]
    assert line.exc_info is None
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    assert "aaaa" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        async with _server(kind) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert b" 400 " in await reader.readline()
            writer.transport.abort()
    assert "cannot be read" not in caplog.text
