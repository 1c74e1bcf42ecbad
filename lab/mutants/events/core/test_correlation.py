"""Mistakes seeded into the code, each of which the tests of ``tests.events.core.test_correlation`` must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.events.core.test_correlation import OPTIONS, Happening, judged, run

from deltaloop.events.core.correlation import CorrelatorOptions, EventCorrelator
from lab.mutants.edited import edited

ForgetsTheFirst = edited(
    "ForgetsTheFirst", EventCorrelator, ("count=sent.count + event.count", "count=min(sent.count + event.count, 2)")
)


NeverForgetsMessages = edited(
    "NeverForgetsMessages",
    EventCorrelator,
    ("if similar is None or now - similar.last_at > self._options.similar_interval:", "if similar is None:"),
)


@pytest.mark.parametrize("bug", [ForgetsTheFirst, NeverForgetsMessages])
def test_model_detects_seeded_bug(bug: Callable[[CorrelatorOptions], EventCorrelator]) -> None:
    history: list[Happening] = [("a", "x", 0.0), ("a", "y", 1.0), ("a", "z", 16.0), ("a", "z", 8.0), ("a", "z", 16.0)]
    assert run(EventCorrelator(OPTIONS), history) == judged(history)
    assert run(bug(OPTIONS), history) != judged(history)
