"""Check that the API server can verify the certificate of this program's webhooks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, final
from urllib.parse import urlsplit

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.client import Client
from deltaloop.runtime.core.diagnosis import WebhookSeen
from deltaloop.webhooks.certificates.targets import TARGET_KINDS
from deltaloop.webhooks.core.certificates.targets import TargetKind, WebhookTarget, bundles_of

_TIMEOUT: Final = 1.0
_EVERY: Final = 10.0
"""Seconds between two checks, because each costs a request per configuration and a handshake."""


@final
class WebhookChecks:
    """Checks of the configurations that call the webhooks of one program."""

    def __init__(self, client: Client, targets: Sequence[WebhookTarget]) -> None:
        self._client = client
        self._targets = tuple(targets)
        self._checked_at: float | None = None
        self._found: tuple[WebhookSeen, ...] = ()

    async def problems(self, url: str) -> tuple[WebhookSeen, ...]:
        """Return the problems of all configurations; ``url`` is that of the program's own server."""
        now = asyncio.get_running_loop().time()
        if self._checked_at is None or now - self._checked_at >= _EVERY:
            self._checked_at = now
            handshakes: dict[tuple[str, str], str] = {}
            try:
                async with asyncio.timeout(_TIMEOUT):
                    found = [await self._problem(target, url, handshakes) for target in self._targets]
            except TimeoutError:
                problem = f"the certificates cannot be checked within {_TIMEOUT:g} s"
                found = [WebhookSeen(name="webhooks", problem=problem, unknown=True)]
            self._found = tuple(each for each in found if each is not None)
        return self._found

    async def _problem(
        self, target: WebhookTarget, url: str, handshakes: dict[tuple[str, str], str]
    ) -> WebhookSeen | None:
        try:
            obj = await self._client.find(TARGET_KINDS[target.kind], target.name, timeout=_TIMEOUT)
        except DeltaloopError as error:
            problem = f"the configuration cannot be read: {type(error).__name__}"
            return WebhookSeen(name=str(target), problem=problem, unknown=True)
        if obj is None:
            return WebhookSeen(name=str(target), problem="the configuration does not exist")
        fields = obj.to_dict()
        for name, certificates in bundles_of(target, fields).items():
            host = _host(target, fields, name)
            bundle = "".join(certificates or ())
            if not bundle:
                problem = "caBundle is empty or not readable"
            elif (host, bundle) in handshakes:
                problem = handshakes[host, bundle]
            else:
                problem = handshakes[host, bundle] = await _handshake(url, host, bundle)
            if problem:
                return WebhookSeen(name=str(target), problem=f"{problem} (webhook {name})" if name else problem)
        return None


def _host(target: WebhookTarget, fields: Mapping[str, Any], name: str) -> str:
    """Return the name that the certificate must have."""
    config = at(fields, "spec", "conversion", "webhook", "clientConfig")
    if target.kind is not TargetKind.CONVERSION:
        configs = (at(each, "clientConfig") for each in items(fields.get("webhooks")) if at(each, "name") == name)
        config = next(configs, None)
    service = mapping(at(config, "service"))
    if service:
        return f"{text(service.get('name'))}.{text(service.get('namespace'))}.svc"
    return urlsplit(text(at(config, "url"))).hostname or ""


async def _handshake(url: str, host: str, bundle: str) -> str:
    """Return why an API server with this bundle rejects the certificate of the server, or an empty string."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go accepts each certificate of the bundle as a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=bundle)
    except ssl.SSLError:
        return "caBundle has no usable certificate"
    place = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(place.hostname, place.port, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        return f"the API server rejects the served certificate: {error.verify_message}"
    except OSError as error:
        return f"the webhook server does not answer: {type(error).__name__}"
    with suppress(OSError):
        writer.transport.abort()
    return ""
