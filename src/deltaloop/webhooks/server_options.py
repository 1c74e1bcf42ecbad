"""Options of the webhook server."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.api.errors import InvalidArgumentError

PORT: Final = 9443
GRACE: Final = 5.0
_MEGABYTES: Final = 1024 * 1024


@final
class WebhookServerOptions(Options, frozen=True, kw_only=True):
    """Options of the webhook server.

    Attributes:
        host: Address to listen on. Empty for all interfaces, because API servers run elsewhere.
        port: TCP port. 0 takes a free port.
        client_ca: PEM file with authorities. Admission reviews then need a client certificate from one of these
            authorities. Conversions do not, because API servers send no certificate for them. The file is read at the
            start. None accepts all clients.
        max_bytes: Largest admission review in bytes. A review can contain an object before and after the change.
        max_conversion_bytes: Largest conversion review in bytes. A review can contain all objects of a list.
        max_objects: Largest number of objects in a conversion review.
        max_bytes_in_flight: Largest total size of the reviews in flight in bytes. The server rejects further reviews
            with 429 and ``Retry-After``. It must not be less than the limit of one review.
        max_connections: Largest number of open connections. A new connection replaces an idle connection.
        grace: Time in seconds in which the server accepts reviews during shutdown, because the Service's endpoints
            change only after ``/readyz`` fails.
        stop_timeout: Time in seconds in which the reviews in flight can complete at the end.

    Source: controller-runtime pkg/webhook/server.go (port), pkg/webhook/admission/http.go (7 MiB).
    """

    host: str = ""
    port: int = PORT
    client_ca: Path | None = None
    max_bytes: int = 7 * _MEGABYTES
    max_conversion_bytes: int = 32 * _MEGABYTES
    max_objects: int = 50_000
    max_bytes_in_flight: int = 48 * _MEGABYTES
    max_connections: int = 200
    grace: float = GRACE
    stop_timeout: float = 5.0

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"must be 0 to 65535, got {self.port!r}.", argument="WebhookServerOptions.port")
        require_positive(
            "WebhookServerOptions",
            max_bytes=self.max_bytes,
            max_conversion_bytes=self.max_conversion_bytes,
            max_objects=self.max_objects,
            max_bytes_in_flight=self.max_bytes_in_flight,
            max_connections=self.max_connections,
        )
        require_not_negative("WebhookServerOptions", grace=self.grace, stop_timeout=self.stop_timeout)
        largest = max(self.max_bytes, self.max_conversion_bytes)
        if self.max_bytes_in_flight < largest:
            raise InvalidArgumentError(
                f"must be at least {largest}, the limit of one review, got {self.max_bytes_in_flight}.",
                argument="WebhookServerOptions.max_bytes_in_flight",
            )

    @classmethod
    def parse(cls, address: str) -> Self | None:
        """Parse an address, for example ``:9443`` (all interfaces), ``[::1]:0``, or ``0`` for None.

        Raises:
            InvalidArgumentError: If the address is invalid.
        """
        if address == "0":
            return None
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()):
            raise InvalidArgumentError(f"must be HOST:PORT, :PORT or 0, got {address!r}.", argument="address")
        return cls(host=host.strip("[]"), port=int(port))
