"""Limit the total bytes of all requests that a server processes."""

from __future__ import annotations

from typing import final


@final
class TooManyBytesError(Exception):
    """The bytes of all requests would exceed the limit."""


@final
class BytesInFlight:
    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0


@final
class HeldBytes:
    def __init__(self, total: BytesInFlight) -> None:
        self._total = total
        self._bytes = 0

    def grow(self, by: int) -> bool:
        """Add bytes. Return False without a change if the total would exceed the limit."""
        if self._total.held + by > self._total.most:
            return False
        self._total.held += by
        self._bytes += by
        return True

    def change(self, to: int) -> None:
        """Set the bytes of existing data, such as a response, even above the limit. New requests are then rejected."""
        self._total.held += to - self._bytes
        self._bytes = to

    def release(self) -> None:
        self.change(0)
