"""Addresses of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop.api.errors import InvalidArgumentError


@final
class BindAddress(Options, frozen=True, kw_only=True):
    """Address of a server, and access to it.

    Attributes:
        host: Address, by default loopback.
        port: TCP port. 0 selects a free port.
        certificate: PEM file of the certificate and its intermediate certificates. None means plain HTTP.
        key: PEM file of the private key.
        token_review: Whether a request needs a bearer token that the API server accepts and authorizes for the path.
            The program must be allowed to create ``tokenreviews`` and ``subjectaccessreviews``.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    token_review: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"must be from 0 to 65535, got {self.port!r}.", argument="BindAddress.port")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError("must be set together with key.", argument="BindAddress.certificate")
        if self.token_review and self.certificate is None:
            raise InvalidArgumentError("requires certificate and key for TLS.", argument="BindAddress.token_review")

    @classmethod
    def parse(cls, address: str, **options: Any) -> Self | None:
        """Parse an address such as ``127.0.0.1:8080``, ``:8080`` (all interfaces) or ``[::1]:0``.

        ``0`` and an empty address return None.

        Raises:
            InvalidArgumentError: If the address is invalid.
        """
        if address in ("", "0"):
            return None
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()):
            raise InvalidArgumentError(
                f"must be HOST:PORT, :PORT for all interfaces, or 0 to disable it, got {address!r}.", argument="address"
            )
        return cls(host=host.strip("[]"), port=int(port), **options)
