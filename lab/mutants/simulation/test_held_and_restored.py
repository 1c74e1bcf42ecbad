"""Mistakes seeded into the code, each of which the tests of ``tests.simulation.test_held_and_restored`` must find."""

from __future__ import annotations

import pytest
from tests.simulation.test_held_and_restored import RESTORED, app, remembers, seen_at

from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.simulation import Simulation
from deltaloop.testing.programs.program_transport import ProgramTransport
from lab.mutants.edited import edited


def test_ineffective_restore_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    bites_not = edited(
        "BitesNot", RevisionStore, ("{change.resource for change in self._newer_than(revision)}", "list[str]()")
    )
    monkeypatch.setattr(RevisionStore, "restore_backup", bites_not.restore_backup)
    assert Simulation(app(remembers)).replay(RESTORED) is None


def test_ineffective_delay_of_kind_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    bites_not = edited(
        "BitesNot",
        ProgramTransport,
        ("if kind is FaultKind.DELAYED_KIND else", "and 'none' if kind is FaultKind.DELAYED_KIND else"),
    )
    monkeypatch.setattr(ProgramTransport, "_follow", vars(bites_not)["_follow"])
    assert seen_at("delayed-kind:create:secrets:1")["key"] < 1
