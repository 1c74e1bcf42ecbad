"""How ``deltaloop run`` serves a program's webhooks: where, by which certificate, and who registers them.

In a cluster, configurations are applied by whoever installs the program; ``run`` keeps their certificates. On the
embedded server, which ends with the program, ``run`` registers them itself, by URL, with an authority of its own.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cli.object_names import check_name
from deltaloop.cli.webhooks import secret_name
from deltaloop.client import Client
from deltaloop.webhooks import (
    FixedCertificate,
    MountedCertificates,
    OwnCertificateOptions,
    OwnCertificates,
    WebhookAddress,
    WebhookServerOptions,
    WebhookSet,
    WebhookTarget,
)
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.declaring import Webhook
from deltaloop.webhooks.registering import register, registrations

if TYPE_CHECKING:
    from deltaloop.webhooks import CertificateSource

_LOCAL: Final = "127.0.0.1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunWebhooks:
    """The webhooks of a program that runs.

    Attributes:
        name: Of its configurations, and in front of that of its Secret.
        webhooks: What its module declares.
        listen: Where they are served; None nowhere.
        service: Name of the Service; empty for NAME-webhooks.
        url: Where the API server finds them in place of a Service, ``https://HOST:PORT``; empty for a Service.
        folder: Where another tool keeps ``tls.crt`` and ``tls.key``; None for certificates of the program's own.
    """

    name: str = ""
    webhooks: tuple[Webhook, ...] = ()
    listen: WebhookServerOptions | None = None
    service: str = ""
    url: str = ""
    folder: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used.

        Raises:
            InvalidArgumentError: Naming the flag.
            InvalidWebhookError: If the webhooks do not fit together.
        """
        WebhookSet(self.webhooks)
        if self.webhooks:
            check_name("--webhook-name", self.name)
        if self.service:
            check_name("--webhook-service", self.service)
        if self.url:
            parts = urlsplit(self.url)
            if parts.scheme != "https" or not parts.hostname:
                raise InvalidArgumentError(f"--webhook-url {self.url!r} is none that a server calls: https://HOST:PORT")

    @property
    def served(self) -> bool:
        """Whether there is something to serve, and a place for it."""
        return bool(self.webhooks) and self.listen is not None

    def on_embedded_server(self) -> tuple[RunWebhooks, FixedCertificate | None, WebhookAddress | None]:
        """Return the same for the embedded server, with a certificate, and the address to register.

        Raises:
            MissingExtraError: If the extra ``server`` is not installed.
            InvalidArgumentError: If the port is to be a free one, which nobody can be told beforehand.
        """
        if not self.webhooks or self.listen is None:
            return self, None, None
        if not self.listen.port:
            raise InvalidArgumentError(
                "with --embedded, --webhook-bind-address needs a port: its URL is registered first"
            )
        if self.listen.client_ca is not None:
            raise InvalidArgumentError(
                "--webhook-client-ca and --embedded cannot be combined: the embedded server has no client certificate. "
                "Leave --webhook-client-ca out."
            )
        from deltaloop.apiserver.tls import CertificateAuthority

        authority = CertificateAuthority.make()
        host = self.listen.host or _LOCAL
        address = WebhookAddress(
            url=f"https://[{host}]:{self.listen.port}" if ":" in host else f"https://{host}:{self.listen.port}",
            ca_bundle=base64.b64encode(authority.ca_pem).decode(),
        )
        local = replace(self, listen=replace(self.listen, host=host, grace=0.0))  # no endpoints have to change
        return local, FixedCertificate(authority.server_context(host=host)), address

    def certificates(self, client: Client) -> CertificateSource | None:
        """Return where the certificate is from in a cluster; None if nothing is served.

        Args:
            client: Whose namespace is the program's.

        Raises:
            MissingExtraError: If the extra ``webhooks`` is not installed.
            InvalidArgumentError: If the folder or a name cannot be used.
        """
        if not self.served:
            return None
        if self.folder is not None:
            return MountedCertificates(self.folder)
        service, namespace = self.service or f"{self.name}-webhooks", client.namespace
        host = urlsplit(self.url).hostname if self.url else None
        hosts = (host,) if host else (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")
        options = OwnCertificateOptions(
            namespace=namespace, secret=secret_name(self.name), hosts=hosts, targets=self.targets()
        )
        return OwnCertificates(client, options)

    def targets(self) -> tuple[WebhookTarget, ...]:
        """Return the configurations whose ``caBundle`` is written, as ``deltaloop webhooks`` names them."""
        address = WebhookAddress(namespace="any", service="any")  # only names are needed
        return targets_in(registrations(WebhookSet(self.webhooks), address, name=self.name))

    async def register(self, client: Client, address: WebhookAddress) -> None:
        """Have an embedded server ask the webhooks.

        Raises:
            InvalidArgumentError: If a definition is missing whose objects are converted.
        """
        await register(client, registrations(WebhookSet(self.webhooks), address, name=self.name))
