"""An edit is made where it belongs, once, and says so where it cannot be."""

from __future__ import annotations

import pytest
from tests.workqueue.core.test_explorer import OneSecond

from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from lab.mutants.edited import edited


def test_edit_of_base_class_is_inherited_without_changing_originals() -> None:
    edit = ('item)\n        return "queued"', 'item)\n        return "ignored"')
    mutant = edited("Forgetful", RateLimitingCore[str], edit, what="x")
    assert (mutant.__name__, mutant.__doc__) == ("Forgetful", "x")
    assert mutant(limiter=OneSecond()).add("a", 0.0) == "ignored"
    assert RateLimitingCore[str](limiter=OneSecond()).add("a", 0.0) == "queued"
    assert QueueCore[str]().add("a", 0.0) == "queued"


@pytest.mark.parametrize(
    ("old", "words"), [("nobody wrote this", "does not say"), ("self._dirty", "more than once")], ids=["none", "many"]
)
def test_edit_needs_exactly_one_match(old: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        edited("Nothing", QueueCore[str], (old, "pass"))
