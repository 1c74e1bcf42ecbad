"""Thread-safe store with indexes, protected by a lock.

Index functions run under the lock. They must be fast, and can read the store in its state before the write.

Source: client-go tools/cache/thread_safe_store.go.
"""

from __future__ import annotations

import builtins
import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar, final

from deltaloop._internal.fork_safety import Torn, fork_safe
from deltaloop.cache.core.store import IndexedItems, Indexers, IndexFailure, Replacement
from deltaloop.cache.errors import describe_error

V = TypeVar("V")

_logger: Final = logging.getLogger("deltaloop.cache")


@final
class ThreadSafeStore(Generic[V]):
    """Objects by key, with indexes.

    Attributes:
        name: Name of the store in the log.
        state: Objects and indexes. Do not modify.
        is_writing: Whether a transaction is in progress, so that reads must wait for the lock.
    """

    __slots__ = ("__weakref__", "_lock", "is_writing", "name", "state")

    def __init__(self, indexers: Indexers[V] | None = None, *, name: str = "store", is_by_name: bool = False) -> None:
        """Create an empty store.

        Args:
            indexers: Index functions by name. Each returns a list of strings for an object; a ``Path`` works as well.
            name: Name of the store in the log.
            is_by_name: Whether keys are ``namespace/name``, so that an index by these needs no update.
        """
        self.name: str = name
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self.state: IndexedItems[V] = IndexedItems[V](indexers, is_by_name=is_by_name)
        self.is_writing: bool = False

    def _in_child(self, held: bool) -> None:
        """Block the store in a forked process if another thread held the lock during the fork."""
        if held:
            torn: Any = Torn(f"the store {self.name!r}")
            self.state = torn

    def add(self, key: str, obj: V) -> None:
        """Store an object under a key.

        If an index function raises, the error is logged with the index and key. The object is stored, but absent from
        that index.
        """
        with self._lock:
            failures = self.state.put(key, obj)
        self._report(failures)

    def update(self, key: str, obj: V) -> None:
        """Do the same as ``add``; both names exist in client-go."""
        self.add(key, obj)

    def delete(self, key: str) -> None:
        """Delete an object if it exists."""
        with self._lock:
            self.state.delete(key)

    def replace(self, items: Mapping[str, V]) -> None:
        """Replace all objects in one step."""
        with self._lock:
            failures = self.state.replace(items)
        self._report(failures)

    def transaction(self, writes: Iterable[tuple[str, V | None]]) -> builtins.list[V | None]:
        """Perform several writes in one step, so that readers never see only some of them.

        Args:
            writes: Keys and the objects to store under them, or None to delete the key, in order.

        Returns:
            Previous object for each write.
        """
        failures: builtins.list[IndexFailure] = []
        with self._lock:
            self.is_writing = True
            try:
                before = self.state.write(writes, failures)
            finally:
                self.is_writing = False
        if failures:
            self._report(failures)
        return before

    def begin_replacement(self) -> Replacement[V]:
        """Return an empty state with the same indexes, for one thread to fill."""
        with self._lock:
            return Replacement[V](self.state.index)

    def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
        """Replace the content in one step, and return the previous objects by key.

        Indexes that were added in the meantime are added to the new content.
        """
        with self._lock:
            replacement.failures += replacement.items.add_indexers(self.state.index.functions)
            before = self.state
            self.state = replacement.items
        self._report(replacement.failures)
        return before.objects

    def get(self, key: str) -> V | None:
        """Return an object, or None."""
        if self.is_writing:
            with self._lock:
                return self.state.objects.get(key)
        return self.state.objects.get(key)

    def list(self) -> builtins.list[V]:
        """Return all objects."""
        with self._lock:
            return [*self.state.objects.values()]

    def list_keys(self) -> builtins.list[str]:
        """Return all keys."""
        with self._lock:
            return [*self.state.objects]

    def __len__(self) -> int:
        with self._lock:
            return len(self.state)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self.state.objects

    def index(self, name: str, obj: V) -> builtins.list[V]:
        """Return the stored objects that share an index value with ``obj``, sorted by key.

        Raises:
            UnknownIndexError: If the index does not exist.
            Exception: Any exception of the index function for ``obj``.
        """
        with self._lock:
            index = self.state.index
            keys: set[str] = set()
            for value in index.values_of(name, obj):
                keys |= index.keys(name, value)
            return self.state.with_keys(sorted(keys))

    def by_index(self, name: str, value: str) -> builtins.list[V]:
        """Return the objects with an index value, sorted by key.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        with self._lock:
            return self.state.with_keys(sorted(self.state.index.keys(name, value)))

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Return the keys with an index value, sorted.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        with self._lock:
            return sorted(self.state.index.keys(name, value))

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """Return all values of an index, sorted.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        with self._lock:
            return self.state.index.values(name)

    def get_indexers(self) -> Indexers[V]:
        """Return the index functions by name."""
        with self._lock:
            return dict(self.state.index.functions)

    def add_indexers(self, indexers: Indexers[V]) -> None:
        """Add indexes at any time.

        Stored objects are indexed immediately.

        Existing indexes with the same function stay unchanged.

        Raises:
            IndexerConflictError: If a name has another function. No index is added.
        """
        with self._lock:
            failures = self.state.add_indexers(indexers)
        self._report(failures)

    def __repr__(self) -> str:
        return f"<ThreadSafeStore {self.name}: {len(self)} objects, indexes {sorted(self.get_indexers())}>"

    def _report(self, failures: builtins.list[IndexFailure]) -> None:
        # Log one line per index, not one for each of 50 000 objects.
        if not failures:
            return
        counts = Counter(failure.index for failure in failures)
        for failure in {failure.index: failure for failure in reversed(failures)}.values():
            _logger.error(
                "index function failed: the object is stored, but absent from this index",
                extra={
                    "store": self.name,
                    "index": failure.index,
                    "key": failure.key,
                    "failures": counts[failure.index],
                    "error": describe_error(failure.error),
                },
            )
