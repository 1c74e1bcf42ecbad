"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_finalizing`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_finalizing import explore

from deltaloop.runtime.core.finalizing import (
    FinalizerRun,
)
from lab.mutants.edited import edited

MUTANTS = [
    edited(
        "CleansUpWithoutBeingAsked",
        FinalizerRun,
        ("        if not has_it:\n            return FinalizerStep.DONE\n", ""),
    ),
    edited(
        "ReconcilesBeforeTheFinalizer",
        FinalizerRun,
        ("FinalizerStep.RECONCILE if has_it else FinalizerStep.ADD", "FinalizerStep.RECONCILE"),
    ),
    edited(
        "DropsTheSuccessors", FinalizerRun, ("has_it and obj is not None and obj.uid == self._cleaned_up", "has_it")
    ),
    edited("DropsWhatIsNotDone", FinalizerRun, ("if decide(ended).case is Case.NOTHING:", "if True:")),
    edited("DropsWhatReturned", FinalizerRun, ("decide(ended).case is Case.NOTHING", "isinstance(ended, Returned)")),
    edited(
        "DropsAfterCallsThatWereNotAwaited",
        FinalizerRun,
        (
            "decide(ended).case",
            "decide(Returned(ended.value) if isinstance(ended, Returned) else ended).case",
        ),
    ),
    edited(
        "DropsAlthoughToldToStop",
        FinalizerRun,
        ("        if stopped:\n            return FinalizerStep.AS_IT_ENDED\n        if decide", "        if decide"),
    ),
    edited(
        "GivesUpAlthoughToldToStop",
        FinalizerRun,
        ("        if stopped:\n            return FinalizerStep.AS_IT_ENDED\n        if give_up", "        if give_up"),
    ),
    edited("AsksTwice", FinalizerRun, ("not self._asked and self.is_overdue", "self.is_overdue")),
    edited("AsksBeforeTheFirstTry", FinalizerRun, ("self._failed_before and self.is_overdue", "self.is_overdue")),
    edited("NeverAsksAfterATry", FinalizerRun, ("not self._asked and self.is_overdue(now)", "False")),
    edited("NeverAsksBeforeATry", FinalizerRun, ("self._failed_before and self.is_overdue(now)", "False")),
    edited("AsksASecondLate", FinalizerRun, ("now >= self._ask_at", "now > self._ask_at")),
    edited("GivesUpWhateverIsSaid", FinalizerRun, ("        if give_up:\n", "        if True:\n")),
    edited(
        "LeavesOutTheTry",
        FinalizerRun,
        ("FinalizerStep.AS_IT_ENDED if self._tried else FinalizerStep.CLEAN_UP", "FinalizerStep.AS_IT_ENDED"),
    ),
    edited(
        "TriesAgainAtOnce",
        FinalizerRun,
        ("FinalizerStep.AS_IT_ENDED if self._tried else FinalizerStep.CLEAN_UP", "FinalizerStep.CLEAN_UP"),
    ),
    edited("WakesUpAfterTheEnd", FinalizerRun, (" or self._cleaned_up or self", " or self")),
    edited("DropsWithoutLooking", FinalizerRun, ("return FinalizerStep.LOOK  #", "return FinalizerStep.DROP  #")),
    edited("ForgetsTheDeadline", FinalizerRun, ("if self._deadline is not None:", "if False:")),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_walk_detects_seeded_bugs(mutant: type[FinalizerRun]) -> None:
    with pytest.raises(AssertionError):
        explore(mutant)
