"""Seeded bugs of the in-order queue."""

from __future__ import annotations

from tests.cache.core.test_real_fifo import make_machine
from tests.cache.machines import Step, step

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeltaType
from deltaloop.cache.core.real_fifo import InOrderQueue
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

PART = "in-order FIFO"


MixesStatesOfOneKey = edited(
    "MixesStatesOfOneKey",
    InOrderQueue[Resource],
    ("if entry.delta is None or entry.key in deltas:", "if entry.delta is None:"),
    what="A batch has two states of one object.",
)
TakesListsAlong = edited(
    "TakesListsAlong",
    InOrderQueue[Resource],
    (
        "        return Batch(with_keys(",
        "        self._processing += tuple([entries.popleft() for e in [*entries][:1] if e.listing])\n        return Batch(with_keys(",  # noqa: E501
    ),
    what="A list is popped together with what waited before it.",
)
SyncsBeforeItIsProcessed = edited(
    "SyncsBeforeItIsProcessed",
    InOrderQueue[Resource],
    ("first = entries[0]", "self._initial_waits, first = False, entries[0]"),
    what="It has synced as soon as the first list is popped, before anybody has processed it.",
)
FindsDeletionsTooEarly = edited(
    "FindsDeletionsTooEarly",
    InOrderQueue[Resource],
    (
        "initial=first))\n",
        "initial=first))\n        self.entries[-1].listing = Listing((), self._deltas_of_all(self.entries[-1]), ())\n",
    ),
    (
        "Batch(self._deltas_of_all(first), ",
        "Batch(self._deltas_of_all(first) if first.listing is None else first.listing.deltas, ",
    ),
    what="Computes what a list deletes when it comes, not when its turn comes.",
)
PutsBackBehind = edited(
    "PutsBackBehind",
    InOrderQueue[Resource],
    ("self.entries.extendleft(reversed(batch.entries))", "self.entries.extend(batch.entries)"),
    what="What could not be processed goes to the end of the line.",
)
ForgetsTombstones = edited(
    "ForgetsTombstones",
    InOrderQueue[Resource],
    ("*gone.values(), *listing.deltas, *kept.values()], [*gone, ", "*listing.deltas, *kept.values()], ["),
    what="What a list deletes is not told.",
)
TakesMoreThanThereIsRoomFor = edited(
    "TakesMoreThanThereIsRoomFor",
    InOrderQueue[Resource],
    ("islice(entries, 1, most)", "islice(entries, 1, most + 1)"),
    what="A batch has one more than the consumer has room for.",
)
LosesVersions = edited(
    "LosesVersions",
    InOrderQueue[Resource],
    ("append(_Entry(key, Delta(delta_type, kept), version))", "append(_Entry(key, Delta(delta_type, kept)))"),
    what="What came together brings the cache's version no further.",
)
ADD_A, ADD_B = step("write", name="a", kind="add"), step("write", name="b", kind="add")


POP = step("pop", limit=10)


HISTORIES: dict[type[InOrderQueue[Resource]], list[Step]] = {
    MixesStatesOfOneKey: [ADD_A, ADD_A, POP],
    TakesListsAlong: [ADD_A, step("replace", names=["b"]), POP],
    SyncsBeforeItIsProcessed: [step("replace", names=[]), step("pop_and_fail")],
    FindsDeletionsTooEarly: [ADD_A, step("replace", names=[]), POP, POP],
    PutsBackBehind: [ADD_A, ADD_A, step("pop_and_fail"), POP],
    TakesMoreThanThereIsRoomFor: [ADD_A, ADD_B, ADD_B, step("pop", limit=1)],
    LosesVersions: [step("write_all", changes=[("a", DeltaType.ADDED)]), POP],
    ForgetsTombstones: [ADD_A, POP, step("replace", names=["b"]), POP],
}


BUGS = bugs_of(
    PART, InOrderQueue[Resource], HISTORIES, lambda kind: make_machine(lambda known: kind(known_objects=known))
)
