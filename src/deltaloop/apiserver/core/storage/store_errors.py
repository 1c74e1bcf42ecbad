"""Errors of the store."""

from __future__ import annotations

from typing import final

from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST


class StoreError(Exception):
    """Base class of store errors; ``storing`` converts them to a Status."""


@final
class KeyExistsError(StoreError):
    """Object that already exists."""


@final
class KeyMissingError(StoreError):
    """Object that does not exist."""


@final
class OversizedError(StoreError):
    def __init__(self, size: int) -> None:
        super().__init__(f"a request must have at most {MAX_REQUEST} bytes, got {size}")
        self.size = size


@final
class CompactedError(StoreError):
    def __init__(self, revision: int, compacted: int) -> None:
        super().__init__(f"revision {revision} is older than {compacted}, the oldest that is kept")
        self.revision = revision
        self.compacted = compacted
