"""Service of the webhooks of programs under test, which routes the embedded server to the first ready program."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, Protocol, final

import msgspec

from deltaloop.api.json_values import mapping, text
from deltaloop.api.status import Status
from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import CertificateAuthority
from deltaloop.client import Client
from deltaloop.testing.injected_faults.core.program_writes import FaultKind
from deltaloop.webhooks import StaticCertificate, WebhookAddress, WebhookServerOptions, WebhookSet, registrations
from deltaloop.webhooks.core.admission_review import admission_response
from deltaloop.webhooks.core.conversion_review import unconverted_response
from deltaloop.webhooks.declaring import Webhook
from deltaloop.webhooks.registering import register

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


NAME: Final = "deltaloop-harness"
LISTEN: Final = WebhookServerOptions(host="127.0.0.1", port=0, grace=0.0, stop_timeout=0.0)


@cache
def authority() -> CertificateAuthority:
    """Return the certificate authority that all harnesses of this process share, or raise MissingExtraError.

    A simulation calls it before it replaces the clock, because the certificate library keeps the first datetime class.
    """
    return CertificateAuthority.make()


class WebhookProgram(Protocol):
    name: str

    @property
    def webhook_port(self) -> int:
        """Port on which its webhooks can be reached; 0 if they cannot."""
        ...

    def pause(self) -> None: ...


@final
class WebhookService:
    def __init__(self, server: ApiServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._namespace = client.namespace
        host = f"{NAME}.{self._namespace}.svc"
        self._context = authority().server_context(host=host)
        self.certificate: StaticCertificate = StaticCertificate(self._context)
        self._registered: list[Webhook] = []
        self._failing: list[FailingWebhooks | None] = []
        self._failures: list[FailingWebhooks] = []
        self.lead_to(())

    @property
    def fails(self) -> bool:
        return bool(self._failing)

    async def register(self, webhooks: Sequence[Webhook]) -> None:
        """Register webhooks on the server, in addition to earlier webhooks."""
        added = [each for each in webhooks if each not in self._registered]
        if not added:
            return
        self._registered += added
        bundle = base64.b64encode(authority().ca_pem).decode()
        address = WebhookAddress(namespace=self._namespace, service=NAME, ca_bundle=bundle)
        await register(self._client, registrations(WebhookSet(self._registered), address, name=NAME))

    def lead_to(self, programs: Iterable[WebhookProgram]) -> None:
        """Route the server to the first program that can be reached, or to no endpoint."""
        port = next((each.webhook_port for each in programs if each.webhook_port), 0)
        if self._failing:
            port = 0 if (instead := self._failing[-1]) is None else instead.port
        self._server.route_service(f"{self._namespace}/{NAME}", f"127.0.0.1:{port}" if port else "")

    async def fail(self, how: FaultKind) -> None:
        """Make webhooks fail in one way until ``recover``; the latest failure applies."""
        instead = None
        if how is not FaultKind.WEBHOOK_UNAVAILABLE:
            instead = FailingWebhooks(how, self._context)
            await instead.start()
            self._failures.append(instead)
        self._failing.append(instead)
        self.lead_to(())

    def recover(self) -> None:
        del self._failing[0]

    def close(self) -> None:
        for each in self._failures:
            each.close()

    def __repr__(self) -> str:
        return f"<WebhookService {self._namespace}/{NAME}>"
