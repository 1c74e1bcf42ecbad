"""Mistakes seeded into the code, each of which the tests of ``tests.webhooks.test_fuzz`` must find."""

from __future__ import annotations

from typing import Final

import pytest
from tests.webhooks.test_fuzz import HOOKS, Ask, check_turned

from deltaloop.webhooks import AdmissionWebhook, admitting
from deltaloop.webhooks.answer import Answer
from deltaloop.webhooks.request import no_listers
from lab.mutants.edited import edited_module

LATE: Final = edited_module(
    admitting,
    ("        given = _given(webhook, review)\n        stored", "        stored"),
    ("    try:\n        before: _Fields", "    try:\n        given = _given(webhook, review)\n        before: _Fields"),
)


def refused_later(path: str, body: bytes) -> Answer:
    """A webhook that reads what is to be changed after its function was asked: the function is blamed for it."""
    found = HOOKS.by_path[path]
    return LATE["admit"](found, body, no_listers) if isinstance(found, AdmissionWebhook) else HOOKS.answer(path, body)


def never_answered(path: str, body: bytes) -> Answer:
    """A webhook that looks for a way out of a wrong object for ever."""
    answer = HOOKS.answer(path, body)
    while answer.outcome == "invalid":
        pass
    return answer


@pytest.mark.parametrize(("bug", "how"), [(refused_later, "cannot be read"), (never_answered, "no answer within")])
def test_seeded_bugs_are_detected(bug: Ask, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.webhooks.test_fuzz.LONGEST", 0.2)
    with pytest.raises(AssertionError, match=how):
        check_turned(20_000, bug)
