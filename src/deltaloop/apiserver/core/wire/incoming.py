"""Memory limits for request bodies, webhook responses and large response bodies.

The first bytes of each received body are free, so that slow clients with large bodies do not block small requests.
Equal responses share one copy, for example when many informers restart.
"""

from __future__ import annotations

from typing import Final, final

FREE: Final = 64 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024


@final
class Incoming:
    __slots__ = ("_held", "_most")

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        """Set the total limit in bytes, without the free bytes."""
        self._most = most
        self._held = 0

    @property
    def held(self) -> int:
        return self._held

    def lease(self) -> Lease:
        return Lease(self)

    def take(self, count: int) -> bool:
        """Reserve bytes, and return False if the limit would be exceeded."""
        if self._held + count > self._most:
            return False
        self._held += count
        return True

    def give_back(self, count: int) -> None:
        self._held -= count


@final
class Lease:
    __slots__ = ("_incoming", "_taken")

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._taken = 0

    def grow(self, size: int) -> bool:
        """Reserve bytes for a body of this size, and return False if the limit would be exceeded."""
        more = size - FREE - self._taken
        if more <= 0:
            return True
        if not self._incoming.take(more):
            return False
        self._taken += more
        return True

    def end(self) -> None:
        """Release the bytes. This also happens when the account is garbage collected."""
        self._incoming.give_back(self._taken)
        self._taken = 0

    __del__ = end


LARGE: Final = 256 * 1024
MOST_OUTGOING: Final = 256 * 1024 * 1024


@final
class Outgoing:
    __slots__ = ("_held", "_most", "_readers")

    def __init__(self, *, most: int = MOST_OUTGOING) -> None:
        """Set the total limit in bytes. A single body can always exceed it."""
        self._most = most
        self._held = 0
        self._readers: dict[bytes, tuple[bytes, int]] = {}

    @property
    def held(self) -> int:
        return self._held

    def take(self, body: bytes) -> bytes | None:
        """Register a body, and return the shared copy to send, or None if the limit is exceeded."""
        copy, readers = self._readers.get(body, (body, 0))
        if not readers:
            if self._held and self._held + len(body) > self._most:
                return None
            self._held += len(body)
        self._readers[body] = copy, readers + 1
        return copy

    def give_back(self, body: bytes) -> None:
        copy, readers = self._readers[body]
        if readers > 1:
            self._readers[body] = copy, readers - 1
        else:
            del self._readers[body]
            self._held -= len(body)
