"""Stores of objects that know their own key; the core is core/store.py, the lock is in thread_safe_store.py.

``Store`` is the map, ``Indexer`` the map with indexes. Both are safe from any thread.

Source: client-go tools/cache/store.go, tools/cache/index.go.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar, final

from deltaloop.api.keys import HasObjectName
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread, deletion_handling_key
from deltaloop.cache.core.store import FOLLOWS_NAME, Indexers, Replacement, StoreWrite
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.thread_safe_store import ThreadSafeStore

V = TypeVar("V")

NAMESPACE_INDEX: Final = "namespace"
"""Name of the index that every informer has: by ``metadata.namespace``; the empty string for objects without one."""


def namespace_index_func(obj: HasObjectName) -> list[str]:
    """Return the namespace of an object: the function of ``NAMESPACE_INDEX``."""
    return [obj.namespace]


class Store(Generic[V]):
    """Objects by the key that a function gives them."""

    def __init__(
        self,
        key_func: Callable[[V], str] = deletion_handling_key,
        *,
        name: str = "store",
    ) -> None:
        """Begin empty.

        Args:
            key_func: Function that returns the key of an object; by default ``namespace/name``, or the name alone.
            name: Name of this store in the log.
        """
        self._key_func = key_func
        self._items = ThreadSafeStore[V](name=name, is_by_name=key_func is deletion_handling_key)
        self._last_sync_resource_version = ""

    def key_of(self, obj: V) -> str:
        """Return the key of an object.

        Raises:
            MalformedObjectError: If it has none (with the default function).
        """
        return self._key_func(obj)

    def add(self, obj: V) -> None:
        """Store an object, whether or not there is one of that key."""
        self._items.add(self._key_func(obj), obj)

    def update(self, obj: V) -> None:
        """Do what ``add`` does; both names exist upstream."""
        self._items.add(self._key_func(obj), obj)

    def delete(self, obj: V) -> None:
        """Take out the object of this one's key; an unknown key is no error."""
        self._items.delete(self._key_func(obj))

    def delete_by_key(self, key: str) -> None:
        """Take out the object of a key; an unknown key is no error."""
        self._items.delete(key)

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        """Hold these objects and no others, in one step; nothing changes if one of them has no key.

        Args:
            objects: All objects that the store holds from then on.
            resource_version: Version of the list they come from; "" leaves ``last_sync_resource_version`` as it is.
            unread: Objects that exist, too, and cannot be read; what is held of them is kept.
        """
        items = {self._key_func(obj): obj for obj in objects}
        if unread:
            held = ((key, self._items.get(key)) for key in self._items.list_keys() if unread.may_be(key))
            items = {key: obj for key, obj in held if obj is not None} | items
        self._items.replace(items)
        self.update_resource_version(resource_version)

    def transaction(self, writes: Iterable[StoreWrite[V]]) -> None:
        """Do several writes in one step: no reader sees some of them.

        Raises:
            TransactionError: If some objects have no key; all other writes are done.
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
        """Do several writes in one step, for a caller that knows the keys: no reader sees some of them.

        Args:
            writes: Keys, as ``key_of`` gives them, with the objects to store under them; None takes out what is there.

        Returns:
            For each write what was there right before it.
        """
        return self._items.transaction(writes)

    def begin_replacement(self) -> Replacement[V]:
        """Return an empty state with the same indexes, to be filled at leisure and then committed."""
        return self._items.begin_replacement()

    def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
        """Hold what was filled and nothing else, in one step; return what was held before, by key."""
        return self._items.commit_replacement(replacement)

    @property
    def last_sync_resource_version(self) -> str:
        """How far this store has come: the version of the last list, event or bookmark that it was told of."""
        return self._last_sync_resource_version

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version is stored; an empty one says nothing."""
        if resource_version:
            self._last_sync_resource_version = resource_version

    def get(self, obj: V) -> V | None:
        """Return what is stored under the key of ``obj``, or None."""
        return self._items.get(self._key_func(obj))

    def get_by_key(self, key: str) -> V | None:
        """Return one object, or None."""
        items = self._items
        return items.get(key) if items.is_writing else items.state.objects.get(key)

    def list(self) -> builtins.list[V]:
        """Return all objects as a new list."""
        return self._items.list()

    def list_keys(self) -> builtins.list[str]:
        """Return all keys as a new list."""
        return self._items.list_keys()

    def resync(self) -> None:
        """Do nothing: here for queues, which have something to do."""

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._items.name}: {len(self)} objects>"


setattr(namespace_index_func, FOLLOWS_NAME, True)


@final
class Indexer(Store[V]):
    """A store with indexes: which objects have a value, without looking at all of them."""

    def __init__(
        self,
        key_func: Callable[[V], str] = deletion_handling_key,
        indexers: Indexers[V] | None = None,
        *,
        name: str = "indexer",
    ) -> None:
        """Begin empty.

        Args:
            key_func: Gives the key of an object; by default ``namespace/name``, or the name alone.
            indexers: Index functions by name: object to a list of strings; a ``Path`` is one.
            name: What to call this store in the log.
        """
        super().__init__(key_func, name=name)
        self._items.add_indexers(indexers or {})

    def index(self, name: str, obj: V) -> builtins.list[V]:
        """Return the stored objects that share an index value with ``obj``.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return self._items.index(name, obj)

    def by_index(self, name: str, value: str) -> builtins.list[V]:
        """Return the objects filed under an index value, by key.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return self._items.by_index(name, value)

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Return the keys filed under an index value, sorted.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return self._items.index_keys(name, value)

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """Return all values of an index, sorted.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return self._items.list_index_func_values(name)

    def get_indexers(self) -> Indexers[V]:
        """Return the index functions by name."""
        return self._items.get_indexers()

    def add_indexers(self, indexers: Indexers[V]) -> None:
        """Add indexes at any time; what is stored is filed under them at once.

        Raises:
            IndexerConflictError: If a name is taken by another function; nothing is added then.
        """
        self._items.add_indexers(indexers)
