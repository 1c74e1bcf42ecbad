"""What a transport does about a try that broke off: every combination of what is known of it."""

from __future__ import annotations

import itertools

import pytest

from deltaloop.client.core.connection_failures import AfterBreak, Reuse, after_break


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_every_combination(method: str) -> None:
    for reused, tls, in_handshake, cut in itertools.product([False, True], repeat=4):
        found = after_break(method, reused=reused, tls=tls, in_handshake=in_handshake, cut=cut)
        if reused and method in ("GET", "HEAD"):
            assert found == AfterBreak(again=True), "reading twice does no harm"
            continue
        assert not found.again, "a write may have been carried out, and a new connection was alive"
        assert found.reload is (tls and in_handshake)
        assert found.suspect is (tls and cut)


def test_broken_reused_connection_disables_reuse_for_five_seconds() -> None:
    reuse = Reuse()
    assert reuse.begins_at <= 0.0
    reuse.failed(1.0)
    assert reuse.begins_at > 5.9
    assert reuse.begins_at <= 6.0
