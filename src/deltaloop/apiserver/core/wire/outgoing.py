"""The large answers that are being sent: one copy of those that are alike, and a bound for all of them together.

A client that reads slowly, or not at all, keeps its answer in memory. Many that list the same at the same time, such as
the informers of many processes after a restart, share one; many that list different things are told to come again.
"""

from __future__ import annotations

from typing import Final, final

LARGE: Final = 256 * 1024
MOST_BYTES: Final = 256 * 1024 * 1024


@final
class Outgoing:
    """The bodies of one server that have not been sent to their end."""

    __slots__ = ("_held", "_most", "_readers")

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        """Begin with none; ``most`` is how many bytes they may have together. A single one may always have more."""
        self._most = most
        self._held = 0
        self._readers: dict[bytes, tuple[bytes, int]] = {}

    @property
    def held(self) -> int:
        """How many bytes they have together."""
        return self._held

    def take(self, body: bytes) -> bytes | None:
        """Begin to send a body; return the copy to send, or None if there are too many bytes already."""
        copy, readers = self._readers.get(body, (body, 0))
        if not readers:
            if self._held and self._held + len(body) > self._most:
                return None
            self._held += len(body)
        self._readers[body] = copy, readers + 1
        return copy

    def give_back(self, body: bytes) -> None:
        """End to send a body that was taken."""
        copy, readers = self._readers[body]
        if readers > 1:
            self._readers[body] = copy, readers - 1
        else:
            del self._readers[body]
            self._held -= len(body)
