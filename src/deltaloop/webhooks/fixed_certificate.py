"""A certificate that nobody has to renew: of a server that runs for a test, or for the time of development."""

from __future__ import annotations

import asyncio
import ssl
from typing import final


@final
class StaticCertificate:
    """A ``CertificateSource`` with one TLS context, made by somebody else."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Serve by this context."""
        self._context = context

    def context(self) -> ssl.SSLContext:
        """Return the context to listen with."""
        return self._context

    def not_ready(self) -> str:
        """Return nothing: there is nothing to wait for."""
        return ""

    @property
    def valid_until(self) -> None:
        """Nothing: it is somebody else's."""
        return

    async def run(self) -> None:
        """Do nothing until cancelled."""
        await asyncio.Event().wait()

    def __repr__(self) -> str:
        return "<StaticCertificate>"
