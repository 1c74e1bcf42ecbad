"""What may be said about an informer beside its kind: the keyword arguments of a factory's methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from deltaloop.api.resource import Resource
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.informer_options import Compression


class ObjectSelection(TypedDict, total=False):
    """Which objects an informer is about, and how they are found; everything may be left out.

    Attributes:
        indexers: Index functions by name; added to those that the informer has.
        label_selector: Only objects with such labels, such as ``app=web``.
        field_selector: Only objects with such fields, such as ``spec.nodeName=a``.
        transform: Makes the object that is cached out of the one that comes; None is the factory's own.
        keep_managed_fields: Whether cached objects keep ``metadata.managedFields``; None is what the factory's options
            say.
        compression: ``zstd`` keeps cached objects compressed; None is what the factory's options say.
    """

    indexers: Mapping[str, IndexFunc[Resource]] | None
    label_selector: str
    field_selector: str
    transform: Callable[[Resource], Resource] | None
    keep_managed_fields: bool | None
    compression: Compression | None


class InformerSelection(ObjectSelection, total=False):
    """The same, and where they are.

    Attributes:
        namespace: Watch this namespace only; None is the factory's own. Kinds without namespaces are not affected.
    """

    namespace: str | None
