"""Server that replaces webhooks and fails: it never responds, or it rejects all reviews."""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import suppress
from typing import Any, Final, final

import msgspec

from deltaloop.api.json_values import mapping, text
from deltaloop.api.status import Status
from deltaloop.testing.injected_faults.core.program_writes import FaultKind
from deltaloop.webhooks.core.admission_review import admission_response
from deltaloop.webhooks.core.conversion_review import unconverted_response

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_WRONG: Final = "webhooks reject all requests temporarily"


@final
class FailingWebhooks:
    """Server on loopback that replaces a program with webhooks; its port is 0 before the start."""

    def __init__(self, how: FaultKind, context: ssl.SSLContext) -> None:
        """Fail by ``how``, ``WEBHOOK_TIMEOUT`` or ``WEBHOOK_REJECTS``, with the TLS context of the replaced program."""
        self.port: int = 0
        self._context = None if how is FaultKind.WEBHOOK_TIMEOUT else context
        self._answers = how is not FaultKind.WEBHOOK_TIMEOUT
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if not self._answers:
                await reader.read()  # until the client gives up
            while self._answers:
                writer.write(_response(refusal_of(await _request(reader))))
                await writer.drain()
        writer.close()


def refusal_of(review: bytes) -> bytes:
    """Return a response that rejects an admission or conversion review."""
    content = _decode(review)
    uid = text(mapping(content.get("request")).get("uid"))
    if content.get("kind") == "ConversionReview":
        return unconverted_response(uid, _WRONG)
    return admission_response(uid, refused=Status(code=403, reason="Forbidden", message=_WRONG))


async def _request(reader: asyncio.StreamReader) -> bytes:
    found = _LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
    return await reader.readexactly(int(found[1]) if found else 0)


def _response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
