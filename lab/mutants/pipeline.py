"""Seeded bugs of the whole pipeline: informers that are broken where their parts meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

from tests.cache.machines import Step, step
from tests.cache.machines_pipeline import make_machine, mark

from deltaloop._internal.pacing import Backoff
from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Delta, Deltas, DeltaType
from deltaloop.cache.core.notification_buffer import BufferPolicy, CoalescingBuffer, FifoBuffer
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    Notification,
    UpdateNotification,
    process_deltas,
)
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.interfaces import Registration, ResourceEventHandler
from deltaloop.cache.listener import Listener
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.queue import QueueKind
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

Told: TypeAlias = "Notification[Resource]"

PART = "pipeline"


class Mutation:
    """What is wrong with an informer; this one changes nothing. Subclasses are the seeded bugs."""

    def options(self, options: InformerOptions) -> InformerOptions:
        return options

    def begin(self, informer: MutantInformer) -> None:
        """Tamper with an informer that was just made."""

    def deltas(self, deltas: Deltas[Resource]) -> Deltas[Resource]:
        """Return what is processed instead."""
        return deltas

    def told(self, told: list[Told], deltas: Deltas[Resource]) -> Iterable[Told]:
        """Return what is told instead."""
        return told

    def listeners(self, listeners: list[Listener[Resource]]) -> list[Listener[Resource]]:
        """Return who is told instead."""
        return listeners

    def added(self, informer: MutantInformer, listener: Listener[Resource], policy: BufferPolicy) -> None:
        """Tamper with a handler's place."""

    forgets_to_remove = False


class MutantInformer(Informer[Resource]):  # type: ignore[misc]  # a mutant of a final class
    """An informer with something wrong."""

    def __init__(self, source: ListerWatcher, mutation: Mutation, *, options: InformerOptions) -> None:
        super().__init__(source, POD, options=mutation.options(options))
        self._mutation = mutation
        mutation.begin(self)

    def _process(self, deltas: Deltas[Resource], is_in_initial_list: bool) -> None:
        deltas = self._mutation.deltas(deltas)
        told = [*process_deltas(deltas, self.indexer, is_in_initial_list=is_in_initial_list)]
        for notification in self._mutation.told(told, deltas):
            if not (isinstance(notification, UpdateNotification) and notification.is_unchanged):
                for listener in self._mutation.listeners([*self._processor._listeners]):
                    listener.add_all([notification], initial=int(notification.is_in_initial_list))

    def add_event_handler(
        self, handler: ResourceEventHandler[Resource], *, name: str = "", options: HandlerOptions | None = None
    ) -> Registration:
        listener = cast("Listener[Resource]", super().add_event_handler(handler, name=name, options=options))
        self._mutation.added(self, listener, (options or HandlerOptions()).buffer)
        return listener

    def remove_event_handler(self, registration: Registration) -> None:
        if not self._mutation.forgets_to_remove:
            super().remove_event_handler(registration)


class IgnoresLatecomers(Mutation):
    """A handler added late is not told what is there."""

    def added(self, informer: MutantInformer, listener: Listener[Resource], policy: BufferPolicy) -> None:
        listener._buffer.clear()


class ReplaysTwice(Mutation):
    """A handler added late is told twice what is there."""

    def added(self, informer: MutantInformer, listener: Listener[Resource], policy: BufferPolicy) -> None:
        for obj in informer.indexer.list():
            listener.add_all([AddNotification(obj, is_in_initial_list=True)], initial=1)


class ForgetsToRemove(Mutation):
    """A removed handler is told everything, as before."""

    forgets_to_remove = True


class TellsTheFirstHandlerOnly(Mutation):
    """With several handlers, one hears of changes."""

    def listeners(self, listeners: list[Listener[Resource]]) -> list[Listener[Resource]]:
        return listeners[:1]


class HidesTombstones(Mutation):
    """What a relist found to be gone is taken out of the cache, and nobody is told."""

    def told(self, told: list[Told], deltas: Deltas[Resource]) -> Iterable[Told]:
        return [each for each in told if not isinstance(each, DeleteNotification) or each.final_state_known]


class TakesRelistsForOldNews(Mutation):
    """A relist is stored; that it changed an object is told to nobody."""

    def told(self, told: list[Told], deltas: Deltas[Resource]) -> Iterable[Told]:
        if all(delta.type is not DeltaType.REPLACED for delta in deltas):
            return told
        return [each for each in told if not isinstance(each, UpdateNotification)]


class TellsTheLastFirst(Mutation):
    """What happened to an object is told in the wrong order."""

    held: list[Told] | None = None

    def told(self, told: list[Told], deltas: Deltas[Resource]) -> Iterable[Told]:
        if self.held is None and told and isinstance(told[0], UpdateNotification):
            self.held = told
            return ()
        held, self.held = self.held or [], None
        return [*told, *held]


class SkipsToTheLastDelta(Mutation):
    """Of the deltas of an object only the last one is applied: deleted and made again becomes an update."""

    held: Sequence[Delta[Resource]] = ()

    def deltas(self, deltas: Deltas[Resource]) -> Deltas[Resource]:
        held, self.held = self.held, ()
        if deltas[-1].type is DeltaType.DELETED and not held:
            self.held = deltas[-1:]
            return ()
        return deltas[-1:]


class LosesChanges(Mutation):
    """What a watch says about changes of objects that are known is lost."""

    def deltas(self, deltas: Deltas[Resource]) -> Deltas[Resource]:
        return tuple(delta for delta in deltas if delta.type is not DeltaType.UPDATED)


