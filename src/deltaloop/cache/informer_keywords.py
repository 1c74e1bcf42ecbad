"""Keyword arguments of informers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.informer_options import Compression


class ObjectSelection(TypedDict, total=False):
    """Selection of objects and their indexes.

    Attributes:
        indexers: Index functions by name. They are added to an existing informer.
        label_selector: Label selector, such as ``app=web``.
        field_selector: Field selector, such as ``spec.nodeName=a``.
        shard_selector: Ranges of hashes of the uid or namespace, by default all.
        transform: Function that returns the object to cache. None means the factory's transform.
        keep_managed_fields: Whether cached objects keep ``metadata.managedFields``. None means the factory's option.
        compression: ``zstd`` compresses cached objects. None means the factory's option.
    """

    indexers: Mapping[str, IndexFunc[Resource]] | None
    label_selector: str
    field_selector: str
    shard_selector: ShardSelector | None
    transform: Callable[[Resource], Resource] | None
    keep_managed_fields: bool | None
    compression: Compression | None


class InformerSelection(ObjectSelection, total=False):
    """Selection of objects in a namespace.

    Attributes:
        namespace: Namespace to watch. None means the factory's namespace. Cluster-scoped kinds ignore it.
    """

    namespace: str | None
