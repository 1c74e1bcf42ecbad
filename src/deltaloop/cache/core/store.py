"""Objects by key, with inverted indexes.

    items    key   -> object
    values   key   -> its index values                      one such pair of tables
    sets     value -> the keys with this value              for each index

Rules:

* ``sets`` is the exact inversion of ``values``, without empty sets.
* The stored values of a key are used for its removal, not values computed from the old object. Index functions that
  raise or return different values can therefore never leave stale entries.
* All index functions run before a write changes the tables. If one raises, or does not return a collection of strings,
  the caller gets an ``IndexFailure``: the object is stored and in all other indexes, but absent from this index until
  it is written again. client-go panics in this case.

Source: client-go tools/cache/thread_safe_store.go (``storeIndex``, ``threadSafeMap``), tools/cache/index.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

import msgspec

from deltaloop.api.json_values import type_of
from deltaloop.cache.errors import IndexerConflictError, UnknownIndexError

V = TypeVar("V")

FOLLOWS_NAME: Final = "_deltaloop_follows_name"
"""Attribute of index functions whose values depend only on the namespace and name of an object."""

IndexFunc: TypeAlias = Callable[[V], Iterable[str]]
Indexers: TypeAlias = Mapping[str, IndexFunc[V]]


class IndexFailure(msgspec.Struct, frozen=True):
    """Failure of an index function for an object, which is now absent from that index.

    Attributes:
        index: Name of the index.
        key: Key of the object.
        error: Raised exception. It is a ``TypeError`` if the function did not return strings.
    """

    index: str
    key: str
    error: Exception


class StoreWrite(msgspec.Struct, Generic[V], frozen=True):
    """One write of a transaction: store an object, or delete the object with its key."""

    obj: V
    delete: bool = False


@final
class StoreIndex(Generic[V]):
    """Inverted indexes of one store."""

    __slots__ = ("_functions", "_sets", "_singles", "_values", "is_by_name", "varying")

    def __init__(self, *, is_by_name: bool = False) -> None:
        """Create a store without indexes; ``is_by_name`` means that keys are namespace and name."""
        self.is_by_name: bool = is_by_name
        self.varying: dict[str, IndexFunc[V]] = {}
        """Functions whose values can change when an object is updated."""
        self._singles: dict[str, tuple[str]] = {}  # shared tuples for keys with only this value
        self._functions: dict[str, IndexFunc[V]] = {}
        self._values: dict[str, dict[str, tuple[str, ...]]] = {}
        self._sets: dict[str, dict[str, set[str]]] = {}

    @property
    def functions(self) -> Mapping[str, IndexFunc[V]]:
        """Index functions by name."""
        return self._functions

    def add_indexers(self, indexers: Indexers[V], items: Mapping[str, V]) -> list[IndexFailure]:
        """Add indexes and index the items.

        Existing indexes with the same function stay unchanged.

        Raises:
            IndexerConflictError: If a name has another function. No index is added.
        """
        taken = [name for name, function in indexers.items() if self._functions.get(name, function) != function]
        if taken:
            raise IndexerConflictError(taken)
        new = {name: function for name, function in indexers.items() if name not in self._functions}
        failures: list[IndexFailure] = []
        for name, function in new.items():
            filed = [(key, self._evaluate(name, function, key, obj, failures)) for key, obj in items.items()]
            self._functions[name] = function
            if not self.is_by_name or getattr(function, FOLLOWS_NAME, False) is not True:
                self.varying[name] = function
            self._values[name], self._sets[name] = {}, {}
            for key, values in filed:
                self._file(name, key, values)
        return failures

    def update(self, key: str, obj: V, *, is_new: bool = True) -> list[IndexFailure]:
        """Replace the values of a key with those of ``obj``."""
        failures: list[IndexFailure] = []
        functions = self._functions if is_new else self.varying
        evaluated = [(name, self._evaluate(name, function, key, obj, failures)) for name, function in functions.items()]
        for name, values in evaluated:
            filed = self._values[name]
            if key not in filed or filed[key] is not values:
                self._file(name, key, values)
        return failures

    def update_all(self, items: Mapping[str, V]) -> list[IndexFailure]:
        """Replace the values of several keys."""
        failures: list[IndexFailure] = []
        for name, function in self._functions.items():
            filed, keys, last = self._values[name], set[str](), None
            values: tuple[str, ...] = ()
            for key, obj in items.items():
                try:
                    found: Any = function(obj)
                    if type_of(found) is list and found == last and key not in filed:  # usual
                        filed[key] = values
                        keys.add(key)
                        continue
                    values = self._shared(found)
                except Exception as error:  # noqa: BLE001 - an index function may raise any exception; reported with its key
                    values = ()
                    failures.append(IndexFailure(name, key, error))
                self._file(name, key, values)
                last = [*values] if len(values) == 1 else None
                keys = self._sets[name][last[0]] if last else keys
        return failures

    def delete(self, key: str) -> None:
        """Remove a key from all indexes."""
        for name in self._functions:
            self._file(name, key, ())

    def replace(self, items: Mapping[str, V]) -> list[IndexFailure]:
        """Replace the content of all indexes."""
        failures: list[IndexFailure] = []
        evaluated = [
            (name, key, self._evaluate(name, function, key, obj, failures))
            for name, function in self._functions.items()
            for key, obj in items.items()
        ]
        for name in self._functions:
            self._values[name], self._sets[name] = {}, {}
        for name, key, values in evaluated:
            self._file(name, key, values)
        return failures

    def keys(self, name: str, value: str) -> set[str]:
        """Return the keys with a value as a new set.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return set(self._index(name).get(value, ()))

    def values(self, name: str) -> list[str]:
        """Return all values of an index, sorted.

        Raises:
            UnknownIndexError: If the index does not exist.
        """
        return sorted(self._index(name))

    def values_of(self, name: str, obj: V) -> tuple[str, ...]:
        """Compute the values of an object, which need not be stored.

        Raises:
            UnknownIndexError: If the index does not exist.
            Exception: Any exception of the index function.
        """
        self._index(name)
        return _strings_of(self._functions[name](obj))

    def _index(self, name: str) -> dict[str, set[str]]:
        index = self._sets.get(name)
        if index is None:
            raise UnknownIndexError(name, self._functions)
        return index

    def _evaluate(
        self, name: str, function: IndexFunc[V], key: str, obj: V, failures: list[IndexFailure]
    ) -> tuple[str, ...]:
        try:
            return self._shared(function(obj))
        except Exception as error:  # noqa: BLE001 - an index function may raise any exception; reported with its key
            failures.append(IndexFailure(name, key, error))
            return ()

    def _shared(self, found: Any) -> tuple[str, ...]:
        if type_of(found) is list and len(found) == 1 and type_of(value := found[0]) is str:  # usual
            return self._singles[value] if value in self._singles else self._singles.setdefault(value, (value,))
        values = _strings_of(found)
        return self._singles.setdefault(values[0], (values[0],)) if len(values) == 1 else values

    def _file(self, name: str, key: str, values: tuple[str, ...]) -> None:
        filed, sets = self._values[name], self._sets[name]
        before = filed[key] if key in filed else ()  # noqa: SIM401 - avoids a call
        if before == values:
            return
        for value in before:
            keys = sets[value]
            keys.discard(key)
            if not keys:
                del sets[value]
                self._singles.pop(value, None)
        for value in values:
            if value not in sets:
                sets[value] = set()
            sets[value].add(key)
        if values:
            filed[key] = values
        else:
            filed.pop(key, None)


