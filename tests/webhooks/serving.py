"""A server of webhooks with a certificate of its own, and who asks it, over HTTPS."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import aiohttp

from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.webhooks import StaticCertificate, WebhookServer, WebhookServerOptions, WebhookSet
from deltaloop.webhooks.answer import Answer, Outcome
from deltaloop.webhooks.declaring import Webhook
from tests.webhooks.kinds import sent

LOCAL = WebhookServerOptions(host="127.0.0.1", port=0, grace=0.0)


@cache
def credentials() -> tuple[CertificateAuthority, ssl.SSLContext]:
    authority = CertificateAuthority.make()
    return authority, authority.server_context(host="127.0.0.1")


class Counted:
    """Hooks that note what they are told."""

    def __init__(self) -> None:
        self.flights: list[tuple[str, int]] = []
        self.expiries: list[float] = []
        self.answers: list[tuple[str, int, Outcome]] = []

    def in_flight(self, path: str, number: int) -> None:
        self.flights.append((path, number))

    def certificate_valid_until(self, seconds: float) -> None:
        self.expiries.append(seconds)

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        assert seconds >= 0
        self.answers.append((path, code, outcome))


class Caller:
    """Asks one server."""

    def __init__(self, session: aiohttp.ClientSession, server: WebhookServer, metrics: Counted) -> None:
        self.session, self.server, self.metrics = session, server, metrics

    async def ask(self, path: str, content: Any = None, *, body: Any = None, **headers: str) -> Answer:
        """Send a review; of the answer, the outcome is unknown."""
        data = sent(content) if body is None else body
        given = {"Content-Type": "application/json", **{name.replace("_", "-"): each for name, each in headers.items()}}
        async with self.session.post(f"{self.server.url}{path}", data=data, headers=given) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            found = await answer.read()
            json.loads(found)
            return Answer(answer.status, found, "allowed")


@asynccontextmanager
async def serving(webhooks: Iterable[Webhook], options: WebhookServerOptions = LOCAL) -> AsyncGenerator[Caller]:
    authority, context = credentials()
    metrics = Counted()
    trusting = ssl.create_default_context(cadata=authority.ca_pem.decode())
    connector = aiohttp.TCPConnector(ssl=trusting, limit=0)
    server = WebhookServer(WebhookSet(webhooks), StaticCertificate(context), options=options, metrics=metrics)
    async with aiohttp.ClientSession(connector=connector) as session, server:
        yield Caller(session, server, metrics)
