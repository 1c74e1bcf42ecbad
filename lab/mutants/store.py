"""Seeded bugs of the store with its indexes."""

from __future__ import annotations

from tests.cache.core.test_store import make_machine
from tests.cache.machines import Step, step

from deltaloop.cache.core.store import IndexedItems, StoreIndex
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

PART = "store with indexes"


NeverForgetsOldValues = edited(
    "NeverForgetsOldValues",
    StoreIndex[str],
    ("before = filed[key] if key in filed else ()", "before = filed.pop(key, ()) and ()"),
    what="An object stays filed under the values that it had before.",
)
KeepsEmptySets = edited(
    "KeepsEmptySets",
    StoreIndex[str],
    ("if not keys:\n                del sets[value]\n                self._singles.pop(value, None)", "pass"),
    what="A value without objects is still listed.",
)
ComparesOnlyTheFirstValue = edited(
    "ComparesOnlyTheFirstValue",
    StoreIndex[str],
    ("if before == values:", "if before[:1] == values[:1]:"),
    what="The short cut for unchanged single values, taken for several, too.",
)


ReplacesWithoutForgetting = edited(
    "ReplacesWithoutForgetting",
    StoreIndex[str],
    ("for name in self._functions:\n            self._values[name], self._sets[name] = {}, {}\n", "\n"),
    what="A replacement leaves what is gone in the indexes.",
)
IndexesOnlyWhatComes = edited(
    "IndexesOnlyWhatComes",
    StoreIndex[str],
    ("for key, obj in items.items()]\n            self._functions", "for key, obj in ()]\n            self._functions"),
    what="An index added late does not know what is stored already.",
)
HISTORIES: dict[type[StoreIndex[str]], list[Step]] = {
    NeverForgetsOldValues: [
        step("add_indexer", name="words"),
        step("replace", items={"k1": "", "k2": "", "k3": "a"}),
        step("delete", key="k3"),
    ],
    KeepsEmptySets: [
        step("add_indexer", name="words"),
        step("replace", items={"k1": "", "k2": "a"}),
        step("delete", key="k2"),
    ],
    ComparesOnlyTheFirstValue: [
        step("add_indexer", name="words"),
        step("put", key="k1", text="a"),
        step("put", key="k1", text="a b"),
    ],
    ReplacesWithoutForgetting: [
        step("add_indexer", name="words"),
        step("replace", items={"k1": "a"}),
        step("replace", items={}),
    ],
    IndexesOnlyWhatComes: [step("put", key="k1", text=""), step("add_indexer", name="length")],
}


def store_over(kind: type[StoreIndex[str]]) -> IndexedItems[str]:
    items = IndexedItems[str]()
    items.index = kind()
    return items


BUGS = bugs_of(PART, StoreIndex[str], HISTORIES, lambda kind: make_machine(lambda: store_over(kind)))
