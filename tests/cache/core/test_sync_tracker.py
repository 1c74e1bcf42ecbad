"""Counting the initial list at the end of its way."""

from __future__ import annotations

import pytest

from deltaloop.cache.core.notification_buffer import SingleFileTracker


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


def test_tracker_is_not_synced_while_source_is_not() -> None:
    tracker = SingleFileTracker(lambda: False)
    tracker.start()
    tracker.finished()
    assert not tracker.has_synced


def test_finishing_without_start_raises_error() -> None:
    with pytest.raises(RuntimeError):
        SingleFileTracker(lambda: True).finished()
