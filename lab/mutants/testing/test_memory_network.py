"""Mistakes seeded into the code, each of which the tests of ``tests.testing.test_memory_network`` must find."""

from __future__ import annotations

import pytest
from tests.testing.test_memory_network import _held_back

from deltaloop.testing import MemoryNetwork
from deltaloop.testing.deterministic_loop import memory_network
from deltaloop.testing.deterministic_loop.memory_network import MemoryTransport
from lab.mutants.edited import edited

_NEVER_HOLDS_BACK = edited("NeverHoldsBack", MemoryTransport, ("self.get_write_buffer_size() > self._high", "False"))


def test_missing_back_pressure_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_network, "MemoryTransport", _NEVER_HOLDS_BACK)
    before, _ = _held_back(MemoryNetwork())
    assert before > 1_000_000
