"""Sources of the webhook server's certificate."""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, final


class CertificateSource(Protocol):
    """Source of a TLS context whose certificate stays valid."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context to listen with, whose certificate can change between handshakes."""
        ...

    def not_ready(self) -> str:
        """Return why the server cannot receive requests yet, or an empty string if it can."""
        ...

    @property
    def valid_until(self) -> float | None:
        """Expiry of the certificate in seconds since 1970, or None if it is unknown."""
        ...

    async def run(self) -> None:
        """Keep the certificate valid until cancelled."""
        ...


@final
class StaticCertificate:
    """``CertificateSource`` with a TLS context that the caller created."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def context(self) -> ssl.SSLContext:
        """Return the context to listen with."""
        return self._context

    def not_ready(self) -> str:
        """Return an empty string, because the source is always ready."""
        return ""

    @property
    def valid_until(self) -> None:
        """None, because the expiry is unknown."""
        return

    async def run(self) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()

    def __repr__(self) -> str:
        return "<StaticCertificate>"
