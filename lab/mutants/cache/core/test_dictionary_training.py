"""Mistakes seeded into the code, each of which the tests of ``tests.cache.core.test_dictionary_training`` must find."""

from __future__ import annotations

import pytest
from tests.cache.core.test_dictionary_training import OPTIONS, SOUND, make_machine
from tests.cache.machines import Step, show_the_bug, step

from deltaloop.cache.core.dictionary_training import DictionaryTraining
from lab.mutants.edited import edited

ForgetsWhatComesDuringTraining = edited(
    "ForgetsWhatComesDuringTraining",
    DictionaryTraining,
    (
        "self._objects[obj.key] = obj",
        "self._objects |= {obj.key: obj} if self.phase is TrainingPhase.COLLECTING else {}",
    ),
    what="What comes while the dictionary is trained stays as it is.",
)


KeepsTheFirstState = edited(
    "KeepsTheFirstState",
    DictionaryTraining,
    ("self._objects[obj.key] = obj", "self._objects.setdefault(obj.key, obj)"),
    what="An object is remembered as it came first.",
)


IgnoresTheEndOfTheList = edited(
    "IgnoresTheEndOfTheList",
    DictionaryTraining,
    ("self._list_is_complete = True", "pass"),
    what="A short list is never compressed.",
)


COME = [step("come", name=name) for name in "ab"]


DONE = [step("list_is_complete"), step("train"), step("come", name="c"), step("finish")]


HISTORIES: dict[type[DictionaryTraining], list[Step]] = {
    ForgetsWhatComesDuringTraining: [*COME, *DONE],
    KeepsTheFirstState: [*COME, *COME, *DONE],
    IgnoresTheEndOfTheList: [*COME, step("list_is_complete")],
}


@pytest.mark.parametrize("mutant", HISTORIES)
def test_machine_detects_seeded_bug(mutant: type[DictionaryTraining]) -> None:
    show_the_bug(SOUND, make_machine(lambda: mutant(OPTIONS)), HISTORIES[mutant])
