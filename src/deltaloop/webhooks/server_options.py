"""What a server of webhooks is told."""

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
    """Options of a server of webhooks.

    Attributes:
        host: Address to listen on; empty for all, since API servers are elsewhere.
        port: TCP port; 0 takes a free one.
        client_ca: PEM file of the authorities of which clients must present a certificate for admission reviews; None
            accepts every client. Conversions need none, because API servers have none for them. The file is read at the
            start.
        max_bytes: Most bytes of an admission review: an object before and after, each as large as one may be.
        max_conversion_bytes: Most bytes of a conversion review, which may have all objects of a list.
        max_objects: Most objects of a conversion review.
        max_bytes_in_flight: Most bytes of all reviews that are received or answered at a time; above, reviews are
            rejected with 429 and ``Retry-After``. It must not be less than the bounds of one review.
        max_connections: Most connections at a time. A new one takes the place of one that waits for a request.
        grace: Seconds for which the server goes on accepting reviews after the program began to end, because the
            endpoints of its Service change only once ``/readyz`` fails.
        stop_timeout: Seconds that reviews have, at the end, to be answered.

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
        """Reject invalid ports, sizes and times."""
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"port {self.port!r} is none; 0 to 65535 is needed")
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
                f"WebhookServerOptions.max_bytes_in_flight must be at least {largest}, the bound of one review, "
                f"got {self.max_bytes_in_flight}."
            )

    @classmethod
    def parse(cls, address: str) -> Self | None:
        """Read an address such as ``:9443`` (all interfaces), ``192.0.2.7:9443``, ``[::1]:0``; ``0`` is None.

        Raises:
            InvalidArgumentError: If it is none.
        """
        if address == "0":
            return None
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()):
            raise InvalidArgumentError(f"{address!r} is no address; write HOST:PORT, :PORT for all interfaces, or 0")
        return cls(host=host.strip("[]"), port=int(port))
