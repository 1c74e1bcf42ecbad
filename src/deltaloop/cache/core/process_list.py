"""Apply a complete list to a store in batches, with the same result as ``process_deltas``.

1. *fill*: build the new items and indexes in batches, while readers see the old state.
2. *commit*: replace the old state in one step.
3. *tell*: compare both states in batches and yield notifications, deletions first.

The set of notified handlers must be fixed at the commit, because a later handler receives the new state as a whole.

Source: client-go tools/cache/the_real_fifo.go (``ReplacedAllInfo``), which does it in one step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, final

from deltaloop.api.json_values import type_of
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, WholeList
from deltaloop.cache.core.process_deltas import Notification, Versioned, notification_of
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.core.store import Replacement
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound=Versioned)


class ReplaceableStore(Protocol[V]):
    """Store whose next content can be built separately, such as an ``Indexer``."""

    def key_of(self, obj: V) -> str: ...

    def begin_replacement(self) -> Replacement[V]:
        """Return an empty state with the same indexes."""
        ...

    def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
        """Replace the content in one step, and return the previous objects."""
        ...


@final
class ListProcessing(Generic[M]):
    """Process one list with ``fill``, ``commit`` and ``tell``, in this order."""

    def __init__(self, deltas: WholeList[M], store: ReplaceableStore[M], *, is_in_initial_list: bool) -> None:
        self._deltas = deltas
        self._store = store
        self._is_in_initial_list = is_in_initial_list
        self._replacement = store.begin_replacement()
        self._before: Mapping[str, M] = {}
        self._keyed: list[tuple[str, Delta[M]]] = []
        self._failures: dict[int, Exception] = {}

    def fill(self) -> Generator[None, None, None]:
        """Build the new state, and yield after every ``TURN`` objects."""
        key_of, put, keep = self._store.key_of, self._replacement.put, self._keyed.append
        for place, delta in enumerate(self._deltas):
            obj: Any = delta.object
            try:
                key = obj.key if type_of(obj) is DeletedFinalStateUnknown else key_of(obj)
            except Exception as error:  # noqa: BLE001 - a key function may raise any exception; reported at the end
                self._failures[place] = error
                continue
            keep((key, delta))
            if type_of(obj) is not DeletedFinalStateUnknown:
                put(key, obj)
            if place % TURN == TURN - 1:
                yield

    def commit(self) -> None:
        self._before = self._store.commit_replacement(self._replacement)

    def tell(self) -> Iterator[Notification[M]]:
        """Yield the notifications. Objects without a key lead to a ``TransactionError`` at the end."""
        before, is_in_initial_list = self._before.get, self._is_in_initial_list
        for key, delta in self._keyed:
            yield notification_of(delta, before(key), is_in_initial_list=is_in_initial_list)
        if self._failures:
            raise TransactionError(self._failures, len(self._deltas))
