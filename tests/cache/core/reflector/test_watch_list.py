"""Streamed lists and probes, decision by decision."""

from __future__ import annotations

import pytest

from deltaloop._internal.pacing import Wait
from deltaloop.api.list_options import ListOptions
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector.effects import CompleteList, ListPage, OpenWatch, OpenWatchList, Probe
from deltaloop.cache.core.reflector.errors import ServerRestoredError, WatchListEndedError, WatchListStalledError
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import api_error, broken, expired, initial_events_end, refused, too_large
from tests.cache.objects import nameless, pod


def added(name: str, version: int) -> WatchEvent:
    return WatchEvent(EventType.ADDED, pod(name, version))


def receiving(now: float = 0.0) -> ReflectorMachine:
    machine = ReflectorMachine()
    assert isinstance(machine.ask(now, random=0.0), OpenWatchList)
    machine.watch_list_opened(now)
    return machine


def look_at(machine: ReflectorMachine) -> float | None:
    return machine.look_at


def streaming(version: int = 20, now: float = 0.0) -> ReflectorMachine:
    machine = receiving(now)
    assert isinstance(machine.initial_event(initial_events_end(version), now), CompleteList)
    return machine


def test_initial_state_is_requested_as_streamed_list() -> None:
    machine = ReflectorMachine()
    effect = machine.ask(0.0, random=0.5)
    assert effect == OpenWatchList(
        ListOptions(
            resource_version_match="NotOlderThan",
            send_initial_events=True,
            allow_watch_bookmarks=True,
            timeout_seconds=450,
        )
    )
    assert machine.ask(100.0, random=0.9) == effect, "the same until something is fed"


def test_objects_of_list_are_collected_at_once() -> None:
    machine = receiving()
    assert machine.initial_events([added("a", 1), added("b", 2), WatchEvent(EventType.MODIFIED, pod("a", 3))], 0.0) == 2
    assert machine.initial_events([added("a", 4)], 0.0) == 0, "a change"
    assert machine.initial_events([WatchEvent(EventType.ADDED, nameless(5))], 0.0) == 0
    machine.looked("6", 0.0)
    assert machine.initial_events([added("c", 6)], 0.0) == 0, "the object can come after the list"
    assert machine.initial_event(initial_events_end(7), 1.0) == CompleteList((pod("a", 1), pod("b", 2)), "7", 0)


def test_initial_events_are_collected_until_end_bookmark() -> None:
    machine = receiving()
    assert machine.initial_event(added("a", 1), 0.0) == "hold"
    assert machine.initial_event(added("b", 2), 0.0) == "hold"
    assert machine.initial_event(WatchEvent(EventType.MODIFIED, pod("a", 3)), 0.0) == "hold"
    assert machine.initial_event(WatchEvent(EventType.DELETED, pod("b", 4)), 0.0) == "hold"
    assert machine.initial_event(WatchEvent(EventType.ADDED, nameless(5)), 0.0) == "skip"
    assert machine.initial_event(WatchEvent(EventType.BOOKMARK, nameless(6)), 0.0) == "bookmark"
    assert machine.initial_event(initial_events_end(6, says="false"), 0.0) == "bookmark"
    assert machine.resource_version == "", "nothing counts before it is whole"
    assert machine.initial_event(initial_events_end(7), 1.0) == CompleteList((pod("a", 3),), "7", 1)
    assert (machine.phase, machine.resource_version) == (ReflectorPhase.STREAMING, "7")
    seen = machine.statistics()
    assert (seen.lists, seen.streamed_lists, seen.streams, seen.list_requests, seen.skipped) == (1, 1, 1, 0, 1)
    assert seen.last_confirmed_at == 1.0
    assert machine.watch_event(added("c", 8), 2.0) == "apply"
    assert machine.watch_ended(400.0, random=0.0) is None


def test_streamed_list_deadline_moves_with_progress() -> None:
    machine = receiving(now=100.0)
    assert machine.give_up_at == 130.0
    for minute in range(60):
        machine.initial_event(added(f"p{minute}", minute + 1), 125.0 + 25.0 * minute)
        assert machine.give_up_at == 155.0 + 25.0 * minute


