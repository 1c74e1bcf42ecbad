"""Certificate source for tests and development, without renewal."""

from __future__ import annotations

import asyncio
import ssl
from typing import final


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
