"""Certificates that another tool maintains in a folder, for example cert-manager."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, final

from deltaloop._internal.pacing.checks import require_positive
from deltaloop._internal.x509_certificates import load_chain, server_context
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.redaction import SecretText
from deltaloop.api.times import format_time, from_epoch, utc_now
from deltaloop.webhooks.certificates import signing
from deltaloop.webhooks.core.certificates.authorities import Certificate

_log: Final = logging.getLogger("deltaloop.webhooks")


@final
class MountedCertificates:
    """Certificate source that serves ``tls.crt`` and ``tls.key`` from a folder.

    The tool that maintains the files must also write ``caBundle``, which is not checked here. For example, cert-manager
    does this for configurations with the annotation ``cert-manager.io/inject-ca-from``.

    Args:
        folder: Folder that contains ``tls.crt`` and ``tls.key``.
        every: Interval in seconds between checks of the files.
        wall_clock: Clock of this machine.

    Raises:
        MissingExtraError: If the extra ``webhooks`` is not installed.
        InvalidArgumentError: If the folder does not exist.
    """

    def __init__(self, folder: Path, *, every: float = 10.0, wall_clock: Callable[[], datetime] = utc_now) -> None:
        signing.require_cryptography()
        require_positive("MountedCertificates", every=every)
        if not folder.is_dir():
            raise InvalidArgumentError(f"must be a folder with tls.crt and tls.key, got {folder}.", argument="folder")
        self._folder = folder
        self._every = every
        self._wall_clock = wall_clock
        self._context = server_context()
        self._certificate: Certificate | None = None
        self._told: type[Exception] | None = None
        self._seen: tuple[bytes, bytes] | None = None
        self._why_none = "it has no certificate yet"

    def __repr__(self) -> str:
        return f"<MountedCertificates of {self._folder}>"

    @property
    def certificate(self) -> Certificate | None:
        """Active certificate, or None before the first."""
        return self._certificate

    @property
    def valid_until(self) -> float | None:
        """Expiry of the active certificate in seconds since 1970, or None before the first."""
        return None if self._certificate is None else self._certificate.not_after

    def context(self) -> ssl.SSLContext:
        """Return the TLS context to listen with, whose certificate changes between handshakes."""
        return self._context

    def not_ready(self) -> str:
        """Return why the server cannot receive requests yet, or an empty string if it can."""
        if self._certificate is None:
            return self._why_none
        now = self._wall_clock().timestamp()
        valid = self._certificate.not_before <= now < self._certificate.not_after
        return "" if valid else "its certificate is not valid now"

    async def run(self) -> None:
        """Check the files until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(self._every)

    def look(self) -> None:
        """Read the files and serve their certificate if it is new and valid."""
        try:
            seen = tuple((self._folder / name).read_bytes() for name in ("tls.crt", "tls.key"))
        except OSError as error:
            self._refuse(error)
            return
        certificate, key = seen
        if (certificate, key) == self._seen:
            return
        self._seen = certificate, key
        try:
            found = signing.read_certificate(certificate.decode("ascii"))
            pem = SecretText(f"{key.decode('ascii')}\n{certificate.decode('ascii')}")
            # Try a separate context first. A mismatch would leave the active context without a key.
            load_chain(server_context(), pem.reveal().encode())
            load_chain(self._context, pem.reveal().encode())
        except (ValueError, ssl.SSLError) as error:
            self._refuse(error)
            return
        self._certificate = found
        self._told = None
        until = format_time(from_epoch(found.not_after))
        _log.info("using a new certificate", extra={"folder": str(self._folder), "valid_until": until})

    def _refuse(self, error: Exception) -> None:
        """Log each kind of error once. OpenSSL's messages are not logged, because they can contain a key."""
        why = "" if isinstance(error, ssl.SSLError) or not isinstance(error, OSError) else error.strerror
        why = why or type(error).__name__
        self._why_none = f"tls.crt and tls.key in {self._folder} are not usable ({why})"
        if type(error) is self._told:
            return
        self._told = type(error)
        _log.warning(
            "cannot use the certificate files of the webhooks, retrying",
            extra={"folder": str(self._folder), "reason": why},
        )