@final
class IndexedItems(Generic[V]):
    __slots__ = ("index", "objects")

    def __init__(self, indexers: Indexers[V] | None = None, *, is_by_name: bool = False) -> None:
        self.objects: dict[str, V] = {}
        self.index: StoreIndex[V] = StoreIndex[V](is_by_name=is_by_name)
        self.index.add_indexers(indexers or {}, {})

    def __len__(self) -> int:
        return len(self.objects)

    def put(self, key: str, obj: V) -> list[IndexFailure]:
        failures = self.index.update(key, obj)
        self.objects[key] = obj
        return failures

    def delete(self, key: str) -> None:
        if key in self.objects:
            self.index.delete(key)
            del self.objects[key]

    def write(self, writes: Iterable[tuple[str, V | None]], failures: list[IndexFailure]) -> list[V | None]:
        """Store objects under keys in order, or delete keys for None, and return the previous objects."""
        objects, index = self.objects, self.index
        before: list[V | None] = []
        for key, obj in writes:
            old = objects[key] if key in objects else None  # noqa: SIM401 - avoids a call
            before.append(old)
            if obj is None:
                self.delete(key)
                continue
            if old is None or index.varying:
                failures += index.update(key, obj, is_new=old is None)
            objects[key] = obj
        return before

    def replace(self, items: Mapping[str, V]) -> list[IndexFailure]:
        kept = dict(items)
        failures = self.index.replace(kept)
        self.objects = kept
        return failures

    def add_indexers(self, indexers: Indexers[V]) -> list[IndexFailure]:
        return self.index.add_indexers(indexers, self.objects)

    def with_keys(self, keys: Iterable[str]) -> list[V]:
        return [self.objects[key] for key in keys if key in self.objects]


@final
class Replacement(Generic[V]):
    """State that is built separately, to replace the current state in one step."""

    __slots__ = ("failures", "items")

    def __init__(self, index: StoreIndex[V]) -> None:
        self.items: IndexedItems[V] = IndexedItems[V](dict(index.functions), is_by_name=index.is_by_name)
        self.failures: list[IndexFailure] = []

    def put_all(self, objects: Mapping[str, V]) -> None:
        """Add objects by key, and record failures of index functions."""
        self.failures += self.items.index.update_all(objects)
        self.items.objects.update(objects)


def _strings_of(result: object) -> tuple[str, ...]:
    if isinstance(result, str) or not isinstance(result, Iterable):
        raise TypeError(f"an index function must return a list of strings, got {type(result).__name__}")
    values: list[str] = []
    for value in dict.fromkeys(cast("Iterable[object]", result)):
        if not isinstance(value, str):
            raise TypeError(
                f"an index function must return a list of strings, got an item of type {type(value).__name__}"
            )
        values.append(value)
    return tuple(values)
