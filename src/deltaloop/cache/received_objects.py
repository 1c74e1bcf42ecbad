"""Prepare received objects for the cache: remove ``managedFields``, transform, then compress."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource

if TYPE_CHECKING:
    from deltaloop.cache.compression import CacheCompression


@final
class ReceivedObjects:
    """Functions that change received objects before and in the queue."""

    def __init__(
        self,
        *,
        keep_managed_fields: bool,
        transform: Callable[[Resource], Resource] | None,
        compression: CacheCompression | None,
    ) -> None:
        self._strips = not keep_managed_fields
        self._transform = transform
        self._compression = compression
        self._compresses = compression if transform is None else None

    @property
    def receive(self) -> Callable[[Resource], Resource] | None:
        """Function for the reflector, or None."""
        return self._receive if self._strips or self._compresses is not None else None

    @property
    def transform(self) -> Callable[[Resource], Resource] | None:
        """Function for the queue, or None."""
        return self._transform if self._transform is None or self._compression is None else self._transformed

    def _receive(self, obj: Resource) -> Resource:
        if self._strips:
            with contextlib.suppress(MalformedObjectError):  # readers get the error when they decode the object
                obj = strip_managed_fields(obj)
        return obj if self._compresses is None else self._compresses.compressed(obj)

    def _transformed(self, obj: Resource) -> Resource:
        assert self._transform is not None
        assert self._compression is not None
        return self._compression.compressed(self._transform(obj))
