"""Mistakes seeded into the code, each of which the tests of ``tests.workqueue.core.test_explorer`` must find."""

from __future__ import annotations

import pytest
from tests.workqueue.core.test_explorer import explore

from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from lab.mutants.edited import edited

MUTANTS = [
    edited(name, RateLimitingCore[str], *edits)
    for name, edits in {
        "ParkedItemIsRetriedToo": [
            (
                'return Finished(fate="parked" if',
                'self.add_after(item, now, 2.0); return Finished(fate="parked" if',
            )
        ],
        "OneRetryTooMany": [("run.failures >= self._max_requeues", "run.failures > self._max_requeues")],
        "AddedItemStaysParked": [("            self._dead.remove(item)\n", "            pass\n")],
        "ParksWhatWasAddedMeanwhile": [
            (
                "error, item = ending.error, run.item",
                "error, item = ending.error, run.item; is_terminal(error) and self._dirty.pop(item, None)",
            )
        ],
        "ParkedItemKeepsItsFailures": [("        self.forget(item)\n        return outcome", "        return outcome")],
        "ItemAddedMeanwhileIsDoneAtOnce": [
            ("if self.ends_are_told or (self._dirty and item in self._dirty):", "if self.ends_are_told:"),
        ],
        "DoneAtOnceLeavesTheItemToItsWorker": [
            ("        run.over = True\n        return True\n", "        return True\n")
        ],
        "RevivesAfterShutdown": [
            ("if letter is None or self._shutting_down:", "if letter is None:"),
            (
                "self.add(item, now, trigger=trigger, priority",
                "self._join(item, now, self._log(trigger)); dict(priority",
            ),
        ],
        "NothingIsParkedAfterShutdown": [
            (
                "if run is None:\n            return is_terminal",
                (
                    "if self._shutting_down:\n            return False\n"
                    "        if run is None:\n            return is_terminal"
                ),
            )
        ],
        "SecondShutdownIsIgnored": [
            (
                "self._shutting_down = True\n        self._draining = drain",
                "self._draining, self._shutting_down = self._draining if self._shutting_down else drain, True",
            )
        ],
    }.items()
]


@pytest.mark.parametrize("bug", MUTANTS)
def test_explorer_detects_seeded_bug(bug: type[RateLimitingCore[str]]) -> None:
    with pytest.raises(AssertionError) as caught:
        explore(bug)
    assert caught.value.__notes__
