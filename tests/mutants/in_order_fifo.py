"""Seeded bugs of the in-order queue."""

from __future__ import annotations

from deltaloop.api.resource import Resource
from deltaloop.cache.core.real_fifo import InOrderQueue
from tests.cache.core.test_real_fifo import make_machine
from tests.cache.machines import Step, step
from tests.mutants.edited import edited
from tests.mutants.seeded_bug import bugs_of

PART = "in-order FIFO"


MixesStatesOfOneKey = edited(
    "MixesStatesOfOneKey",
    InOrderQueue[Resource],
    ("if not entry.key or entry.key in keys:", "if not entry.key:"),
    what="A batch has two states of one object.",
)
TakesListsAlong = edited(
    "TakesListsAlong",
    InOrderQueue[Resource],
    (
        "        return taken\n",
        "        taken += [entries.popleft() for entry in [*entries][:1] if entry.is_list]\n        return taken\n",
    ),
    what="A list is popped together with what waited before it.",
)
SyncsBeforeItIsProcessed = edited(
    "SyncsBeforeItIsProcessed",
    InOrderQueue[Resource],
    ("first = self._entries.popleft()", "self._initial_left, first = 0, self._entries.popleft()"),
    what="It has synced as soon as the first list is popped, before anybody has processed it.",
)
FindsDeletionsTooEarly = edited(
    "FindsDeletionsTooEarly",
    InOrderQueue[Resource],
    (
        "if first:\n            self._initial_left = len(self._entries)",
        "entry = self._entries[-1]\n        entry.deltas = self._deltas_of_all(entry)",
    ),
    (
        "Batch(self._deltas_of_all(first), ",
        "Batch(self._deltas_of_all(first) if first.deltas is None else first.deltas, ",
    ),
    what="Computes what a list deletes when it comes, not when its turn comes.",
)
PutsBackBehind = edited(
    "PutsBackBehind",
    InOrderQueue[Resource],
    ("self._entries.extendleft(reversed(batch.entries))", "self._entries.extend(batch.entries)"),
    what="What could not be processed goes to the end of the line.",
)
ForgetsTombstones = edited(
    "ForgetsTombstones",
    InOrderQueue[Resource],
    ("WholeList([*gone, *entry.deltas, *kept])", "WholeList([*entry.deltas, *kept])"),
    what="What a list deletes is not told.",
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