def test_stalled_streamed_list_disables_streaming_for_half_an_hour() -> None:
    machine = receiving()
    reaction = machine.watch_list_failed(WatchListStalledError("stalled"), 30.0, random=0.0)
    assert (reaction.operation, reaction.recovery, reaction.delay) == (
        Operation.WATCH_LIST,
        Recovery.LIST_IN_PAGES_NOW,
        0.0,
    )
    assert machine.ask(30.0, random=0.0) == ListPage(ListOptions(resource_version="0", limit=500))
    machine.listed(ResourceList((), "20"), 31.0, random=0.0)
    machine.ask(31.0, random=0.0)
    machine.watch_failed(expired(), 1700.0, random=0.0)
    assert isinstance(machine.ask(1800.0, random=0.0), ListPage)
    machine.listed(ResourceList((), "20"), 1800.0, random=0.0)
    machine.ask(1800.0, random=0.0)
    machine.watch_failed(expired(), 1801.0, random=0.0)
    assert isinstance(machine.ask(1850.0, random=0.0), OpenWatchList)


@pytest.mark.parametrize("code", [400, 405, 406, 415, 422])
def test_unsupported_streamed_list_is_not_requested_for_half_an_hour(code: int) -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    reaction = machine.watch_list_failed(api_error(code), 0.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_IN_PAGES_NOW
    assert isinstance(machine.ask(0.0, random=0.0), ListPage)
    machine.listed(ResourceList((), "20"), 0.0, random=0.0)
    assert isinstance(machine.ask(0.0, random=0.0), OpenWatch)
    machine.watch_failed(expired(), 5.0, random=0.0)
    assert isinstance(machine.ask(50.0, random=0.0), ListPage)


@pytest.mark.parametrize("fault", [broken(), api_error(500), api_error(503), ValueError("a bug"), None])
def test_any_other_failure_costs_this_round_only(fault: Exception | None) -> None:
    machine = receiving()
    machine.initial_event(added("lost", 1), 0.0)
    if fault is None:
        reaction = machine.watch_list_ended(5.0, random=0.0)
        assert isinstance(reaction.error, WatchListEndedError)
        assert "after 1 objects" in str(reaction.error)
    else:
        reaction = machine.watch_list_failed(fault, 5.0, random=0.0)
    assert (reaction.recovery, reaction.delay) == (Recovery.LIST_IN_PAGES_NOW, 0.0)
    assert isinstance(machine.ask(5.0, random=0.0), ListPage)
    assert machine.listed(ResourceList((pod("a", 2),), "20"), 6.0, random=0.0) == CompleteList((pod("a", 2),), "20", 0)
    machine.ask(6.0, random=0.0)
    machine.watch_failed(expired(), 10.0, random=0.0)
    again = machine.ask(50.0, random=0.0)
    assert isinstance(again, OpenWatchList)
    assert again.options.resource_version == "20", "time never goes back"


@pytest.mark.parametrize("fault", [refused(), api_error(429, retry_after=7.0)])
def test_streamed_list_is_retried_later_when_server_is_busy_or_unreachable(fault: Exception) -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    reaction = machine.watch_list_failed(fault, 0.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_LATER
    assert reaction.delay >= 0.8
    assert isinstance(machine.ask(0.0, random=0.0), Wait)
    assert isinstance(machine.ask(60.0, random=0.0), OpenWatchList)


@pytest.mark.parametrize("fault", [expired(), too_large()])
def test_rejected_version_of_streamed_list_is_followed_by_newest_state(fault: Exception) -> None:
    machine = streaming(version=20)
    machine.watch_failed(expired(), 10.0, random=0.0)
    effect = machine.ask(50.0, random=0.0)
    assert isinstance(effect, OpenWatchList)
    assert effect.options.resource_version == "20"
    reaction = machine.watch_list_failed(fault, 50.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_NEWEST_NOW
    effect = machine.ask(50.0, random=0.0)
    assert isinstance(effect, OpenWatchList)
    assert effect.options.resource_version == ""
    reaction = machine.watch_list_failed(fault, 50.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_IN_PAGES_NOW, "never twice at once"
    assert machine.ask(50.0, random=0.0) == ListPage(ListOptions(limit=500))


@pytest.mark.parametrize("fault", [expired(), too_large()])
def test_streamed_list_of_newest_state_that_is_rejected_falls_back_to_pages(fault: Exception) -> None:
    machine = streaming(version=20)
    machine.watch_failed(expired(), 10.0, random=0.0)
    machine.ask(50.0, random=0.0)
    assert machine.watch_list_failed(fault, 50.0, random=0.0).recovery is Recovery.LIST_NEWEST_NOW
    assert isinstance(machine.ask(50.0, random=0.0), OpenWatchList)
    machine.watch_list_opened(50.0)
    reaction = machine.watch_list_failed(fault, 50.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_IN_PAGES_NOW, "never twice at once"


def test_forbidden_streamed_list_and_forbidden_list_wait() -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    machine.watch_list_failed(api_error(403), 0.0, random=0.0)
    machine.ask(0.0, random=0.0)
    reaction = machine.list_failed(api_error(403), 0.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_LATER


def test_streamed_list_can_be_disabled() -> None:
    machine = ReflectorMachine(ReflectorOptions(watch_list=False))
    assert isinstance(machine.ask(0.0, random=0.0), ListPage)


@pytest.mark.parametrize("wrong", [{"watch_list_timeout": 0.0}, {"watch_list_retry_after": -1.0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"ReflectorOptions\.watch_list"):
        ReflectorOptions(**wrong)  # type: ignore[arg-type]  # the fault under test


# Probes


def probing(now: float = 10.0) -> ReflectorMachine:
    machine = streaming(version=20)
    machine.watch_failed(broken(), now, random=0.0)
    assert machine.ask(now, random=0.0) == Probe(ListOptions(limit=1))
    assert machine.ask(now + 100, random=0.0) == Probe(ListOptions(limit=1))
    return machine


@pytest.mark.parametrize("version", ["20", "21", "", "not-a-number"])
def test_probe_with_same_or_later_version_resumes_watch(version: str) -> None:
    machine = probing()
    assert machine.probed(version, 10.0) is None
    effect = machine.ask(10.0, random=0.0)
    assert isinstance(effect, OpenWatch)
    assert effect.options.resource_version == "20"
    assert machine.statistics().probes == 1
    assert machine.statistics().last_byte_at == 10.0


def test_probe_with_lower_version_lists_again_immediately() -> None:
    machine = probing()
    reaction = machine.probed("19", 10.0)
    assert isinstance(reaction, Reaction)
    assert (reaction.operation, reaction.recovery, reaction.delay) == (Operation.PROBE, Recovery.LIST_NEWEST_NOW, 0.0)
    assert isinstance(reaction.error, ServerRestoredError)
    assert str(reaction.error) == "the server's resource version went back from 20 to 19"
    effect = machine.ask(10.0, random=0.0)
    assert isinstance(effect, OpenWatchList)
    assert effect.options.resource_version == ""


@pytest.mark.parametrize("fault", [expired(), too_large(), api_error(500), api_error(403), broken(), ValueError()])
def test_failed_probe_opens_watch(fault: Exception) -> None:
    machine = probing()
    reaction = machine.probe_failed(fault, 10.0, random=0.0)
    assert reaction.recovery is Recovery.WATCH_NOW
    assert isinstance(machine.ask(10.0, random=0.0), OpenWatch)


@pytest.mark.parametrize("fault", [refused(), api_error(429)])
def test_probe_of_unreachable_server_is_retried_after_delay(fault: Exception) -> None:
    machine = probing()
    reaction = machine.probe_failed(fault, 10.0, random=0.0)
    assert (reaction.recovery, reaction.delay) == (Recovery.WATCH_LATER, 0.8)
    assert isinstance(machine.ask(10.0, random=0.0), Wait)
    assert isinstance(machine.ask(10.8, random=0.0), Probe)


def test_clean_end_probes_at_most_once_a_minute() -> None:
    machine = streaming(version=20)
    machine.watch_ended(59.0, random=0.0)
    assert isinstance(machine.ask(59.0, random=0.0), OpenWatch)
    machine.watch_opened(59.0)
    machine.watch_event(added("a", 21), 59.5)
    machine.watch_ended(61.0, random=0.0)
    assert isinstance(machine.ask(61.0, random=0.0), Probe)
    machine.probed("21", 61.0)
    machine.ask(61.0, random=0.0)
    machine.watch_opened(61.0)
    machine.watch_event(added("a", 22), 62.5)
    machine.watch_ended(63.0, random=0.0)
    assert isinstance(machine.ask(63.0, random=0.0), OpenWatch)


def unproved(now: float = 30.0) -> ReflectorMachine:
    """Begin a watch after a clean end, soon after the last look at the server's version."""
    machine = streaming(version=20)
    machine.watch_ended(now, random=0.0)
    assert isinstance(machine.ask(now, random=0.0), OpenWatch)
    machine.watch_opened(now)
    return machine


def test_watch_without_probe_probes_one_minute_later() -> None:
    assert look_at(streaming()) is None
    machine = unproved(now=30.0)
    assert look_at(machine) == 90.0
    assert machine.looked("20", 90.0) is None
    assert (look_at(machine), machine.statistics().probes) == (None, 1)
    machine.watch_ended(100.0, random=0.0)
    assert isinstance(machine.ask(100.0, random=0.0), OpenWatch)
    machine.watch_opened(100.0)
    assert look_at(machine) == 160.0
    machine.look_failed()
    assert look_at(machine) is None


@pytest.mark.parametrize("says", ["", "19"])
def test_lower_server_version_is_found_in_open_stream(says: str) -> None:
    machine = unproved()
    if says:  # it sends what its lower counter gave
        machine.watch_event(WatchEvent(EventType.BOOKMARK, nameless(18)), 40.0)
        machine.watch_event(added("a", 19), 41.0)
    reaction = machine.looked("19", 90.0)
    assert isinstance(reaction, Reaction)
    assert (reaction.operation, reaction.recovery, reaction.delay) == (Operation.PROBE, Recovery.LIST_NEWEST_NOW, 0.0)
    assert str(reaction.error) == "the server's resource version went back from 20 to 19"
    effect = machine.ask(90.0, random=0.0)
    assert isinstance(effect, OpenWatchList)
    assert effect.options.resource_version == ""
    machine.watch_list_opened(90.0)
    machine.initial_event(initial_events_end(19), 90.0)
    machine.watch_failed(broken(), 100.0, random=0.0)
    machine.ask(100.0, random=0.0)
    assert machine.probed("19", 100.0) is None, "the version of before is forgotten"


def test_lower_versions_in_watch_do_not_hide_restore() -> None:
    machine = unproved(now=30.0)
    machine.watch_event(added("a", 18), 31.0)
    machine.watch_ended(35.0, random=0.0)
    assert isinstance(machine.ask(35.0, random=0.0), OpenWatch)
    machine.watch_opened(35.0)
    machine.watch_failed(broken(), 40.0, random=0.0)
    machine.ask(40.0, random=0.0)
    assert isinstance(machine.probed("19", 40.0), Reaction)


@pytest.mark.parametrize("fault", [api_error(500), broken()])
def test_failed_probe_is_repeated_in_open_stream(fault: Exception) -> None:
    machine = probing(now=10.0)
    machine.probe_failed(fault, 10.0, random=0.0)
    machine.ask(10.0, random=0.0)
    machine.watch_opened(11.0)
    assert look_at(machine) == 71.0


def test_open_stream_is_not_probed_without_need() -> None:
    machine = ReflectorMachine(ReflectorOptions(detect_restore=False))
    machine.ask(0.0, random=0.0)
    machine.watch_list_opened(0.0)
    assert look_at(machine) is None
    machine = probing(now=10.0)
    machine.probed("20", 10.0)
    machine.ask(10.0, random=0.0)
    machine.watch_opened(10.0)
    assert look_at(machine) is None


def test_busy_server_is_not_probed() -> None:
    machine = streaming(version=20)
    machine.watch_failed(api_error(429), 10.0, random=0.0)
    assert isinstance(machine.ask(60.0, random=0.0), OpenWatch)


def test_incomparable_versions_are_not_probed() -> None:
    machine = receiving()
    machine.initial_event(initial_events_end("abc"), 0.0)
    machine.watch_failed(broken(), 10.0, random=0.0)
    assert isinstance(machine.ask(10.0, random=0.0), OpenWatch)


def test_events_outside_streamed_list_do_not_move_deadline() -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    machine.watch_list_opened(5.0)
    assert machine.give_up_at == 35.0
    machine.initial_event(WatchEvent(EventType.MODIFIED, pod("a", 11)), 10.0)
    machine.initial_event(added("b", 12), 20.0)
    assert machine.give_up_at == 35.0, "a change comes behind the list, even of an object that is not in it"
    assert machine.statistics().last_byte_at == 20.0


def test_events_of_earlier_stream_do_not_count_for_short_watch() -> None:
    machine = streaming()
    machine.watch_event(added("a", 21), 1.0)
    assert machine.watch_ended(30.0, random=0.0) is None
    assert isinstance(machine.ask(30.0, random=0.0), OpenWatch)
    machine.watch_opened(30.0)
    reaction = machine.watch_ended(30.1, random=0.0)
    assert reaction is not None
    assert (reaction.operation, reaction.recovery) == (Operation.SHORT_STREAM, Recovery.LIST_LATER)


def test_version_advances_with_events_after_streamed_list() -> None:
    machine = ReflectorMachine(ReflectorOptions(detect_restore=False))
    machine.ask(0.0, random=0.0)
    machine.watch_list_failed(api_error(500), 0.0, random=0.0)
    assert isinstance(machine.ask(0.0, random=0.0), ListPage)
    machine.listed(ResourceList((), ""), 0.0, random=0.0)
    assert isinstance(machine.ask(0.0, random=0.0), OpenWatch)
    machine.watch_opened(0.0)
    machine.watch_failed(api_error(410, "Expired"), 5.0, random=0.0)
    assert isinstance(machine.ask(60.0, random=0.0), OpenWatchList)
    machine.watch_list_opened(60.0)
    assert isinstance(machine.initial_event(initial_events_end(20), 60.0), CompleteList)
    machine.watch_event(added("a", 21), 61.0)
    assert machine.resource_version == "21"


def test_statistics_count_each_request_and_event_once() -> None:
    machine = ReflectorMachine()
    new = machine.statistics()
    assert (new.pending_bytes, new.lists, new.errors, new.last_byte_at, new.last_error) == (0, 0, 0, None, None)
    machine.ask(1.0, random=0.0)
    machine.watch_list_failed(api_error(500), 1.0, random=0.0)
    machine.ask(1.0, random=0.0)
    machine.listed(ResourceList((pod("a", 11), nameless()), "11"), 2.0, random=0.0)
    assert machine.statistics().last_byte_at == 2.0
    machine.ask(3.0, random=0.0)
    machine.watch_opened(3.0)
    machine.watch_event(added("b", 12), 4.0)
    machine.watch_event(WatchEvent(EventType.MODIFIED, nameless(13)), 5.0)
    machine.watch_event(WatchEvent(EventType.BOOKMARK, nameless(14)), 6.0)
    machine.watch_failed(expired(), 50.0, random=0.0)
    machine.ask(100.0, random=0.0)
    machine.watch_list_opened(100.0)
    machine.initial_event(added("a", 11), 101.0)
    machine.initial_event(initial_events_end(20), 102.0)
    seen = machine.statistics()
    assert (seen.list_requests, seen.lists, seen.streamed_lists, seen.watch_requests, seen.streams) == (1, 2, 1, 3, 2)
    assert (seen.probes, seen.events, seen.bookmarks, seen.skipped, seen.errors) == (0, 1, 2, 2, 2)
    assert (seen.last_event_at, seen.last_bookmark_at, seen.last_byte_at) == (4.0, 102.0, 102.0)
    assert (seen.resource_version, seen.last_confirmed_at, seen.last_error) == ("20", 102.0, None)


def test_broken_streamed_list_leaves_no_objects_to_next_list() -> None:
    machine = receiving()
    machine.initial_event(added("gone", 11), 1.0)
    machine.watch_list_failed(api_error(429), 2.0, random=0.0)
    assert isinstance(machine.ask(60.0, random=0.0), OpenWatchList)
    machine.watch_list_opened(60.0)
    machine.initial_event(added("there", 12), 61.0)
    listed = machine.initial_event(initial_events_end(20), 62.0)
    assert isinstance(listed, CompleteList)
    assert [obj.name for obj in listed.items] == ["there"]


def test_effect_is_repeated_until_next_input() -> None:
    machine = ReflectorMachine(ReflectorOptions(watch_list=False))
    machine.ask(0.0, random=0.0)
    machine.listed(ResourceList((), "20"), 0.0, random=0.0)
    machine.ask(0.0, random=0.0)
    machine.watch_failed(expired(), 5.0, random=0.0)
    machine.ask(10.0, random=0.0)
    machine.listed(ResourceList((), "30"), 10.0, random=0.0)
    effect = machine.ask(71.0, random=0.0)
    assert isinstance(effect, OpenWatch), (
        "the list has just shown the server's version, however long it took to store it"
    )
    assert machine.ask(500.0, random=0.5) == effect


def test_paged_list_is_completed_before_streamed_list_is_tried_again() -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    machine.watch_list_failed(api_error(400), 0.0, random=0.0)
    machine.ask(0.0, random=0.0)
    machine.listed(ResourceList((), "20"), 0.0, random=0.0)
    machine.ask(0.0, random=0.0)
    machine.watch_failed(expired(), 1700.0, random=0.0)
    assert isinstance(machine.ask(1790.0, random=0.0), ListPage)
    assert machine.listed(ResourceList((pod("a", 1),), "20", "next"), 1790.0, random=0.0) is None
    assert machine.ask(1900.0, random=0.0) == ListPage(ListOptions(continue_="next"))


def test_streamed_list_deadline_starts_with_request() -> None:
    machine = ReflectorMachine()
    machine.ask(100.0, random=0.0)
    assert machine.give_up_at == 130.0, "a server that does not even answer is given up, too"


def test_short_stream_with_streamed_list_is_not_error() -> None:
    machine = streaming(now=100.0)
    assert machine.watch_ended(100.5, random=0.0) is None
    assert isinstance(machine.ask(100.5, random=0.0), OpenWatch)
    machine = streaming(now=100.0)
    machine.watch_event(added("a", 21), 100.1)
    assert machine.watch_ended(100.5, random=0.0) is None


def test_stream_that_ends_soon_after_streamed_list_is_short() -> None:
    machine = streaming(now=100.0)
    assert machine.watch_ended(100.5, random=0.0) is None
    machine.ask(100.5, random=0.0)
    machine.watch_opened(100.5)
    machine.watch_event(added("a", 21), 100.6)
    assert machine.watch_ended(100.7, random=0.0) is None
    assert isinstance(machine.ask(100.7, random=0.0), Wait), "only the first one is free"


def test_first_rejected_streamed_list_falls_back_to_pages() -> None:
    machine = ReflectorMachine()
    machine.ask(0.0, random=0.0)
    reaction = machine.watch_list_failed(expired(), 0.0, random=0.0)
    assert reaction.recovery is Recovery.LIST_IN_PAGES_NOW, "the newest state was asked for already"


def test_streamed_list_contains_only_objects_of_its_stream() -> None:
    machine = receiving()
    machine.initial_event(added("before", 11), 0.0)
    machine.initial_event(initial_events_end(20), 0.0)
    machine.watch_failed(expired(), 10.0, random=0.0)
    machine.ask(60.0, random=0.0)
    machine.watch_list_opened(60.0)
    machine.initial_event(added("after", 21), 60.0)
    assert machine.initial_event(initial_events_end(30), 60.0) == CompleteList((pod("after", 21),), "30", 0)


@pytest.mark.parametrize(("quiet", "effect"), [(59.0, OpenWatch), (60.0, Probe)])
@pytest.mark.parametrize("options", [ReflectorOptions(), ReflectorOptions(watch_list=False)])
def test_list_counts_as_probe_of_server_version(
    quiet: float, effect: type[OpenWatch | Probe], options: ReflectorOptions
) -> None:
    machine = ReflectorMachine(options)
    machine.ask(100.0, random=0.0)
    if options.watch_list:
        machine.watch_list_opened(100.0)
        machine.initial_event(initial_events_end(20), 100.0)
    else:
        machine.listed(ResourceList((), "20"), 100.0, random=0.0)
        machine.ask(100.0, random=0.0)
        machine.watch_opened(100.0)
    machine.watch_ended(100.0 + quiet, random=0.0)
    assert isinstance(machine.ask(100.0 + quiet, random=0.0), effect)


def test_failed_probes_are_counted_as_requests() -> None:
    machine = probing()
    asked = machine.statistics()
    machine.probe_failed(api_error(500), 10.0, random=0.0)
    machine.ask(10.0, random=0.0)
    machine.watch_failed(api_error(500), 10.0, random=0.0)
    seen = machine.statistics()
    assert (seen.probes - asked.probes, seen.watch_requests - asked.watch_requests) == (1, 1)
    assert (seen.streams, seen.errors) == (asked.streams, asked.errors + 2)


def test_statistics_have_time_of_last_byte() -> None:
    machine = ReflectorMachine(ReflectorOptions(watch_list=False))
    machine.ask(1.0, random=0.0)
    machine.listed(ResourceList((), "20"), 2.0, random=0.0)
    machine.ask(3.0, random=0.0)
    machine.watch_opened(4.0)
    assert machine.statistics().last_byte_at == 4.0, "the headers of an answer count"
    machine.watch_event(WatchEvent(EventType.BOOKMARK, nameless(21)), 5.0)
    seen = machine.statistics()
    assert (seen.last_bookmark_at, seen.last_event_at, seen.last_byte_at) == (5.0, None, 5.0)
    machine.saw_bytes(8.0)
    machine.saw_bytes(7.0)
    assert machine.statistics().last_byte_at == 8.0
    seen = machine.statistics(last_byte_at=9.0, pending_bytes=3)
    assert (seen.last_byte_at, seen.pending_bytes) == (9.0, 3)


@pytest.mark.parametrize(
    "beyond",
    [
        [WatchEvent(EventType.BOOKMARK, nameless(11))],
        [WatchEvent(EventType.DELETED, pod("a", 11))],
        [added("a", 11), added("a", 12)],
    ],
)
def test_events_after_list_version_are_no_progress(beyond: list[WatchEvent]) -> None:
    machine = receiving()
    for time, event in enumerate(beyond, 12 - len(beyond)):
        machine.initial_event(event, float(time))
    machine.initial_event(added("b", 13), 20.0)
    assert machine.give_up_at == (30.0 if len(beyond) == 1 else 40.0)


def test_slow_streamed_list_is_probed_for_version_after_five_seconds() -> None:
    machine = receiving(now=100.0)
    assert look_at(machine) == 105.0
    machine.initial_event(added("a", 5), 101.0)
    assert machine.looked("10", 106.0) is None
    assert (look_at(machine), machine.statistics().probes) == (None, 1)
    machine.initial_event(added("b", 10), 120.0)
    assert machine.give_up_at == 150.0, "it was there when the list began, or soon after"
    machine.initial_event(added("c", 11), 130.0)
    machine.initial_event(added("d", 9), 140.0)
    assert machine.give_up_at == 150.0, "an object that was created later comes behind the list"


@pytest.mark.parametrize("event", [WatchEvent(EventType.ADDED, nameless(11)), added("c", 11)])
def test_new_objects_are_no_progress_of_streamed_list(event: WatchEvent) -> None:
    machine = receiving()
    machine.looked("10", 5.0)
    machine.initial_event(event, 9.0)
    assert machine.give_up_at == 30.0


@pytest.mark.parametrize("version", ["", "abc"])
def test_incomparable_version_does_not_bound_streamed_list(version: str) -> None:
    machine = receiving()
    machine.looked(version, 5.0)
    machine.initial_event(added("a", 11), 20.0)
    assert machine.give_up_at == 50.0


def test_version_bound_applies_to_one_streamed_list() -> None:
    machine = receiving()
    machine.looked("10", 5.0)
    machine.watch_list_failed(api_error(429), 6.0, random=0.0)
    machine.ask(60.0, random=0.0)
    machine.watch_list_opened(60.0)
    machine.initial_event(added("a", 11), 61.0)
    assert (machine.give_up_at, look_at(machine)) == (91.0, 65.0)


def test_failed_version_probe_is_not_repeated_in_same_stream() -> None:
    machine = receiving()
    machine.look_failed()
    assert (look_at(machine), machine.statistics().probes) == (None, 1)
    machine.initial_event(added("a", 11), 20.0)
    assert machine.give_up_at == 50.0


def test_rejected_list_updates_time_of_last_byte() -> None:
    machine = ReflectorMachine(ReflectorOptions(watch_list=False))
    machine.ask(1.0, random=0.0)
    machine.list_failed(broken(), 1.0, random=0.0)
    assert machine.statistics().last_byte_at is None
    machine.ask(5.0, random=0.0)
    machine.list_failed(api_error(500), 5.0, random=0.0)
    assert machine.statistics().last_byte_at == 5.0
