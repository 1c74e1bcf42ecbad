"""The bodies of requests, and of answers of webhooks, that a server has received: one bound for all of them together.

The first bytes of each body are free, so that clients that send large bodies slowly cannot keep others from writing.

The large answers that are being sent: one copy of those that are alike, and a bound for all of them together.

A client that reads slowly, or not at all, keeps its answer in memory. Many that list the same at the same time, such as
the informers of many processes after a restart, share one; many that list different things are told to come again.
"""

from __future__ import annotations

from typing import Final, final

FREE: Final = 64 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024


@final
class Incoming:
    """The bodies of one server."""

    __slots__ = ("_held", "_most")

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        """Begin with none; ``most`` is the number of bytes that they may have together, without the free ones."""
        self._most = most
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that are held, without the free ones."""
        return self._held

    def lease(self) -> Lease:
        """Return the account of one body."""
        return Lease(self)

    def take(self, count: int) -> bool:
        """Hold more bytes, if there is room for them."""
        if self._held + count > self._most:
            return False
        self._held += count
        return True

    def give_back(self, count: int) -> None:
        """Hold fewer bytes."""
        self._held -= count


@final
class Lease:
    """The bytes of one body."""

    __slots__ = ("_incoming", "_taken")

    def __init__(self, incoming: Incoming) -> None:
        """Begin with none."""
        self._incoming = incoming
        self._taken = 0

    def grow(self, size: int) -> bool:
        """Tell whether the body may have ``size`` bytes, and hold them."""
        more = size - FREE - self._taken
        if more <= 0:
            return True
        if not self._incoming.take(more):
            return False
        self._taken += more
        return True

    def end(self) -> None:
        """Give back what was taken; the account's end does that, too."""
        self._incoming.give_back(self._taken)
        self._taken = 0

    __del__ = end


LARGE: Final = 256 * 1024
MOST_OUTGOING: Final = 256 * 1024 * 1024


@final
class Outgoing:
    """The bodies of one server that have not been sent to their end."""

    __slots__ = ("_held", "_most", "_readers")

    def __init__(self, *, most: int = MOST_OUTGOING) -> None:
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
