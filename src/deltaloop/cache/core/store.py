"""Objects by key, with inverted indexes: an index function gives values of an object, the index gives keys for a value.

    items    key   -> object
    values   key   -> the index values it was filed under       one such pair of tables
    sets     value -> the keys filed under it                    for each index

Rules:

* ``sets`` is exactly the inversion of ``values``; a set that would be empty is not there.
* What a key was filed under is remembered, not computed again from the old object. An index function that raises, or
  answers differently the second time, can therefore never leave a key behind.
* All index functions of a write are called before anything is changed. One that raises, or returns what is not a
  collection of strings, is a fact returned to the caller (``IndexFailure``): the object is stored, stands in all
  other indexes, and is absent from that one until it is written again. client-go panics there.

Source: client-go tools/cache/thread_safe_store.go (``storeIndex``, ``threadSafeMap``), tools/cache/index.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar, cast, final

import msgspec

from deltaloop.cache.errors import IndexerConflictError, UnknownIndexError

V = TypeVar("V")

FOLLOWS_NAME: Final = "_deltaloop_follows_name"
"""Attribute of index functions whose values follow from the namespace and name of an object."""

IndexFunc: TypeAlias = Callable[[V], Iterable[str]]
Indexers: TypeAlias = Mapping[str, IndexFunc[V]]


class IndexFailure(msgspec.Struct, frozen=True):
    """An index function failed for one object, which is now absent from that index.

    Attributes:
        index: Name of the index.
        key: Key of the object.
        error: What was raised; a ``TypeError`` if the function returned something else than strings.
    """

    index: str
    key: str
    error: Exception


class StoreWrite(msgspec.Struct, Generic[V], frozen=True):
    """One write of a transaction: an object is stored, or what has its key is taken out."""

    obj: V
    delete: bool = False


@final
class StoreIndex(Generic[V]):
    """The inverted indexes of one store."""

    __slots__ = ("_functions", "_sets", "_singles", "_values", "follows_names", "is_by_name")

    def __init__(self, *, is_by_name: bool = False) -> None:
        """Begin without indexes.

        Args:
            is_by_name: Whether keys are namespaces and names, so that values that follow from those never change.
        """
        self.is_by_name: bool = is_by_name
        self.follows_names: bool = is_by_name
        """Whether an update of an object changes none of its values."""
        self._singles: dict[str, tuple[str]] = {}  # one tuple for all keys with this one value
        self._functions: dict[str, IndexFunc[V]] = {}
        self._values: dict[str, dict[str, tuple[str, ...]]] = {}
        self._sets: dict[str, dict[str, set[str]]] = {}

    @property
    def functions(self) -> Mapping[str, IndexFunc[V]]:
        """The index functions by name."""
        return self._functions

    def add_indexers(self, indexers: Indexers[V], items: Mapping[str, V]) -> list[IndexFailure]:
        """Add indexes and file the items under them; one that is there already with the same function is left alone.

        Raises:
            IndexerConflictError: If a name is taken by another function; nothing is added then.
        """
        taken = [name for name, function in indexers.items() if self._functions.get(name, function) != function]
        if taken:
            raise IndexerConflictError(taken)
        new = {name: function for name, function in indexers.items() if name not in self._functions}
        failures: list[IndexFailure] = []
        for name, function in new.items():
            filed = [(key, self._evaluate(name, function, key, obj, failures)) for key, obj in items.items()]
            self._functions[name] = function
            self.follows_names = self.follows_names and getattr(function, FOLLOWS_NAME, False) is True
            self._values[name], self._sets[name] = {}, {}
            for key, values in filed:
                self._file(name, key, values)
        return failures

    def update(self, key: str, obj: V) -> list[IndexFailure]:
        """File ``key`` under the values of ``obj``, and no longer under those of what it was before."""
        failures: list[IndexFailure] = []
        evaluated = [
            (name, self._evaluate(name, function, key, obj, failures)) for name, function in self._functions.items()
        ]
        for name, values in evaluated:
            self._file(name, key, values)
        return failures

    def delete(self, key: str) -> None:
        """Take ``key`` out of all indexes."""
        for name in self._functions:
            self._file(name, key, ())

    def replace(self, items: Mapping[str, V]) -> list[IndexFailure]:
        """File these items and no others."""
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
        """Return the keys filed under a value, as a new set.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return set(self._index(name).get(value, ()))

    def values(self, name: str) -> list[str]:
        """Return the values that have keys, sorted.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return sorted(self._index(name))

    def values_of(self, name: str, obj: V) -> tuple[str, ...]:
        """Compute the values of an object, stored or not.

        Raises:
            UnknownIndexError: If there is no such index.
            Exception: Whatever the index function raises.
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
            values = _strings_of(function(obj))
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; it is reported with its key
            failures.append(IndexFailure(name, key, error))
            return ()
        return self._singles.setdefault(values[0], (values[0],)) if len(values) == 1 else values

    def _file(self, name: str, key: str, values: tuple[str, ...]) -> None:
        filed, sets = self._values[name], self._sets[name]
        before = filed.get(key, ())
        if before == values:
            return
        for value in before:
            keys = sets[value]
            keys.discard(key)
            if not keys:
                del sets[value]
                self._singles.pop(value, None)
        for value in values:
            sets.setdefault(value, set()).add(key)
        if values:
            filed[key] = values
        else:
            filed.pop(key, None)


