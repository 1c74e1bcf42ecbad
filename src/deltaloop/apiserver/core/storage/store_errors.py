"""What the store refuses."""

from __future__ import annotations

from typing import final

from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST


class StoreError(Exception):
    """Root of what the store refuses; ``storing`` turns it into a Status."""


@final
class KeyExistsError(StoreError):
    """An object that should not exist does."""


@final
class KeyMissingError(StoreError):
    """An object that should exist does not."""


@final
class OversizedError(StoreError):
    """An object is larger than one request to etcd may be.

    Attributes:
        size: Bytes of the request.
    """

    def __init__(self, size: int) -> None:
        """Keep the size."""
        super().__init__(f"a request must have at most {MAX_REQUEST} bytes, got {size}")
        self.size = size


@final
class CompactedError(StoreError):
    """The revision asked for lies before the window.

    Attributes:
        compacted: The oldest revision that can be read.
    """

    def __init__(self, revision: int, compacted: int) -> None:
        """Keep both revisions."""
        super().__init__(f"revision {revision} is older than {compacted}, the oldest that is kept")
        self.revision = revision
        self.compacted = compacted
