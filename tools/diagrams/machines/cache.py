"""The reflector, both queues of deltas, the store with an index, what deltas mean, and what waits for a handler."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from tools.diagrams.machines.reflector import reflector
from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, DeltaQueue, DeltaType
from deltaloop.cache.core.notification_buffer import CoalescingBuffer
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    Notification,
    UpdateNotification,
    process_deltas,
)
from deltaloop.cache.core.real_fifo import Batch, InOrderQueue
from deltaloop.cache.core.store import IndexedItems

KEY = "default/web"
MOST_WAITING = 3


@dataclass(frozen=True)
class _Object:
    """All that these machines need to know of an object."""

    node: str = ""
    key: str = KEY
    uid: str = "1"
    resource_version: str = "1"


OBJECT = _Object()


def _key_of(obj: _Object) -> str:
    return obj.key


@dataclass
class _Known:
    """What the consumer of a queue holds: the object, or nothing."""

    obj: _Object | None = None

    def list_keys(self) -> list[str]:
        return [] if self.obj is None else [KEY]

    def get_by_key(self, key: str) -> _Object | None:
        return self.obj if key == KEY else None

    def key_of(self, obj: _Object) -> str:
        return obj.key

    def transaction_by_key(self, writes: Iterable[tuple[str, _Object | None]]) -> list[_Object | None]:
        olds: list[_Object | None] = []
        for _, obj in writes:
            olds.append(self.obj)
            self.obj = obj
        return olds


# -- DeltaFIFO: one object


class _DeltaQueue:
    def __init__(self) -> None:
        self.known = _Known()
        self.queue: DeltaQueue[_Object] = DeltaQueue(known_objects=self.known, key_func=_key_of)
        self.queue.replace([])  # an empty list is there, so that what comes is told as it is

    @property
    def types(self) -> tuple[DeltaType, ...]:
        return tuple(delta.type for delta in self.queue.deltas_of(KEY))

    def pop(self) -> None:
        popped = self.queue.pop()
        assert popped is not None
        for _ in process_deltas(popped.deltas, self.known, is_in_initial_list=False):
            pass


def _delta_view(machine: _DeltaQueue) -> str:
    known = "in the store" if machine.known.obj else "not in the store"
    types = machine.types
    if not types:
        return f"{known}; queue empty"
    return f"{known}; queued, last delta is {'a deletion' if types[-1] is DeltaType.DELETED else 'an update'}"


def _delta_identity(machine: _DeltaQueue) -> Hashable:
    return machine.types, machine.known.obj


def _delta_moves(machine: _DeltaQueue) -> Iterable[Move[_DeltaQueue]]:
    if machine.types:
        yield "`pop`, applied to the store", lambda machine: machine.pop()
    if len(machine.types) < MOST_WAITING:
        yield "`add`", lambda machine: machine.queue.add(OBJECT)
        yield "`update`", lambda machine: machine.queue.update(OBJECT)
        yield "`delete`", lambda machine: machine.queue.delete(OBJECT)
        yield "`replace` with the object", lambda machine: machine.queue.replace([OBJECT])
        yield "`replace` without the object", lambda machine: machine.queue.replace([])
        yield "`resync`", lambda machine: machine.queue.resync()


# -- the in-order queue: the whole of it


class _InOrder:
    def __init__(self) -> None:
        self.queue: InOrderQueue[_Object] = InOrderQueue(known_objects=_Known(OBJECT), key_func=_key_of)
        self.batch: Batch[_Object] | None = None

    def pop(self) -> None:
        self.batch = self.queue.pop()

    def end(self, done: Callable[[Batch[_Object]], None]) -> None:
        assert self.batch is not None
        done(self.batch)
        self.batch = None


def _in_order_view(machine: _InOrder) -> str:
    synced = "synced" if machine.queue.has_synced else "not synced"
    if machine.batch is not None:
        return f"{synced}; processing a batch"
    return f"{synced}; {'not empty' if len(machine.queue) else 'empty'}"


def _in_order_identity(machine: _InOrder) -> Hashable:
    batch = machine.batch
    return _in_order_view(machine), len(machine.queue), batch and (batch.is_in_initial_list, len(batch.entries))


def _in_order_moves(machine: _InOrder) -> Iterable[Move[_InOrder]]:
    if len(machine.queue) < MOST_WAITING:
        yield "`replace` (a list)", lambda machine: machine.queue.replace([OBJECT])
        yield "`add`, `update`, `delete`", lambda machine: machine.queue.update(OBJECT)
        yield "`resync`", lambda machine: machine.queue.resync()
    if machine.batch is None and len(machine.queue):
        yield "`pop`", lambda machine: machine.pop()
    if machine.batch is not None:
        yield "`processed`", lambda machine: machine.end(machine.queue.processed)
        yield "failure: `put_back`", lambda machine: machine.end(machine.queue.put_back)


# -- the store and one index


def _by_node(obj: _Object) -> list[str]:
    return [obj.node] if obj.node else []


def _store() -> IndexedItems[_Object]:
    return IndexedItems({"node": _by_node})


def _store_view(store: IndexedItems[_Object]) -> str:
    obj = store.objects.get(KEY)
    if obj is None:
        return "absent"
    return f"stored, indexed under {obj.node}" if obj.node else "stored, not indexed"


def _store_moves(_: IndexedItems[_Object]) -> Iterable[Move[IndexedItems[_Object]]]:
    for node in ("", "n1", "n2"):
        named = f"node {node}" if node else "without a node"
        yield f"`put`, {named}", _putting(node)
    yield "`delete`", lambda store: store.delete(KEY)
    yield "`replace` without the object", lambda store: store.replace({})


def _putting(node: str) -> Callable[[IndexedItems[_Object]], object]:
    return lambda store: store.put(KEY, _Object(node))


# -- what deltas mean


@dataclass
class _Meaning:
    store: _Known = field(default_factory=_Known)


def _meaning_view(machine: _Meaning) -> str:
    return "not in the store" if machine.store.obj is None else "in the store"


def _told(notifications: list[Notification[_Object]]) -> str:
    if not notifications:
        return "no notification"
    (notification,) = notifications
    if isinstance(notification, AddNotification):
        return "add"
    if isinstance(notification, DeleteNotification):
        return "delete" if notification.final_state_known else "delete, final state unknown"
    return "no notification: unchanged" if notification.is_unchanged else "update"


def _meaning_moves(machine: _Meaning) -> Iterable[Move[_Meaning]]:
    for delta_type in DeltaType:
        yield _meaning_of(machine, f"`{delta_type.value}`", Delta(delta_type, OBJECT))
    tombstone = DeletedFinalStateUnknown(KEY, OBJECT)
    yield _meaning_of(machine, "`Deleted`, missing from a list", Delta(DeltaType.DELETED, tombstone))


def _meaning_of(machine: _Meaning, words: str, delta: Delta[_Object]) -> Move[_Meaning]:
    told = list(process_deltas((delta,), _Known(machine.store.obj), is_in_initial_list=False))
    return f"{words}: {_told(told)}", lambda after: list(
        process_deltas((delta,), after.store, is_in_initial_list=False)
    )


# -- what waits for a handler


@dataclass
class _Heard:
    buffer: CoalescingBuffer[_Object] = field(default_factory=CoalescingBuffer[_Object])
    there: bool = False
    heard: bool = False

    def put(self, notification: Notification[_Object]) -> None:
        self.there = not isinstance(notification, DeleteNotification)
        self.buffer.put_all([notification])

    def take(self) -> None:
        self.heard = not isinstance(self.buffer.popleft(), DeleteNotification)

    @property
    def waits(self) -> str:
        names = {AddNotification: "Added", UpdateNotification: "Updated", DeleteNotification: "Deleted"}
        return names[type(copy.deepcopy(self.buffer).popleft())] if len(self.buffer) else ""


def _heard_view(machine: _Heard) -> str:
    heard = "known to the handler" if machine.heard else "not known to the handler"
    return f"{heard}; {f'{machine.waits} buffered' if machine.waits else 'buffer empty'}"


def _heard_identity(machine: _Heard) -> Hashable:
    return _heard_view(machine), machine.there


def _heard_moves(machine: _Heard) -> Iterable[Move[_Heard]]:
    if machine.waits:
        yield "delivery", lambda machine: machine.take()
    if machine.there:
        yield "Updated arrives", lambda machine: machine.put(UpdateNotification(OBJECT, OBJECT))
        yield "Deleted arrives", lambda machine: machine.put(DeleteNotification(OBJECT))
    else:
        yield "Added arrives", lambda machine: machine.put(AddNotification(OBJECT))


def diagrams() -> list[Diagram]:
    """Draw the table, and walk the others."""
    return [
        reflector(),
        walked(
            "delta-fifo",
            "informer",
            "One object in the queue of deltas",
            "cache/core/deltas.py",
            Machine(_DeltaQueue, _delta_moves, view=_delta_view, identity=_delta_identity),
        ),
        walked(
            "in-order-fifo",
            "informer",
            "The in-order queue",
            "cache/core/real_fifo.py",
            Machine(_InOrder, _in_order_moves, view=_in_order_view, identity=_in_order_identity),
        ),
        walked(
            "store",
            "informer",
            "One object in a store with an index",
            "cache/core/store.py",
            Machine(_store, _store_moves, view=_store_view, identity=_store_view),
        ),
        walked(
            "process-deltas",
            "informer",
            "The deltas of one object",
            "cache/core/process_deltas.py",
            Machine(_Meaning, _meaning_moves, view=_meaning_view, identity=_meaning_view),
        ),
        walked(
            "coalescing-buffer",
            "informer",
            "A handler with a coalescing buffer",
            "cache/core/notification_buffer.py",
            Machine(_Heard, _heard_moves, view=_heard_view, identity=_heard_identity),
        ),
    ]
