"""Mistakes seeded into the code, each of which the tests of ``tests.cache.core.test_process_deltas`` must find."""

from __future__ import annotations

import pytest
from tests.cache.core.test_process_deltas import check, pods

from deltaloop.api.resource import Resource
from deltaloop.cache.core.process_deltas import ListProcessing
from lab.mutants.edited import edited

TellsAllAsNew = edited(
    "TellsAllAsNew",
    ListProcessing[Resource],
    ("self._before = self._store", "self._store"),
    what="Forgets what was there.",
)


KeepsWhatIsGone = edited(
    "KeepsWhatIsGone",
    ListProcessing[Resource],
    (
        "delta.object for key, delta in together if type_of(delta.object) is not DeletedFinalStateUnknown",
        "getattr(delta.object, 'obj', delta.object) for key, delta in together",
    ),
    what="Stores what the tombstones stand for.",
)


@pytest.mark.parametrize("kind", [TellsAllAsNew, KeepsWhatIsGone])
def test_seeded_bug_is_detected(kind: type[ListProcessing[Resource]]) -> None:
    known, listed = pods({"a": (1, "n1"), "b": (1, "n2")}), pods({"a": (2, "n2")})
    with pytest.raises(AssertionError):
        check(known, listed, kind)
