"""Mistakes seeded into the code, each of which the tests of ``tests.leaderelection.core.test_heartbeat`` must find."""

from __future__ import annotations

from tests.leaderelection.core.test_heartbeat import is_right

from deltaloop.leaderelection.core.election import Heartbeat
from lab.mutants.edited import edited

NeverSilent = edited(
    "NeverSilent",
    Heartbeat,
    ("self._asked_at is None or now - self._asked_at >= self._deadline", "False"),
    what="Every answer counts, late ones, too.",
)


def test_model_detects_seeded_bug() -> None:
    assert not is_right(NeverSilent(0.0, interval=2.0, deadline=10.0), [(0.0, False), (12.0, True)])
