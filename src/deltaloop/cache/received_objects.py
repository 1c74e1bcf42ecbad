"""What is done with each object that comes from the server, before anything else sees it.

``managedFields`` are taken off first, unless they are to be kept or the source has left them out, as our client does
while it decodes: a transform gets the smaller object. An object is compressed when it is what the cache will hold: as
it comes, or if there is a transform, after that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import final

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource
from deltaloop.cache.compression import CacheCompression


@final
class ReceivedObjects:
    """The two places in which a received object is changed: on its way into the queue, and by the queue."""

    def __init__(
        self,
        *,
        keep_managed_fields: bool,
        transform: Callable[[Resource], Resource] | None,
        compression: CacheCompression | None,
    ) -> None:
        """Decide nothing: do what the options of an informer say."""
        self._strips = not keep_managed_fields
        self._transform = transform
        self._compression = compression
        self._compresses = compression if transform is None else None

    @property
    def receive(self) -> Callable[[Resource], Resource] | None:
        """What a reflector calls with each object; None if there is nothing to do."""
        return self._receive if self._strips or self._compresses is not None else None

    @property
    def transform(self) -> Callable[[Resource], Resource] | None:
        """What a queue calls with each object; None if there is nothing to do."""
        return self._transform if self._transform is None or self._compression is None else self._transformed

    def _receive(self, obj: Resource) -> Resource:
        if self._strips:
            with contextlib.suppress(MalformedObjectError):  # who reads it is told that it cannot be read
                obj = strip_managed_fields(obj)
        return obj if self._compresses is None else self._compresses.compressed(obj)

    def _transformed(self, obj: Resource) -> Resource:
        assert self._transform is not None
        assert self._compression is not None
        return self._compression.compressed(self._transform(obj))