@final
class IndexedItems(Generic[V]):
    """Objects by key together with their indexes; every write returns the index functions that failed."""

    __slots__ = ("index", "objects")

    def __init__(self, indexers: Indexers[V] | None = None, *, is_by_name: bool = False) -> None:
        """Begin empty, with the given indexes; ``is_by_name`` as for ``StoreIndex``."""
        self.objects: dict[str, V] = {}
        """The objects by key; only to be looked at."""
        self.index: StoreIndex[V] = StoreIndex[V](is_by_name=is_by_name)
        self.index.add_indexers(indexers or {}, {})

    def __len__(self) -> int:
        return len(self.objects)

    def put(self, key: str, obj: V) -> list[IndexFailure]:
        """Store an object under a key, whether or not there was one."""
        failures = self.index.update(key, obj)
        self.objects[key] = obj
        return failures

    def delete(self, key: str) -> None:
        """Take an object out; an unknown key is no error."""
        if key in self.objects:
            self.index.delete(key)
            del self.objects[key]

    def write(self, writes: Iterable[tuple[str, V | None]], failures: list[IndexFailure]) -> list[V | None]:
        """Store objects under keys, or take out what is there for None, in order.

        Args:
            writes: The objects to store, by key; None deletes the key.
            failures: List to which the index functions that failed are appended.

        Returns:
            For each write what was there right before it.
        """
        objects, index = self.objects, self.index
        before: list[V | None] = []
        for key, obj in writes:
            old = objects[key] if key in objects else None  # noqa: SIM401 - without a call
            before.append(old)
            if obj is None:
                self.delete(key)
                continue
            if old is None or not index.follows_names:
                failures += index.update(key, obj)
            objects[key] = obj
        return before

    def replace(self, items: Mapping[str, V]) -> list[IndexFailure]:
        """Hold these objects and no others."""
        kept = dict(items)
        failures = self.index.replace(kept)
        self.objects = kept
        return failures

    def add_indexers(self, indexers: Indexers[V]) -> list[IndexFailure]:
        """Add indexes over what is stored and what will be.

        Raises:
            IndexerConflictError: If a name is taken by another function; nothing is added then.
        """
        return self.index.add_indexers(indexers, self.objects)

    def with_keys(self, keys: Iterable[str]) -> list[V]:
        """Return the objects of these keys, in the order of the keys; unknown keys are passed over."""
        return [self.objects[key] for key in keys if key in self.objects]


@final
class Replacement(Generic[V]):
    """A state that is being built beside the one that is read, to take its place in one step."""

    __slots__ = ("failures", "items")

    def __init__(self, index: StoreIndex[V]) -> None:
        """Begin empty, with the indexes of the state that it is to replace."""
        self.items: IndexedItems[V] = IndexedItems[V](dict(index.functions), is_by_name=index.is_by_name)
        self.failures: list[IndexFailure] = []

    def put(self, key: str, obj: V) -> None:
        """Add an object; index functions that fail are remembered for the report."""
        self.failures += self.items.put(key, obj)


def _strings_of(result: object) -> tuple[str, ...]:
    if isinstance(result, str) or not isinstance(result, Iterable):
        raise TypeError(f"an index function returns a list of strings, not {type(result).__name__}")
    values: list[str] = []
    for value in dict.fromkeys(cast("Iterable[object]", result)):
        if not isinstance(value, str):
            raise TypeError(f"an index function returns a list of strings; one item is {type(value).__name__}")
        values.append(value)
    return tuple(values)
