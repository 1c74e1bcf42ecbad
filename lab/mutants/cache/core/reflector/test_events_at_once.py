"""Mistakes seeded into the code, each of which the tests of ``tests.cache.core.reflector.test_events_at_once`` must
find."""

from __future__ import annotations

import pytest
from tests.cache.core.reflector.test_events_at_once import events_at_once, events_one_by_one
from tests.cache.core.reflector.test_machine import bookmark
from tests.cache.objects import nameless, pod

from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from lab.mutants.edited import edited


@pytest.mark.parametrize(
    "edit",
    [
        ("version = obj.resource_version or version", "version = obj.resource_version"),
        ("if event.type is _BOOKMARK or not obj.name:", "if event.type is _BOOKMARK:"),
        ("if event.type is _BOOKMARK or not obj.name:", "if not obj.name:"),
        ("if self._initial_events_first:\n            return 0", "pass"),
        ("self._stream_events += changes", "pass"),
        ("self._counts.events += changes", "self._counts.events += 1"),
    ],
)
def test_seeded_bugs_of_batched_events_are_detected(edit: tuple[str, str]) -> None:
    wrong = edited("Wrong", ReflectorMachine, edit)
    added = WatchEvent(EventType.ADDED, pod("a", 11))
    unversioned = WatchEvent(EventType.MODIFIED, Resource.from_dict({"metadata": {"name": "a"}}))
    odd = WatchEvent(EventType.ADDED, nameless(13))
    named = WatchEvent(EventType.BOOKMARK, pod("a", 14))
    histories = [[added], [added, named], [added, unversioned], [added, odd], [added, bookmark(14)]]
    assert any(
        events_at_once(wrong, sent, version) != events_one_by_one(ReflectorMachine, sent, version)
        for sent in histories
        for version in ("0", "10")
    )
