"""Mistakes seeded into ``webhooks.core.certificates.orders``, which the walk must find."""

from __future__ import annotations

import pytest
from tests.webhooks.core.certificates.orders import (
    Moment,
    brought_by_a_user,
    deleted,
    follow,
)

from lab.mutants.webhooks.core.certificates.test_rotation import seeded


@pytest.mark.parametrize(
    ("bug", "moment"),
    [
        ("strangers are taken out of caBundle", brought_by_a_user),
        ("what is new is served at once", deleted),
    ],
)
def test_seeded_bug_is_detected(bug: str, moment: Moment) -> None:
    with pytest.raises(AssertionError):
        follow(moment, seeded(bug), switches=1)
