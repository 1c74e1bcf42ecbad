"""Bodies of requests: all together are bounded, and small ones are free."""

from __future__ import annotations

from deltaloop.apiserver.core.wire.incoming import FREE, Incoming


def test_bodies_share_a_bound_and_small_bodies_are_not_counted() -> None:
    incoming = Incoming(most=10)
    first, second = incoming.lease(), incoming.lease()
    assert first.grow(FREE + 4)
    assert first.grow(FREE + 8)
    assert not second.grow(FREE + 3)
    assert second.grow(FREE)
    assert incoming.held == 8
    first.end()
    first.end()
    assert second.grow(FREE + 10)
    second.end()
    assert incoming.held == 0
