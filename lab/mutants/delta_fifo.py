"""Seeded bugs of the queue of deltas."""

from __future__ import annotations

from tests.cache.core.test_deltas import make_machine
from tests.cache.machines import Step, step

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeltaQueue
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

PART = "DeltaFIFO"


ForgetsWhatOnlyWaits = edited(
    "ForgetsWhatOnlyWaits",
    DeltaQueue[Resource],
    (
        " if key not in listed",
        " if key not in listed and self._known.get_by_key(key) is not None",
    ),
    what="A list makes no deletion of what only waits: the fault of client-go 0.26, kubernetes#115658.",
)
TellsTheKnownState = edited(
    "TellsTheKnownState",
    DeltaQueue[Resource],
    ("(key, _state(deltas[-1]))", "(key, self._known.get_by_key(key) or _state(deltas[-1]))"),
    what="Tombstones with the store's object although a newer one waits.",
)
KeepsBothDeletions = edited(
    "KeepsBothDeletions",
    DeltaQueue[Resource],
    ("if delta.type is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:", "if False:"),
    what="Two deletions in a row stay two.",
)
JumpsTheLine = edited(
    "JumpsTheLine",
    DeltaQueue[Resource],
    ("deltas.append(delta)", "deltas.append(delta); self.items.move_to_end(key)"),
    what="A key goes to the end of the line whenever something is added to it.",
)
ResyncsBehindNewerThings = edited(
    "ResyncsBehindNewerThings",
    DeltaQueue[Resource],
    ("if obj is not None and key not in self.items:", "if obj is not None:"),
    what="A resync is queued behind something newer, too.",
)
CountsOnlyTheListed = edited(
    "CountsOnlyTheListed",
    DeltaQueue[Resource],
    ("self._initial_left -= 1", "self._initial_left = 0 if self._initial_left == 2 else self._initial_left - 1"),
    what="Synced although the deletions of the first list wait.",
)
DropsNothing = edited(
    "DropsNothing",
    DeltaQueue[Resource],
    ("if key not in self.items and not known:", "if False:"),
    what="The deletion of what nobody ever heard of is queued.",
)
ForgetsWhatWasPutBack = edited(
    "ForgetsWhatWasPutBack",
    DeltaQueue[Resource],
    ("self._out_of_order = True", "self._out_of_order = False"),
    what="Takes the version of the first in line, although something older was put back behind it.",
)
PromisesWhatWaits = edited(
    "PromisesWhatWaits",
    DeltaQueue[Resource],
    ("if not self.items:\n            return self._version", "return self._version"),
    what="The version reached is that of what still waits.",
)
OverwritesOnRequeue = edited(
    "OverwritesOnRequeue",
    DeltaQueue[Resource],
    (
        "if key not in self.items and deltas:\n            self.items[key] = list(deltas)",
        "self.items.pop(key, None)\n        if deltas:\n            self.items[key] = list(deltas[:1])",
    ),
    what="What is put back overwrites what is newer, and is cut short.",
)


SyncsByWhatWasInterrupted = edited(
    "SyncsByWhatWasInterrupted",
    DeltaQueue[Resource],
    ("if popped.is_in_initial_list:", "if False:"),
    what="What was put back after an interruption counts as processed.",
)
LosesWhatCameMeanwhile = edited(
    "LosesWhatCameMeanwhile",
    DeltaQueue[Resource],
    ("key, newer = popped.key, self.items.get(popped.key, [])", "key, newer = popped.key, []"),
    what="What is put back after an interruption takes the place of what has come since.",
)
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
