"""What a whole list means for a store and for those who are told: the same as ``process_deltas``, in turns.

A list says everything that exists, so the store becomes exactly that:

1. *fill*: items and indexes of the new state are built beside the store, a few hundred objects at a time. Readers see
   the old state meanwhile.
2. *commit*: the new state takes the place of the old one in one step.
3. *tell*: old and new state are compared, a few hundred objects at a time, deletions first, as the deltas are.

The handlers that are told must be fixed at the commit: a handler that comes later is shown the new state as a whole.

Source: client-go tools/cache/the_real_fifo.go (``ReplacedAllInfo``), which does it in one go.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Generic, Protocol, TypeVar, final

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, WholeList
from deltaloop.cache.core.process_deltas import Notification, Versioned, notification_of
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.core.store import Replacement
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound=Versioned)


class ReplaceableStore(Protocol[V]):
    """A store whose content can be built beside it; an ``Indexer`` is one."""

    def key_of(self, obj: V) -> str:
        """Return the key of an object."""
        ...

    def begin_replacement(self) -> Replacement[V]:
        """Return an empty state with the same indexes."""
        ...

    def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
        """Put a state in the place of what is there, in one step; return what was there."""
        ...


@final
class ListProcessing(Generic[M]):
    """One list on its way into one store: ``fill``, ``commit``, ``tell``, in this order."""

    def __init__(self, deltas: WholeList[M], store: ReplaceableStore[M], *, is_in_initial_list: bool) -> None:
        """Begin.

        Args:
            deltas: A ``Replaced`` for each object of the list, and a tombstone for each that is known and not in it.
            store: The store whose content the list replaces.
            is_in_initial_list: Whether it is the first one.
        """
        self._deltas = deltas
        self._store = store
        self._is_in_initial_list = is_in_initial_list
        self._replacement = store.begin_replacement()
        self._before: Mapping[str, M] = {}
        self._keyed: list[tuple[str, Delta[M]]] = []
        self._failures: dict[int, Exception] = {}

    def fill(self) -> Generator[None, None, None]:
        """Build the new state; yields every ``TURN`` objects."""
        key_of, put, keep = self._store.key_of, self._replacement.put, self._keyed.append
        for place, delta in enumerate(self._deltas):
            obj = delta.object
            try:
                key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else key_of(obj)
            except Exception as error:  # noqa: BLE001 - a key function may raise anything; it is reported at the end
                self._failures[place] = error
                continue
            keep((key, delta))
            if not isinstance(obj, DeletedFinalStateUnknown):
                put(key, obj)
            if place % TURN == TURN - 1:
                yield

    def commit(self) -> None:
        """Let the new state take the old one's place."""
        self._before = self._store.commit_replacement(self._replacement)

    def tell(self) -> Iterator[Notification[M]]:
        """Yield what there is to tell.

        Raises:
            TransactionError: At the end, if some objects have no key.
        """
        before, is_in_initial_list = self._before.get, self._is_in_initial_list
        for key, delta in self._keyed:
            yield notification_of(delta, before(key), is_in_initial_list=is_in_initial_list)
        if self._failures:
            raise TransactionError(self._failures, len(self._deltas))
