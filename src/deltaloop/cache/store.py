"""Stores of objects that know their key. ``Store`` is a map, and ``Indexer`` a map with indexes; both are thread-safe.

Source: client-go tools/cache/store.go, tools/cache/index.go.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from deltaloop.api.keys import HasObjectName
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread, deletion_handling_key
from deltaloop.cache.core.store import FOLLOWS_NAME, Indexers, Replacement, StoreWrite
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.thread_safe_store import ThreadSafeStore

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardSelector

V = TypeVar("V")

NAMESPACE_INDEX: Final = "namespace"
"""Name of the index by ``metadata.namespace`` that each informer has. The value is "" for cluster-scoped objects."""


def namespace_index_func(obj: HasObjectName) -> list[str]:
    """Return the namespace of an object, as the function of ``NAMESPACE_INDEX``."""
    return [obj.namespace]


class Store(Generic[V]):
    """Thread-safe map of objects whose keys come from a function.

    Attributes:
        last_sync_resource_version: Version of the last list, event or bookmark that the store received.
    """

    def __init__(
        self,
        key_func: Callable[[V], str] = deletion_handling_key,
        *,
        name: str = "store",
    ) -> None:
        """Create an empty store.

        Args:
            key_func: Function that returns the key of an object, by default ``namespace/name`` or only the name.
            name: Name of the store in the log.
        """
        self._key_func = key_func
        self._items = ThreadSafeStore[V](name=name, is_by_name=key_func is deletion_handling_key)
        self.last_sync_resource_version: str = ""

    def key_of(self, obj: V) -> str:
        """Return the key of an object.

        Raises:
            MalformedObjectError: If the object has no key (with the default function).
        """
        return self._key_func(obj)

    def add(self, obj: V) -> None:
        """Store an object under its key."""
        self._items.add(self._key_func(obj), obj)

    def update(self, obj: V) -> None:
        """Do the same as ``add``; both names exist in client-go."""
        self._items.add(self._key_func(obj), obj)

    def delete(self, obj: V) -> None:
        """Delete the object with the key of ``obj``, if it exists."""
        self._items.delete(self._key_func(obj))

    def delete_by_key(self, key: str) -> None:
        """Delete the object with a key, if it exists."""
        self._items.delete(key)

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        """Replace all objects in one step.

        If an object has no key, the store does not change.

        Args:
            objects: New content of the store.
            resource_version: Version of the list. "" leaves ``last_sync_resource_version`` unchanged.
            unread: Objects that exist but cannot be decoded. Their stored states are kept.
        """
        items = {self._key_func(obj): obj for obj in objects}
        if unread:
            held = ((key, self._items.get(key)) for key in self._items.list_keys() if unread.may_be(key))
            items = {key: obj for key, obj in held if obj is not None} | items
        self._items.replace(items)
        self.update_resource_version(resource_version)

    def transaction(self, writes: Iterable[StoreWrite[V]]) -> None:
        """Perform several writes in one step, so that readers never see only some of them.

        Raises:
            TransactionError: If some objects have no key. The other writes are performed.
        """
        keyed: builtins.list[tuple[str, V | None]] = []
        failures: dict[int, Exception] = {}
        place = -1
        for place, write in enumerate(writes):
            try:
                key = self._key_func(write.obj)
            except Exception as error:  # noqa: BLE001 - a key function may raise anything; it is reported
                failures[place] = error
            else:
                keyed.append((key, None if write.delete else write.obj))
        self._items.transaction(keyed)
        if failures:
            raise TransactionError(failures, place + 1)

    def transaction_by_key(self, writes: Iterable[tuple[str, V | None]]) -> builtins.list[V | None]:
        """Perform several writes in one step with known keys, so that readers never see only some of them.

        Args:
            writes: Keys, as from ``key_of``, and the objects to store under them, or None to delete the key.

        Returns:
            Previous object for each write.
        """
        return self._items.transaction(writes)

    def begin_replacement(self) -> Replacement[V]:
        """Return an empty state with the same indexes, for ``commit_replacement``."""
        return self._items.begin_replacement()

    def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
        """Replace the content in one step, and return the previous objects by key."""
        return self._items.commit_replacement(replacement)

    def update_resource_version(self, resource_version: str) -> None:
        """Record that all changes up to this version are stored. "" has no effect."""
        if resource_version:
            self.last_sync_resource_version = resource_version

    def get(self, obj: V) -> V | None:
        """Return the object with the key of ``obj``, or None."""
        return self._items.get(self._key_func(obj))

    def get_by_key(self, key: str) -> V | None:
        """Return an object, or None."""
        items = self._items
        if items.is_writing:
            return items.get(key)
        try:
            return items.state.objects[key]  # costs half of a call of dict.get
        except KeyError:
            return None

    def list(self) -> builtins.list[V]:
        """Return all objects as a new list."""
        return self._items.list()

    def list_keys(self) -> builtins.list[str]:
        """Return all keys as a new list."""
        return self._items.list_keys()

    def resync(self) -> None:
        """Do nothing.

        Queues implement this method.
        """

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._items.name}: {len(self)} objects>"


setattr(namespace_index_func, FOLLOWS_NAME, True)


@final
class Indexer(Store[V]):
    """Store with indexes that find objects by value."""

    def __init__(
        self,
        key_func: Callable[[V], str] = deletion_handling_key,
        indexers: Indexers[V] | None = None,
        *,
        name: str = "indexer",
    ) -> None:
        """Create an empty store.

        Args:
            key_func: Function that returns the key of an object, by default ``namespace/name`` or only the name.
            indexers: Index functions by name. Each returns a list of strings for an object; a ``Path`` works as well.
            name: Name of the store in the log.
        """
        super().__init__(key_func, name=name)
        self._items.add_indexers(indexers or {})
        self.shard: ShardSelector | None = None

    def index(self, name: str, obj: V) -> builtins.list[V]:
        """Return the stored objects that share an index value with ``obj``.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return self._items.index(name, obj)

    def by_index(self, name: str, value: str) -> builtins.list[V]:
        """Return the objects with an index value, sorted by key.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return self._items.by_index(name, value)

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Return the keys with an index value, sorted.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return self._items.index_keys(name, value)

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """Return all values of an index, sorted.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return self._items.list_index_func_values(name)

    def get_indexers(self) -> Indexers[V]:
        """Return the index functions by name."""
        return self._items.get_indexers()

    def add_indexers(self, indexers: Indexers[V]) -> None:
        """Add indexes at any time.

        Stored objects are indexed immediately.

        Raises:
            IndexerConflictError: If a name has another function. No index is added.
        """
        self._items.add_indexers(indexers)
