"""Service of the webhooks of programs under test, which routes the embedded server to the first ready program."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, Protocol, final

from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import CertificateAuthority
from deltaloop.client import Client
from deltaloop.testing.injected_faults.core.program_writes import FaultKind
from deltaloop.testing.injected_faults.failing_webhooks import FailingWebhooks
from deltaloop.webhooks import StaticCertificate, WebhookAddress, WebhookServerOptions, WebhookSet, registrations
from deltaloop.webhooks.declaring import Webhook
from deltaloop.webhooks.registering import register

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
