"""Addresses, certificates and registrations of a program's webhooks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import urlsplit

from deltaloop.client import Client
from deltaloop.runtime.program.options import RunOptionError, RunOptions, webhook_server_options
from deltaloop.webhooks import (
    CertificateSource,
    ManagedCertificateOptions,
    ManagedCertificates,
    MountedCertificates,
    StaticCertificate,
    WebhookAddress,
    WebhookSet,
    WebhookTarget,
)
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.declaring import Webhook
from deltaloop.webhooks.registering import register, registrations

if TYPE_CHECKING:
    from deltaloop.webhooks import WebhookServerOptions

_LOCAL: Final = "127.0.0.1"


def default_service(program: str) -> str:
    """Return the default name of the webhook Service, which is also the name of the Secret."""
    return f"{program}-webhooks"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramWebhooks:
    """Webhooks of a running program; ``certificate`` and ``address`` are for an embedded server only."""

    name: str
    webhooks: Sequence[Webhook]
    options: RunOptions
    listen: WebhookServerOptions | None = None
    certificate: StaticCertificate | None = None
    address: WebhookAddress | None = None

    @classmethod
    def of(cls, webhooks: Sequence[Webhook], options: RunOptions, *, name: str) -> ProgramWebhooks:
        """Return the webhooks of a program; raises InvalidWebhookError, MissingExtraError or RunOptionError."""
        WebhookSet(webhooks)
        listen = webhook_server_options(options) if webhooks else None
        found = cls(name=name, webhooks=webhooks, options=options, listen=listen)
        return found if listen is None or not options.embedded else found._on_embedded_server(listen)

    def _on_embedded_server(self, listen: WebhookServerOptions) -> ProgramWebhooks:
        if not listen.port:
            raise RunOptionError(
                "{webhook_bind_address} must have a port other than 0 with {embedded}, got {got!r}: the URL is "
                "registered before the port is known.",
                got=self.options.webhook_bind_address,
            )
        if listen.client_ca is not None:
            raise RunOptionError(
                "{webhook_client_ca} and {embedded} cannot be combined: the embedded server has no client certificate. "
                "Remove {webhook_client_ca}."
            )
        from deltaloop.apiserver.tls import CertificateAuthority

        authority = CertificateAuthority.make()
        host = listen.host or _LOCAL
        address = WebhookAddress(
            url=f"https://[{host}]:{listen.port}" if ":" in host else f"https://{host}:{listen.port}",
            ca_bundle=base64.b64encode(authority.ca_pem).decode(),
        )
        return replace(
            self,
            listen=listen.replace(host=host, grace=0.0),  # no endpoints have to change
            certificate=StaticCertificate(authority.server_context(host=host)),
            address=address,
        )

    def certificates(self, client: Client) -> CertificateSource | None:
        """Return the source of the certificate; None if no webhooks are served; raises MissingExtraError."""
        if self.listen is None or self.certificate is not None:
            return self.certificate
        if self.options.webhook_cert_dir is not None:
            return MountedCertificates(Path(self.options.webhook_cert_dir))
        service, namespace = self.options.webhook_service or default_service(self.name), client.namespace
        host = urlsplit(self.options.webhook_url or "").hostname
        hosts = (host,) if host else (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")
        return ManagedCertificates(
            client,
            ManagedCertificateOptions(
                namespace=namespace, secret=default_service(self.name), hosts=hosts, targets=self.targets()
            ),
        )

    def targets(self) -> tuple[WebhookTarget, ...]:
        return targets_in(self._registrations(WebhookAddress(namespace="any", service="any")))  # only names are needed

    async def register(self, client: Client) -> None:
        """Register the webhooks on an embedded server, or raise InvalidArgumentError without a definition."""
        if self.address is not None:
            await register(client, self._registrations(self.address))

    def _registrations(self, address: WebhookAddress) -> list[dict[str, Any]]:
        return registrations(WebhookSet(self.webhooks), address, name=self.name)
