"""Apply deltas to a store, and derive notifications.

    delta                             in the store    effect on the store    notification
    Added Updated Replaced Sync       no              stored                 Added
    Added Updated Replaced Sync       yes             stored                 Updated (old, new)
    Deleted                           yes             removed                Deleted
    Deleted                           no              none                   none; for a tombstone: Deleted

The store decides between added and updated, because after a relist the delta's type can differ. Deltas of different
keys are written in one step, deltas of one key one by one.

The deletion of an unknown object reaches no handler, unlike upstream's RealFIFO, so each handler sees (add update*
delete)* for each key. Objects without a key are skipped, then ``TransactionError`` is raised.

Source: client-go tools/cache/controller.go, ``processDeltas``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from deltaloop.api.json_values import type_of
from deltaloop.cache.core.deltas import (
    DeletedFinalStateUnknown,
    Delta,
    Deltas,
    DeltaType,
    KeyedDeltas,
    WholeList,
    with_keys,
)
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.core.store import Replacement
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound="Versioned")

# Module variables, because access to an enum member costs as much as a call, and this runs for each delta.
_DELETED, _REPLACED = DeltaType.DELETED, DeltaType.REPLACED


@final
class AddNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    is_unchanged: ClassVar[bool] = False
    obj: V
    is_in_initial_list: bool = False


@final
class UpdateNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """A changed object, or a repeated delivery (``old is new``: a resync).

    Attributes:
        is_unchanged: Whether a relist returned the known state (same uid and resource version). Handlers are not
            called.
        is_in_initial_list: Whether it contains an item of the initial list that was merged with a later change.
    """

    old: V
    new: V
    is_unchanged: bool = False
    is_in_initial_list: bool = False


@final
class DeleteNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """A deleted object. ``obj`` is its last known state, and its final state if ``final_state_known``."""

    is_unchanged: ClassVar[bool] = False
    obj: V
    final_state_known: bool = True
    is_in_initial_list: bool = False


Notification: TypeAlias = "AddNotification[V] | UpdateNotification[V] | DeleteNotification[V]"


if TYPE_CHECKING:

    class Versioned(Protocol):
        @property
        def uid(self) -> str: ...

        @property
        def resource_version(self) -> str: ...


if TYPE_CHECKING:

    class WritableStore(Protocol[V]):
        """Store to which deltas are applied, such as an ``Indexer``."""

        def key_of(self, obj: V) -> str: ...

        def transaction_by_key(self, writes: Iterable[tuple[str, V | None]]) -> list[V | None]:
            """Perform all writes in one step (None deletes a key), and return the previous object for each write."""
            ...


def process_deltas(
    deltas: Deltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> Iterator[Notification[M]]:
    """Apply deltas, oldest first, and yield the notifications; raises TransactionError at the end for missing keys."""
    failures: dict[int, Exception] = {}
    run: dict[str, Delta[M]] = {}
    key_of = store.key_of
    for place, delta in enumerate(deltas):
        obj = delta.object
        try:
            key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else key_of(obj)
        except Exception as error:  # noqa: BLE001 - a key function may raise any exception; reported at the end
            failures[place] = error
            continue
        if key in run:
            yield from process_keyed(with_keys(run.values(), [*run]), store, is_in_initial_list=is_in_initial_list)
            run = {}
        run[key] = delta
    yield from process_keyed(with_keys(run.values(), [*run]), store, is_in_initial_list=is_in_initial_list)
    if failures:
        raise TransactionError(failures, len(deltas))


def process_keyed(
    deltas: KeyedDeltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> list[Notification[M]]:
    """Apply deltas of different keys in one step, and return the notifications."""
    states: list[Any] = [None if delta.type is _DELETED else delta.object for delta in deltas]
    olds = store.transaction_by_key(zip(deltas.keys, states, strict=True))
    return [
        UpdateNotification(old, state, delta.type is _REPLACED and _is_same_state(old, state))
        if state is not None and old is not None
        else notification_of(delta, old, is_in_initial_list=is_in_initial_list)
        for delta, state, old in zip(deltas, states, olds, strict=True)
        if old is not None or not _is_plain_deletion(delta)
    ]


def _is_plain_deletion(delta: Delta[M]) -> bool:
    return delta.type is _DELETED and not isinstance(delta.object, DeletedFinalStateUnknown)


def notification_of(delta: Delta[M], old: M | None, *, is_in_initial_list: bool) -> Notification[M]:
    obj: Any = delta.object
    delta_type = delta.type
    if delta_type is _DELETED:
        is_tombstone = type_of(obj) is DeletedFinalStateUnknown
        return DeleteNotification(obj.obj, final_state_known=False) if is_tombstone else DeleteNotification(obj)
    if old is None:
        return AddNotification(obj, is_in_initial_list)
    return UpdateNotification(old, obj, delta_type is _REPLACED and _is_same_state(old, obj))


def _is_same_state(old: Versioned, new: Versioned) -> bool:
    return bool(new.resource_version) and (old.uid, old.resource_version) == (new.uid, new.resource_version)


if TYPE_CHECKING:

    class ReplaceableStore(Protocol[V]):
        """Store whose next content can be built separately, such as an ``Indexer``."""

        def begin_replacement(self) -> Replacement[V]:
            """Return an empty state with the same indexes."""
            ...

        def commit_replacement(self, replacement: Replacement[V]) -> Mapping[str, V]:
            """Replace the content in one step, and return the previous objects."""
            ...


@final
class ListProcessing(Generic[M]):
    """Apply a complete list to a store in batches, with the same result as ``process_deltas``.

    1. *fill*: build the new items and indexes, while readers see the old state.
    2. *commit*: replace the old state.
    3. *tell*: compare both states in batches and yield notifications, deletions first.

    The set of notified handlers must be fixed at the commit, because a later handler receives the new state as a whole.

    Source: client-go tools/cache/the_real_fifo.go (``ReplacedAllInfo``), which does it in one step.
    """

    def __init__(self, deltas: WholeList[M], store: ReplaceableStore[M], *, is_in_initial_list: bool) -> None:
        self._deltas = deltas
        self._store = store
        self._is_in_initial_list = is_in_initial_list
        self._replacement = store.begin_replacement()
        self._before: Mapping[str, M] = {}

    def fill(self) -> Generator[None, None, None]:
        """Build the new state, and yield after every ``TURN`` objects."""
        rest = zip(self._deltas.keys, self._deltas, strict=True)
        while together := [*islice(rest, TURN)]:
            objects: Any = {
                key: delta.object for key, delta in together if type_of(delta.object) is not DeletedFinalStateUnknown
            }
            self._replacement.put_all(objects)
            if len(together) == TURN:
                yield

    def commit(self) -> None:
        self._before = self._store.commit_replacement(self._replacement)

    def tell(self) -> Iterator[Notification[M]]:
        return chain.from_iterable(self._notifications())

    def _notifications(self) -> Iterator[list[Any]]:
        before, initial = self._before, self._is_in_initial_list
        rest = zip(self._deltas.keys, self._deltas, strict=True)
        while together := [*islice(rest, TURN)]:
            yield [
                AddNotification(delta.object, initial)
                if key not in before and delta.type is _REPLACED
                else notification_of(delta, before.get(key), is_in_initial_list=initial)
                for key, delta in together
            ]