class TellsDeletionsOfTheUnheardOf(Mutation):
    """The deletion of an object that nobody ever saw is told, as upstream's in-order queue does."""

    def told(self, told: list[Told], deltas: Deltas[Resource]) -> Iterable[Told]:
        gone = {each.obj.key for each in told if isinstance(each, DeleteNotification)}
        return [*told, *(DeleteNotification(obj) for obj in _deleted(deltas) if obj.key not in gone)]


def _deleted(deltas: Deltas[Resource]) -> list[Resource]:
    objects = [delta.object for delta in deltas if delta.type is DeltaType.DELETED]
    return [obj for obj in objects if isinstance(obj, Resource)]


class TransformsAgain(Mutation):
    """What is told from the cache, to latecomers and by resyncs, goes through the transform once more."""

    def begin(self, informer: MutantInformer) -> None:
        informer._processor._objects = lambda: [mark(obj) for obj in informer.indexer.list()]


class DropsWhenFull(Mutation):
    """A full bounded buffer drops what comes, where it should stall the informer."""

    def added(self, informer: MutantInformer, listener: Listener[Resource], policy: BufferPolicy) -> None:
        if policy is BufferPolicy.BOUNDED:
            listener._buffer = _Dropping(2)
            informer._processor._bounded.clear()


class _Dropping(FifoBuffer[Resource]):  # type: ignore[misc]  # of a final class
    def put_all(self, notifications: Sequence[Told]) -> int:
        return sum([super(_Dropping, self).put_all([each]) for each in notifications if not self.is_full])


class KeepsTheFirstUpdate(Mutation):
    """A coalescing buffer keeps the oldest of several updates."""

    def added(self, informer: MutantInformer, listener: Listener[Resource], policy: BufferPolicy) -> None:
        if policy is BufferPolicy.COALESCING:
            listener._buffer = _Keeping()


_Keeping = edited(
    "_Keeping",
    CoalescingBuffer[Resource],
    (
        "old is not None\n        return UpdateNotification(old, new",
        "old is not None\n        return UpdateNotification(old, waits.new",
    ),
)


class AsksLikeMad(Mutation):
    """A server that refuses is asked again at once."""

    def options(self, options: InformerOptions) -> InformerOptions:
        backoff = Backoff(initial=0.001, cap=0.001, jitter=0.0)
        return options.replace(reflector=options.reflector.replace(backoff=backoff))


def start(policy: BufferPolicy = BufferPolicy.UNBOUNDED, queue: QueueKind = QueueKind.DELTA_FIFO) -> Step:
    return step("start", queue=queue, page_size=0, watch_list=False, policy=policy)


def slow_handler(policy: BufferPolicy) -> Step:
    return step("add_handler", policy=policy, seconds=0.3, resync=0.0)


PUT, PUT_B = step("put", name="a"), step("put", name="b")
WAIT, LONGER = step("wait", seconds=0.001), step("wait", seconds=3.0)
QUICK_HANDLER = step("add_handler", policy=BufferPolicy.UNBOUNDED, seconds=0.0, resync=0.0)
RESYNCED_HANDLER = step("add_handler", policy=BufferPolicy.UNBOUNDED, seconds=0.0, resync=7.0)
QUIET = step("become_quiet")


def unseen(*, gone: str = "", made: str = "") -> Step:
    return step("change_unseen", gone=set(gone), made=set(made), lost=True)


HISTORIES: dict[type[Mutation], list[Step]] = {
    IgnoresLatecomers: [start(), PUT, WAIT, QUICK_HANDLER, QUIET],
    ReplaysTwice: [start(), PUT, WAIT, QUICK_HANDLER, WAIT],
    ForgetsToRemove: [start(), QUICK_HANDLER, WAIT, step("remove_handler", place=1), PUT, WAIT],
    TellsTheFirstHandlerOnly: [start(), QUICK_HANDLER, WAIT, PUT, QUIET],
    HidesTombstones: [start(), PUT, WAIT, unseen(gone="a"), QUIET],
    TakesRelistsForOldNews: [start(), PUT, WAIT, unseen(made="a"), QUIET],
    TellsTheLastFirst: [start(), WAIT, PUT, PUT, PUT, WAIT],
    SkipsToTheLastDelta: [start(), WAIT, PUT, WAIT, step("remove", name="a", again=True), WAIT],
    LosesChanges: [start(), PUT, LONGER, PUT, QUIET],
    TellsDeletionsOfTheUnheardOf: [
        start(queue=QueueKind.REAL_FIFO),
        LONGER,
        step("delete_what_never_was", name="a"),
        WAIT,
    ],
    TransformsAgain: [start(), PUT, RESYNCED_HANDLER, QUIET],
    DropsWhenFull: [start(), slow_handler(BufferPolicy.BOUNDED), WAIT, PUT, PUT, PUT, PUT, PUT, QUIET],
    KeepsTheFirstUpdate: [start(), PUT, LONGER, slow_handler(BufferPolicy.COALESCING), WAIT, PUT, PUT, PUT, QUIET],
    AsksLikeMad: [
        start(),
        WAIT,
        *[step("refuse", lists=True, fault="refused", times=3)] * 10,
        step("end_watch", fault="expired"),
        step("wait", seconds=0.4),
    ],
}


BUGS = bugs_of(
    PART,
    Mutation,
    HISTORIES,
    lambda kind: make_machine(lambda source, options: MutantInformer(source, kind(), options=options)),
)
