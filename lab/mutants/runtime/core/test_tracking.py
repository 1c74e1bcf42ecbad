"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_tracking`` must find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.runtime.core.test_tracking import explore

from deltaloop.runtime.core.tracking import Tracking
from lab.mutants.edited import edited


def bugs() -> Iterator[tuple[str, type[Tracking]]]:
    for what, *edits in (
        ("a failed run releases", ("if succeeded else ()", "if True else ()")),
        ("a successful run releases nothing", (" if succeeded else ()", " if False else ()")),
        ("what the latest run tracked is released", (" - latest) if succeeded", ") if succeeded")),
        ("a gone object keeps what it has", ("if key in self._gone or not exists:", "if key in self._gone:")),
        ("a run that outlives its object keeps it", ("if key in self._gone or not exists:", "if not exists:")),
        ("once gone, always gone", ("            self._gone.discard(key)\n", "")),
        ("a watch ends under a run", ("if key in self._latest:", "if False:")),
        (
            "the first key to release ends the watch",
            ("            if not self._keys[tracked]:", "            if True:"),
        ),
        ("a key is told after it released", ("            self._keys[tracked].discard(key)\n", "            pass\n")),
        ("the latest run counts for ever", ("self._latest.pop(key, set", "self._latest.get(key, set")),
        ("nothing is shared", ("if len(here) >= self._shared_from", "if len(here) > self._shared_from")),
        ("the shared watch goes on", ("                ending.append(place)\n", "                pass\n")),
        ("what shares a watch is never let go", ("self._watches.pop(tracked)", "self._watches[tracked]")),
        ("the namespace stays shared", ("                self._shared.discard(place)\n", "")),
        ("each that shares ends the watch", ("[watch] if watch == tracked else []", "[watch]")),
    ):
        yield what, edited("Mutant", Tracking, *edits, what=what)


@pytest.mark.parametrize(("what", "mutant"), [*bugs()])
def test_seeded_bug_is_detected(what: str, mutant: type[Tracking]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        explore(mutant)
