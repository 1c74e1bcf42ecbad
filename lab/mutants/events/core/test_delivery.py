"""Mistakes seeded into the code, each of which the tests of ``tests.events.core.test_delivery`` must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.events.core.test_delivery import expected, make, told

from deltaloop.events.core.delivery import Delivery
from deltaloop.events.core.draft import EventApi
from lab.mutants.edited import edited

BeginsWithACreate = edited(
    "BeginsWithACreate",
    Delivery,
    (
        "return self._effect\n\n    def waited",
        "return EventWrite.CREATE if self._effect is EventWrite.PATCH else self._effect\n\n    def waited",
    ),
)


NeverGivesUp = edited("NeverGivesUp", Delivery, ("self.tries += 1", "self.tries = min(self.tries + 1, 2)"))


TriesRefusalsAgain = edited(
    "TriesRefusalsAgain",
    Delivery,
    ("elif isinstance(error, ApiError):", "elif isinstance(error, ApiError) and error.code != 403:"),
)


WaitsTheWholeDelayFirst = edited("WaitsTheWholeDelayFirst", Delivery, ("(random if self.tries == 1 else 1.0)", "1.0"))


@pytest.mark.parametrize(
    ("bug", "answers"),
    [
        (BeginsWithACreate, []),
        (NeverGivesUp, ["lost"] * 6),
        (TriesRefusalsAgain, ["forbidden"]),
        (WaitsTheWholeDelayFirst, ["lost"]),
    ],
)
def test_model_detects_seeded_bug(bug: Callable[..., Delivery], answers: list[str]) -> None:
    right = expected(answers, is_update=True, api=EventApi.CORE_V1, tries=4)
    assert told(make(is_update=True, max_tries=4), answers) == right
    assert told(bug(is_update=True, max_tries=4, retry_delay=10.0), answers) != right
