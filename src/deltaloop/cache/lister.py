"""Read objects from an informer's store.

Source: client-go tools/cache/listers.go and the generated listers.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Generic, TypeVar, final

from deltaloop.api.keys import join_key
from deltaloop.api.list_options import parsed_selector
from deltaloop.api.resource import decoder
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.cache.store import NAMESPACE_INDEX

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector
    from deltaloop.api.shard_selector import ShardSelector
    from deltaloop.cache.interfaces import ReadableIndexer

T_co = TypeVar("T_co", covariant=True)


@final
class Lister(Generic[T_co]):
    """Reader of cached objects of one kind.

    It is thread-safe and sends no requests.
    """

    def __init__(self, indexer: ReadableIndexer, resource_type: ResourceType[T_co]) -> None:
        self._indexer = indexer
        self._resource_type = resource_type
        self._decode = decoder(resource_type)

    @property
    def shard(self) -> ShardSelector | None:
        """Shard in the cache, or None for all objects."""
        return self._indexer.shard

    def get(self, key: str) -> T_co:
        """Return an object.

        Args:
            key: ``namespace/name``, or only the name for cluster-scoped kinds.

        Raises:
            NotFoundError: If the object is not in the cache, for example because the cache has not synced.
            MalformedObjectError: If the object does not fit the kind's class.
        """
        found = self.find(key)
        if found is None:
            raise self._not_found(key)
        return found

    def find(self, key: str) -> T_co | None:
        """Return an object, or None if it is not in the cache.

        Raises:
            MalformedObjectError: If the object does not fit the kind's class.
        """
        found = self._indexer.get_by_key(key)
        return None if found is None else self._decode(found)

    def list(self, selector: str | LabelSelector | None = None, *, namespace: str | None = None) -> builtins.list[T_co]:
        """Return all objects that match a label selector and namespace.

        Args:
            selector: Label selector, such as ``app=web,!canary``. None or an empty selector matches all objects.
            namespace: Namespace. None or an empty string means all.

        Raises:
            InvalidSelectorError: If the selector cannot be parsed.
            MalformedObjectError: If an object does not fit the kind's class.
        """
        parsed = None if selector is None else parsed_selector(selector)
        found = self._indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else self._indexer.list()
        if parsed is None or parsed.empty:
            return [self._decode(obj) for obj in found]
        return [self._decode(obj) for obj in found if parsed.matches(obj.labels)]

    def by_index(self, name: str, value: str) -> builtins.list[T_co]:
        """Return the objects with an index value, sorted by key.

        Raises:
            UnknownIndexError: If the index does not exist.
            MalformedObjectError: If an object does not fit the kind's class.
        """
        return [self._decode(obj) for obj in self._indexer.by_index(name, value)]

    def namespace(self, namespace: str) -> NamespaceLister[T_co]:
        """Return a lister for one namespace, whose ``get`` takes names."""
        return NamespaceLister(self, namespace)

    def __len__(self) -> int:
        return len(self._indexer)

    def _not_found(self, key: str) -> ApiError:
        kind = self._resource_type
        name = key.rpartition("/")[2]
        return error_from_status(
            Status(
                code=404,
                reason="NotFound",
                message=f'{kind.group_resource} "{key}" not found in the cache',
                details=StatusDetails(name=name, group=kind.group, kind=kind.plural),
            )
        )

    def __repr__(self) -> str:
        return f"<Lister {self._resource_type}: {len(self)} objects>"


@final
class NamespaceLister(Generic[T_co]):
    """Reader of cached objects of one namespace."""

    def __init__(self, lister: Lister[T_co], namespace: str) -> None:
        self._lister = lister
        self._namespace = namespace

    def get(self, name: str) -> T_co:
        """Return an object.

        Raises:
            NotFoundError: If the object is not in the cache.
        """
        return self._lister.get(join_key(self._namespace, name))

    def find(self, name: str) -> T_co | None:
        """Return an object, or None if it is not in the cache."""
        return self._lister.find(join_key(self._namespace, name))

    def list(self, selector: str | LabelSelector | None = None) -> builtins.list[T_co]:
        """Return all objects of the namespace that match a label selector.

        Raises:
            InvalidSelectorError: If the selector cannot be parsed.
        """
        return self._lister.list(selector, namespace=self._namespace)
