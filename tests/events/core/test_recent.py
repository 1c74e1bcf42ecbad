"""What is kept of many."""

from __future__ import annotations

from deltaloop.events.core.correlation import Recent


def test_least_recently_used_entry_is_evicted() -> None:
    recent = Recent[str, int](2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
