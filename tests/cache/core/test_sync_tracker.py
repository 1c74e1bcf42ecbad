"""Counting the initial list at the end of its way."""

from __future__ import annotations

import pytest

from deltaloop.cache.core.sync_tracker import SingleFileTracker


def test_synced_means_handed_out_and_delivered() -> None:
    done = [False]
    tracker = SingleFileTracker(lambda: done[0])
    assert not tracker.has_synced
    tracker.start()
    tracker.start()
    done[0] = True
    assert not tracker.has_synced
    tracker.finished()
    assert not tracker.has_synced
    tracker.finished()
    assert tracker.has_synced


def test_delivered_is_not_enough_while_more_may_come() -> None:
    tracker = SingleFileTracker(lambda: False)
    tracker.start()
    tracker.finished()
    assert not tracker.has_synced


def test_delivering_what_was_never_handed_out_is_a_bug() -> None:
    with pytest.raises(RuntimeError):
        SingleFileTracker(lambda: True).finished()
