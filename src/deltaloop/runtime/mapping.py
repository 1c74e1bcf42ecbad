"""Mappers for ``Watch(to=...)`` and ``Watch(by_index=...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from deltaloop._internal.function_signatures import accepts
from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.requests import Mapped, Mapper, keys_by_index
from deltaloop.runtime.objects.caches import Caches

CachedMapper: TypeAlias = Callable[[Resource, Caches], Mapped]
"""Function from an object and the controller's caches to the objects to reconcile."""


def mapping_by_index(own: ResourceType[Any], index: str) -> CachedMapper:
    """Return a mapper to the objects of ``own`` whose index contains an object's name; see ``Watch.by_index``."""
    kind = untyped(own)

    def map_by_index(obj: Resource, caches: Caches) -> Mapped:
        return keys_by_index(obj, lambda value: caches.by_index(kind, index, value))

    return map_by_index


def takes_caches(mapping: Mapper | CachedMapper) -> bool:
    """Return whether a mapper requires the caches. An optional second parameter does not count."""
    return not accepts(mapping, None) and accepts(mapping, None, None)


def with_caches(mapping: Mapper | CachedMapper, caches: Caches) -> Mapper:
    if not takes_caches(mapping):
        return cast("Mapper", mapping)
    cached = cast("CachedMapper", mapping)

    @functools.wraps(cached)
    def mapper(obj: Resource) -> Mapped:
        return cached(obj, caches)

    return mapper
