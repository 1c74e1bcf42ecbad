"""What a server of webhooks is told; no core, it decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.option_types import check_types
from deltaloop.pacing.checks import require_not_negative, require_positive

PORT: Final = 9443
_MEGABYTES: Final = 1024 * 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServerOptions:
    """Options of a server of webhooks.

    Attributes:
        host: Address to listen on; empty for all, since API servers are elsewhere.
        port: TCP port; 0 takes a free one.
        most_bytes: Of a review of admission: an object before and after, each as large as one may be.
        most_conversion_bytes: Of a review of conversion, which may have all objects of a list.
        most_connections: At a time; a new one takes the place of one on which nothing is asked.
        stop_patience: Seconds that reviews have, at the end, to be answered.

    Source: controller-runtime pkg/webhook/server.go (port), pkg/webhook/admission/http.go (7 MiB).
    """

    host: str = ""
    port: int = PORT
    most_bytes: int = 7 * _MEGABYTES
    most_conversion_bytes: int = 64 * _MEGABYTES
    most_connections: int = 1000
    stop_patience: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what is no port, size or time."""
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"port {self.port!r} is none; 0 to 65535 is needed")
        require_positive(
            "WebhookServerOptions",
            most_bytes=self.most_bytes,
            most_conversion_bytes=self.most_conversion_bytes,
            most_connections=self.most_connections,
        )
        require_not_negative("WebhookServerOptions", stop_patience=self.stop_patience)

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
