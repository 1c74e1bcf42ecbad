"""Seeded bugs of the queue of deltas."""

from __future__ import annotations

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, DeltaQueue, Deltas, DeltaType, Popped
from tests.cache.core.test_deltas import make_machine
from tests.cache.machines import Step, step
from tests.mutants.seeded_bug import bugs_of

PART = "DeltaFIFO"


class ForgetsWhatOnlyWaits(DeltaQueue[Resource]):
    """A list makes no deletion of what only waits: the fault of client-go 0.26, kubernetes#115658."""

    def _gone(self, listed: set[str]) -> list[DeletedFinalStateUnknown[Resource]]:
        return [gone for gone in super()._gone(listed) if self._known and self._known.get_by_key(gone.key) is not None]


class TellsTheKnownState(DeltaQueue[Resource]):
    """Tombstones with the store's object although a newer one waits."""

    def _gone(self, listed: set[str]) -> list[DeletedFinalStateUnknown[Resource]]:
        assert self._known is not None
        return [
            DeletedFinalStateUnknown(gone.key, self._known.get_by_key(gone.key) or gone.obj)
            for gone in super()._gone(listed)
        ]


class KeepsBothDeletions(DeltaQueue[Resource]):
    """Two deletions in a row stay two."""

    def _append(self, key: str, delta: Delta[Resource]) -> None:
        if key not in self._items:
            self._since[key] = self._arrival()
        self._items.setdefault(key, []).append(delta)


class JumpsTheLine(DeltaQueue[Resource]):
    """A key goes to the end of the line whenever something is added to it."""

    def _append(self, key: str, delta: Delta[Resource]) -> None:
        super()._append(key, delta)
        self._items.move_to_end(key)


class ResyncsBehindNewerThings(DeltaQueue[Resource]):
    """A resync is queued behind something newer, too."""

    def resync(self) -> None:
        assert self._known is not None
        for key in self._known.list_keys():
            obj = self._known.get_by_key(key)
            assert obj is not None
            self._append(key, Delta(DeltaType.SYNC, obj))


class CountsOnlyTheListed(DeltaQueue[Resource]):
    """Synced although the deletions of the first list wait."""

    def pop(self) -> Popped[Resource] | None:
        popped = super().pop()
        if popped is not None and self._initial_left == 1:
            self._initial_left = 0
        return popped


class DropsNothing(DeltaQueue[Resource]):
    """The deletion of what nobody ever heard of is queued."""

    def delete(self, obj: Resource | DeletedFinalStateUnknown[Resource]) -> None:
        self._write(DeltaType.DELETED, self.key_of(obj), obj)


class ForgetsWhatWasPutBack(DeltaQueue[Resource]):
    """Takes the version of the first in line, although something older was put back behind it."""

    def add_if_not_present(self, key: str, deltas: Deltas[Resource]) -> None:
        super().add_if_not_present(key, deltas)
        self._out_of_order = False


class PromisesWhatWaits(DeltaQueue[Resource]):
    """The version reached is that of what still waits."""

    @property
    def processed_version(self) -> str:
        return self._version


class OverwritesOnRequeue(DeltaQueue[Resource]):
    """What is put back overwrites what is newer, and is cut short."""

    def add_if_not_present(self, key: str, deltas: Deltas[Resource]) -> None:
        self._items.pop(key, None)
        super().add_if_not_present(key, deltas[:1])


class SyncsByWhatWasInterrupted(DeltaQueue[Resource]):
    """What was put back after an interruption counts as processed."""

    def put_back(self, popped: Popped[Resource]) -> None:
        super().put_back(popped._replace(is_in_initial_list=False))


class LosesWhatCameMeanwhile(DeltaQueue[Resource]):
    """What is put back after an interruption takes the place of what has come since."""

    def put_back(self, popped: Popped[Resource]) -> None:
        self._items.pop(popped.key, None)
        super().put_back(popped)


HISTORIES: dict[type[DeltaQueue[Resource]], list[Step]] = {
    ForgetsWhatOnlyWaits: [
        step("put", name="a"),
        step("pop", again=False),
        step("put", name="a"),
        step("replace", names=set()),
        step("pop", again=False),
        step("put", name="a"),
        step("replace", names=set()),
        step("pop", again=False),
    ],
    TellsTheKnownState: [
        step("replace", names={"a"}),
        step("pop", again=False),
        step("replace", names={"a"}),
        step("replace", names=set()),
        step("pop", again=False),
    ],
    KeepsBothDeletions: [
        step("replace", names={"a"}),
        step("delete", name="a"),
        step("delete", name="a"),
        step("pop", again=False),
    ],
    JumpsTheLine: [step("replace", names={"b", "a"}), step("delete", name="a")],
    ResyncsBehindNewerThings: [
        step("put", name="a"),
        step("pop", again=False),
        step("resync"),
        step("resync"),
        step("pop", again=False),
    ],
    CountsOnlyTheListed: [step("replace", names={"b", "a"}), step("pop", again=False)],
    DropsNothing: [step("delete", name="a")],
    OverwritesOnRequeue: [
        step("put", name="a"),
        step("delete", name="a"),
        step("pop", again=True),
        step("pop", again=False),
    ],
    ForgetsWhatWasPutBack: [step("put", name="a"), step("put", name="b"), step("pop", again=True)],
    PromisesWhatWaits: [step("put", name="a")],
    SyncsByWhatWasInterrupted: [step("replace", names={"a"}), step("pop_and_be_interrupted", name="a", came=False)],
    LosesWhatCameMeanwhile: [
        step("put", name="a"),
        step("pop_and_be_interrupted", name="a", came=True),
        step("pop", again=False),
    ],
}


BUGS = bugs_of(
    PART, DeltaQueue[Resource], HISTORIES, lambda kind: make_machine(lambda known: kind(known_objects=known))
)
