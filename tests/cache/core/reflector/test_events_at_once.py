"""Events that came together: what a reflector takes at once is what it takes one by one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.states import ReflectorPhase
from tests.cache.core.reflector.test_machine import PAGED, bookmark
from tests.cache.objects import nameless, pod

VERSIONS = st.integers(11, 20)
CHANGES = st.builds(
    WatchEvent,
    st.sampled_from([EventType.ADDED, EventType.MODIFIED, EventType.DELETED]),
    st.builds(pod, st.sampled_from(["a", "b"]), VERSIONS),
)
ODD = st.builds(WatchEvent, st.just(EventType.ADDED), st.builds(nameless, VERSIONS))
SENT = st.lists(st.one_of(CHANGES, st.builds(bookmark, VERSIONS), ODD), max_size=6)


def events_at_once(kind: type[ReflectorMachine], sent: list[WatchEvent], version: str) -> list[object]:
    """Feed a stream to a machine that takes as many events at once as it can; return what it has seen then."""
    machine = kind(PAGED)
    machine.resource_version = version
    machine.phase, machine._watch = ReflectorPhase.CONNECTING, None
    machine.ask(0.0, random=0.0)
    machine.watch_opened(0.0)
    verdicts: list[object] = []
    while len(verdicts) < len(sent):
        left = sent[len(verdicts) :]
        taken = machine.watch_events(left, 0.2)
        verdicts += ["apply"] * taken or [machine.watch_event(left[0], 0.2)]
    return [verdicts, machine.statistics(), machine.watch_ended(0.5, random=0.0) is None]


def events_one_by_one(kind: type[ReflectorMachine], sent: list[WatchEvent], version: str) -> list[object]:
    class OneByOne(kind):  # type: ignore[misc, valid-type]  # of a final class
        def watch_events(self, events: Sequence[WatchEvent], now: float) -> int:
            return 0

    return events_at_once(OneByOne, sent, version)


@given(sent=SENT, version=st.sampled_from(["0", "10"]))
def test_batch_of_events_equals_single_events(sent: list[WatchEvent], version: str) -> None:
    assert events_at_once(ReflectorMachine, sent, version) == events_one_by_one(ReflectorMachine, sent, version)


def test_batch_ends_at_bookmark_or_nameless_object() -> None:
    machine = ReflectorMachine(PAGED)
    machine.resource_version, machine.phase = "10", ReflectorPhase.CONNECTING
    machine.ask(0.0, random=0.0)
    machine.watch_opened(0.0)
    changes = [WatchEvent(EventType.MODIFIED, pod(name, version)) for name, version in (("a", 12), ("b", 11))]
    unversioned = WatchEvent(EventType.ADDED, Resource.from_dict({"metadata": {"name": "c"}}))
    assert machine.watch_events([*changes, unversioned, bookmark(20), *changes], 0.2) == 3
    assert (machine.resource_version, machine.statistics().events) == ("11", 3)
    assert machine.watch_events([unversioned], 0.3) == 1
    assert machine.resource_version == "11"
    assert machine.watch_events([bookmark(20)], 0.4) == 0
    assert machine.watch_events([WatchEvent(EventType.ADDED, nameless(30))], 0.4) == 0
    assert machine.resource_version == "11"
    assert machine.watch_ended(0.5, random=0.0) is None
