"""Bound the bytes of all requests that a server holds at a time, whoever sent them."""

from __future__ import annotations

from typing import final


@final
class TooManyBytesError(Exception):
    """The bytes of all requests would exceed their bound."""


@final
class BytesInFlight:
    """Sum of the bytes that are held.

    Attributes:
        most: Most bytes.
        held: Bytes that are held now.
    """

    def __init__(self, most: int) -> None:
        """Begin with nothing held."""
        self.most = most
        self.held = 0


@final
class HeldBytes:
    """Share of one request."""

    def __init__(self, total: BytesInFlight) -> None:
        """Begin with nothing held."""
        self._total = total
        self._bytes = 0

    def grow(self, by: int) -> bool:
        """Hold more; return False, and hold nothing more, if the sum would exceed its bound."""
        if self._total.held + by > self._total.most:
            return False
        self._total.held += by
        self._bytes += by
        return True

    def change(self, to: int) -> None:
        """Hold a number of bytes that exists already, such as a response; others wait if that exceeds the bound."""
        self._total.held += to - self._bytes
        self._bytes = to

    def release(self) -> None:
        """Hold nothing."""
        self.change(0)
