"""Seeded bugs of the in-order queue."""

from __future__ import annotations

from typing import Any

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, Deltas
from deltaloop.cache.core.real_fifo import BATCH_SIZE, Batch, InOrderQueue, Listing
from tests.cache.core.test_real_fifo import make_machine
from tests.cache.machines import Step, step
from tests.mutants.seeded_bug import bugs_of

PART = "in-order FIFO"


class MixesStatesOfOneKey(InOrderQueue[Resource]):
    """A batch has two states of one object."""

    def _take_along(self, first: Any, limit: int) -> list[Any]:
        taken = super()._take_along(first, limit)
        while self._entries and self._entries[0].key == taken[-1].key:
            taken.append(self._entries.popleft())
        return taken


class TakesListsAlong(InOrderQueue[Resource]):
    """A list is popped together with what waited before it."""

    def _take_along(self, first: Any, limit: int) -> list[Any]:
        taken = super()._take_along(first, limit)
        if self._entries and self._entries[0].is_list:
            taken.append(self._entries.popleft())
        return taken


class SyncsBeforeItIsProcessed(InOrderQueue[Resource]):
    """It has synced as soon as the first list is popped, before anybody has processed it."""

    def pop(self, limit: int = BATCH_SIZE) -> Batch[Resource] | None:
        self._initial_left = 0
        return super().pop(limit)


class FindsDeletionsTooEarly(InOrderQueue[Resource]):
    """Computes what a list deletes when it comes, not when its turn comes."""

    def put_list(self, listing: Listing[Resource]) -> None:
        super().put_list(listing)
        entry = self._entries[-1]
        entry.deltas = super()._deltas_of_all(entry)

    def _deltas_of_all(self, entry: Any) -> Deltas[Resource]:
        return super()._deltas_of_all(entry) if entry.deltas is None else entry.deltas


class PutsBackBehind(InOrderQueue[Resource]):
    """What could not be processed goes to the end of the line."""

    def put_back(self, batch: Batch[Resource]) -> None:
        super().put_back(batch)
        self._entries.rotate(-len(batch.entries))


class ForgetsTombstones(InOrderQueue[Resource]):
    """What a list deletes is not told."""

    def _deltas_of_all(self, entry: Any) -> Deltas[Resource]:
        return tuple(
            Delta(delta.type, delta.object)
            for delta in super()._deltas_of_all(entry)
            if not isinstance(delta.object, DeletedFinalStateUnknown)
        )


ADD_A, ADD_B = step("write", name="a", kind="add"), step("write", name="b", kind="add")


POP = step("pop")


HISTORIES: dict[type[InOrderQueue[Resource]], list[Step]] = {
    MixesStatesOfOneKey: [ADD_A, ADD_A, POP],
    TakesListsAlong: [ADD_A, step("replace", names=["b"]), POP],
    SyncsBeforeItIsProcessed: [step("replace", names=[]), step("pop_and_fail")],
    FindsDeletionsTooEarly: [ADD_A, step("replace", names=[]), POP, POP],
    PutsBackBehind: [ADD_A, ADD_A, step("pop_and_fail"), POP],
    ForgetsTombstones: [ADD_A, POP, step("replace", names=["b"]), POP],
}


BUGS = bugs_of(
    PART, InOrderQueue[Resource], HISTORIES, lambda kind: make_machine(lambda known: kind(known_objects=known))
)
