"""Where a server of webhooks has its certificate from, as the server sees it."""

from __future__ import annotations

import ssl
from typing import Protocol


class CertificateSource(Protocol):
    """Gives a server its TLS context, and keeps the certificate in it good."""

    def context(self) -> ssl.SSLContext:
        """Return the context to listen with; it is one and the same, and what it serves changes between handshakes."""
        ...

    def not_ready(self) -> str:
        """Return why the server should not be called now; empty if it may be."""
        ...

    @property
    def valid_until(self) -> float | None:
        """Until when what is served is valid, in seconds since 1970; None before the first, and if nobody knows."""
        ...

    async def run(self) -> None:
        """Keep the certificate good until cancelled; cancellation leaves everything as it is."""
        ...
