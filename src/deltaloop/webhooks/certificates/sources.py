"""Protocol between the webhook server and the source of its certificate."""

from __future__ import annotations

import ssl
from typing import Protocol


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
