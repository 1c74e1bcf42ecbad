"""A reflector's decisions, one by one. Times are exact; chance 0 makes every wait the shortest one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from deltaloop._internal.pacing import Wait
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.core.reflector.effects import CompleteList, ListPage, OpenWatch, Probe, Verdict
from deltaloop.cache.core.reflector.errors import RepeatedContinueError, VeryShortWatchError
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery, is_refusal
from deltaloop.cache.core.reflector.states import FEEDS, ReflectorPhase
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import api_error, broken, expired, refused, too_large
from tests.cache.objects import nameless, pod


def page(*names: str, version: str = "10", more: str = "") -> ResourceList[Resource]:
    return ResourceList(tuple(pod(name) for name in names), version, more)


def event(event_type: str, name: str, version: int | str) -> WatchEvent:
    return WatchEvent(EventType(event_type), pod(name, version))


def bookmark(version: int | str) -> WatchEvent:
    return WatchEvent(EventType.BOOKMARK, nameless(version))


PAGED = ReflectorOptions(watch_list=False, detect_restore=False)


class Driver:
    """Feeds one machine, at the time ``now``."""

    def __init__(self, options: ReflectorOptions | None = None) -> None:
        self.machine = ReflectorMachine(options or PAGED)
        self.now = 0.0

    def list_options(self) -> ListOptions:
        effect = self.machine.ask(self.now, random=0.0)
        assert isinstance(effect, ListPage), effect
        return effect.options

    def watch_options(self, random: float = 0.0) -> ListOptions:
        effect = self.machine.ask(self.now, random=random)
        assert isinstance(effect, OpenWatch), effect
        return effect.options

    def wait(self) -> float:
        """Wait as asked; return for how long."""
        effect = self.machine.ask(self.now, random=0.0)
        assert isinstance(effect, Wait), effect
        delay = effect.until - self.now
        self.now = effect.until
        return delay

    def listed(self, answer: ResourceList[Resource]) -> CompleteList | Reaction | None:
        self.list_options()
        return self.machine.listed(answer, self.now, random=0.0)

    def list_failed(self, error: BaseException) -> Reaction:
        self.list_options()
        return self.machine.list_failed(error, self.now, random=0.0)

    def watch_refused(self, error: BaseException) -> Reaction:
        self.watch_options()
        return self.machine.watch_failed(error, self.now, random=0.0)

    def open(self, *, seconds: float = 0.0) -> None:
        self.watch_options()
        self.machine.watch_opened(self.now)
        self.now += seconds

    def stream_failed(self, error: BaseException) -> Reaction:
        return self.machine.watch_failed(error, self.now, random=0.0)

    def ended(self) -> Reaction | None:
        return self.machine.watch_ended(self.now, random=0.0)

    def event(self, sent: WatchEvent) -> Verdict:
        return self.machine.watch_event(sent, self.now)


def streaming(*, seconds: float = 5.0, options: ReflectorOptions | None = None) -> Driver:
    """A reflector whose watch from version 10 is open since some seconds."""
    driver = Driver(options)
    assert isinstance(driver.listed(page("a")), CompleteList)
    driver.open(seconds=seconds)
    return driver


# Lists: versions and pages


def test_first_list_requests_version_zero_in_pages() -> None:
    options = Driver().list_options()
    assert options == ListOptions(resource_version="0", limit=500)


def test_watch_starts_at_version_of_list() -> None:
    driver = Driver()
    listed = driver.listed(page("a", "b", version="10"))
    assert isinstance(listed, CompleteList)
    assert ([item.name for item in listed.items], listed.resource_version) == (["a", "b"], "10")
    assert driver.watch_options(random=0.0) == ListOptions(
        resource_version="10", allow_watch_bookmarks=True, timeout_seconds=300
    )


@pytest.mark.parametrize(
    ("shortest", "random", "seconds"), [(300.0, 0.0, 300), (300.0, 0.999, 599), (1.0, 0.5, 450), (1800.0, 0.5, 2700)]
)
def test_watch_timeouts_are_spread(shortest: float, random: float, seconds: int) -> None:
    driver = Driver(ReflectorOptions(min_watch_timeout=shortest, watch_list=False, detect_restore=False))
    driver.listed(page())
    assert driver.watch_options(random).timeout_seconds == seconds
    assert driver.watch_options(0.1).timeout_seconds == seconds, "asking again draws nothing new"


def test_later_lists_request_last_version_without_pages() -> None:
    driver = streaming()
    driver.event(event("MODIFIED", "a", 17))
    driver.stream_failed(api_error(500))
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="17")


def test_later_pages_are_requested_by_token_only() -> None:
    driver = Driver()
    assert driver.listed(page("a", version="10", more="next")) is None
    assert driver.list_options() == ListOptions(limit=500, continue_="next")
    assert driver.listed(page("b", version="11", more="last")) is None
    listed = driver.listed(page("c", version="12"))
    assert isinstance(listed, CompleteList)
    assert [item.name for item in listed.items] == ["a", "b", "c"]
    assert listed.resource_version == "10", "the version of the first page is the one that all pages have"


def test_server_that_pages_version_zero_gets_paged_lists() -> None:
    driver = Driver()
    driver.listed(page("a", more="next"))
    driver.listed(page("b"))
    driver.open(seconds=5)
    driver.stream_failed(api_error(500))
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="10", limit=500)


def test_server_that_pages_newest_state_gets_unpaged_list_of_known_version() -> None:
    driver = Driver()
    driver.list_failed(expired())
    driver.listed(page("a", more="next"))
    driver.listed(page("b"))
    driver.open(seconds=5)
    driver.stream_failed(expired())
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="10", limit=0)


def test_an_explicit_page_size_pages_real_versions_too() -> None:
    driver = streaming(options=ReflectorOptions(page_size=4, watch_list=False, detect_restore=False))
    driver.stream_failed(api_error(500))
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="10", limit=4)


@pytest.mark.parametrize("error", [expired(), api_error(410, "Gone"), too_large()])
def test_rejected_version_is_followed_by_immediate_list_of_newest_state(error: Exception) -> None:
    driver = streaming()
    driver.stream_failed(expired())
    driver.wait()
    assert driver.list_options().resource_version == "10"
    reaction = driver.list_failed(error)
    assert (reaction.recovery, reaction.delay) == (Recovery.LIST_NEWEST_NOW, 0.0)
    assert driver.list_options() == ListOptions(resource_version="", limit=500)


def test_newest_state_is_requested_until_list_succeeds() -> None:
    driver = streaming()
    driver.stream_failed(expired())
    driver.wait()
    driver.list_failed(expired())
    assert driver.list_failed(api_error(503)).recovery is Recovery.LIST_LATER
    driver.wait()
    assert driver.list_options().resource_version == ""
    driver.listed(page(version="40"))
    driver.open(seconds=5)
    driver.stream_failed(expired())
    driver.wait()
    assert driver.list_options().resource_version == "40"


def test_second_expired_list_in_a_row_waits() -> None:
    driver = Driver()
    assert driver.list_failed(expired()).recovery is Recovery.LIST_NEWEST_NOW
    assert driver.list_failed(expired()).recovery is Recovery.LIST_LATER
    assert driver.wait() == 0.8


def test_expired_page_is_followed_by_immediate_full_list() -> None:
    driver = streaming(options=ReflectorOptions(page_size=1, watch_list=False, detect_restore=False))
    driver.stream_failed(api_error(500))
    driver.wait()
    driver.listed(page("a", more="next"))
    reaction = driver.list_failed(expired())
    assert (reaction.operation, reaction.recovery) == (Operation.LATER_PAGE, Recovery.LIST_IN_FULL_NOW)
    assert driver.list_options() == ListOptions(resource_version="10", limit=0)
    listed = driver.listed(page("b", version="30"))
    assert isinstance(listed, CompleteList)
    assert [item.name for item in listed.items] == ["b"], "the pages before are no part of it"


def test_later_page_with_too_large_version_is_followed_by_list_of_newest_state() -> None:
    driver = streaming(options=ReflectorOptions(page_size=1, watch_list=False, detect_restore=False))
    driver.stream_failed(api_error(500))
    driver.wait()
    driver.listed(page("a", more="next"))
    reaction = driver.list_failed(too_large())
    assert (reaction.operation, reaction.recovery) == (Operation.LATER_PAGE, Recovery.LIST_NEWEST_NOW)
    assert driver.list_options() == ListOptions(resource_version="", limit=1)


def test_list_versions_after_expired_page_equal_upstream() -> None:
    driver = streaming()
    asked: list[str] = ["0"]
    driver.stream_failed(expired())
    driver.wait()
    asked.append(driver.list_options().resource_version)
    driver.list_failed(expired())
    asked.append(driver.list_options().resource_version)
    driver.listed(page(more="next", version="20"))
    driver.list_failed(expired())
    asked.append(driver.list_options().resource_version)
    driver.listed(page(version="20"))
    driver.open(seconds=5)
    driver.stream_failed(expired())
    driver.wait()
    asked.append(driver.list_options().resource_version)
    assert asked == ["0", "10", "", "", "20"]


def test_second_expired_page_waits() -> None:
    driver = Driver()
    driver.listed(page("a", more="n1"))
    driver.list_failed(expired())
    driver.listed(page("a", more="n2"))
    assert driver.list_failed(expired()).recovery is Recovery.LIST_LATER


@pytest.mark.parametrize(
    "error", [api_error(500), api_error(403), api_error(401), api_error(404), refused(), OSError(), TypeError()]
)
def test_other_list_errors_retry_same_list_after_delay(error: Exception) -> None:
    driver = Driver()
    reaction = driver.list_failed(error)
    assert (reaction.error, reaction.operation, reaction.recovery) == (error, Operation.LIST, Recovery.LIST_LATER)
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="0", limit=500)


def test_failed_later_page_restarts_list() -> None:
    driver = Driver()
    driver.listed(page("a", more="next"))
    driver.list_failed(api_error(500))
    driver.wait()
    assert driver.list_options() == ListOptions(resource_version="0", limit=500)
    listed = driver.listed(page("b"))
    assert isinstance(listed, CompleteList)
    assert len(listed.items) == 1


def test_page_with_its_own_token_is_error() -> None:
    driver = Driver()
    driver.listed(page("a", more="same"))
    reaction = driver.listed(page("a", more="same"))
    assert isinstance(reaction, Reaction)
    assert isinstance(reaction.error, RepeatedContinueError)
    assert driver.wait() == 0.8
    assert driver.machine.statistics().list_requests == 2


@pytest.mark.parametrize("bring", ["the same", "nothing", "one of two tokens"])
def test_list_with_endless_pages_fails(bring: str) -> None:
    driver = Driver()
    names = () if bring == "nothing" else ("a", "b")
    number, outcome = 0, None
    for number in range(1_000):
        more = f"token {number % 2 if bring == 'one of two tokens' else number}"
        outcome = driver.listed(page(*names, more=more))
        if outcome is not None:
            break
    assert isinstance(outcome, Reaction)
    assert isinstance(outcome.error, RepeatedContinueError)
    assert (number, outcome.recovery) == (2 if bring == "one of two tokens" else 199, Recovery.LIST_LATER)
    assert driver.wait() == 0.8


def test_list_with_hundreds_of_pages_is_complete() -> None:
    driver = Driver()
    for number in range(400):
        # Some pages are empty, as those of a server that selects behind the limit; never a hundred in a row.
        names = (f"p{number}",) if number % 90 == 0 or number < 100 else ()
        assert driver.listed(page(*names, more=f"token {number}")) is None
    listed = driver.listed(page("last"))
    assert isinstance(listed, CompleteList)
    assert len(listed.items) == 104


def test_items_without_name_are_skipped_and_counted() -> None:
    driver = Driver()
    listed = driver.listed(ResourceList((pod("a"), nameless()), "10"))
    assert isinstance(listed, CompleteList)
    assert ([item.name for item in listed.items], listed.skipped) == (["a"], 1)
    assert driver.machine.statistics().skipped == 1


# Watches: what comes


def test_events_and_bookmarks_advance_version() -> None:
    driver = streaming()
    assert driver.event(event("ADDED", "b", 11)) == "apply"
    assert driver.event(event("MODIFIED", "b", 12)) == "apply"
    assert driver.event(event("DELETED", "b", 13)) == "apply"
    assert driver.event(bookmark(40)) == "bookmark"
    assert driver.machine.resource_version == "40"
    seen = driver.machine.statistics()
    assert (seen.events, seen.bookmarks, seen.skipped) == (3, 1, 0)


def test_event_without_name_is_skipped_and_keeps_version() -> None:
    driver = streaming(seconds=0.5)
    assert driver.event(WatchEvent(EventType.MODIFIED, nameless(99))) == "skip"
    assert driver.machine.resource_version == "10"
    reaction = driver.ended()
    assert reaction is not None, "it does not count as something that came, either"
    assert isinstance(reaction.error, VeryShortWatchError)


def test_event_without_version_is_applied_and_keeps_version() -> None:
    driver = streaming()
    assert driver.event(event("MODIFIED", "a", "")) == "apply"
    assert driver.event(bookmark("")) == "bookmark"
    assert driver.machine.resource_version == "10"


@pytest.mark.parametrize("version", ["", "0"])
def test_stream_without_start_version_advances_version_later(version: str) -> None:
    driver = Driver()
    driver.listed(page(version=version))
    driver.open()
    driver.event(event("ADDED", "b", 30))
    driver.event(event("ADDED", "a", 20))
    assert driver.machine.resource_version == version
    driver.event(event("MODIFIED", "a", 31))
    assert driver.machine.resource_version == "31"
    driver.event(event("ADDED", "c", 32))
    assert driver.machine.resource_version == "32"


# Watches: how they end


def test_clean_end_is_followed_by_immediate_watch() -> None:
    driver = streaming(seconds=300.0)
    driver.event(bookmark(25))
    assert driver.ended() is None
    assert driver.watch_options().resource_version == "25"


def test_clean_end_after_one_quiet_second_is_followed_by_immediate_watch() -> None:
    driver = streaming(seconds=1.0)
    assert driver.ended() is None
    assert driver.watch_options().resource_version == "10"


def test_very_short_watch_without_events_is_error() -> None:
    driver = streaming(seconds=0.99)
    reaction = driver.ended()
    assert reaction is not None
    assert isinstance(reaction.error, VeryShortWatchError)
    assert (reaction.recovery, reaction.delay) == (Recovery.LIST_LATER, 0.8)
    driver.wait()
    assert driver.list_options().resource_version == "10"


def test_duration_of_short_watch_starts_with_request() -> None:
    driver = Driver()
    driver.listed(page())
    driver.watch_options()
    driver.now += 5  # a proxy that holds the headers back
    driver.machine.watch_opened(driver.now)
    assert driver.ended() is None


def test_only_first_short_stream_with_events_has_no_delay() -> None:
    driver = streaming(seconds=0.1)
    delays: list[float] = []
    for version in range(11, 15):
        driver.event(event("MODIFIED", "a", version))
        assert driver.ended() is None
        if isinstance(driver.machine.ask(driver.now, random=0.0), Wait):
            delays.append(driver.wait())
        driver.open(seconds=0.1)
    assert delays == pytest.approx([0.8, 1.6, 3.2])
    driver.now += 1.0
    driver.event(event("MODIFIED", "a", 20))
    driver.ended()
    driver.open(seconds=0.1)
    driver.event(event("MODIFIED", "a", 21))
    driver.ended()
    assert driver.watch_options().resource_version == "21", "a longer stream makes the next short one free"


def test_stream_of_one_second_is_not_short() -> None:
    driver = streaming(seconds=1.0)
    for version in range(11, 14):
        driver.event(event("MODIFIED", "a", version))
        assert driver.ended() is None
        driver.open(seconds=1.0)


@pytest.mark.parametrize("error", [refused(), api_error(429)])
def test_watch_rejected_temporarily_is_retried_without_list(error: Exception) -> None:
    driver = Driver()
    driver.listed(page())
    delays: list[float] = []
    for _ in range(8):
        assert driver.watch_refused(error).recovery is Recovery.WATCH_LATER
        delays.append(driver.wait())
    assert delays == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])
    assert driver.watch_options().resource_version == "10"
    assert driver.machine.statistics().list_requests == 1


@pytest.mark.parametrize("error", [api_error(500), api_error(403), broken(), expired(), MalformedObjectError()])
def test_watch_that_cannot_open_lists_again_after_delay(error: Exception) -> None:
    driver = Driver()
    driver.listed(page())
    reaction = driver.watch_refused(error)
    assert (reaction.operation, reaction.recovery, reaction.delay) == (Operation.CONNECT, Recovery.LIST_LATER, 0.8)
    driver.wait()
    assert driver.list_options().resource_version == "10"


def test_expired_stream_lists_last_version_again() -> None:
    driver = streaming()
    assert driver.stream_failed(expired()).recovery is Recovery.LIST_LATER
    driver.wait()
    assert driver.list_options().resource_version == "10"


def test_too_many_requests_in_stream_resumes_watch_after_delay() -> None:
    for seconds in (0.0, 5.0):
        driver = streaming(seconds=seconds)
        reaction = driver.stream_failed(api_error(429, retry_after=7.0))
        assert (reaction.recovery, reaction.delay) == (Recovery.WATCH_LATER, 7.0)
        driver.wait()
        assert driver.watch_options().resource_version == "10"


def test_retry_after_is_minimum_delay() -> None:
    driver = Driver()
    assert driver.list_failed(api_error(429, retry_after=20.0)).delay == 20.0
    driver.wait()
    assert driver.list_failed(api_error(429, retry_after=1.0)).delay == 1.6


@pytest.mark.parametrize("where", ["list", "watch", "stream", "streamed list", "probe"])
def test_retry_after_is_limited_to_one_minute(where: str) -> None:
    error = api_error(429, retry_after=86_400.0)
    if where == "list":
        reaction = Driver().list_failed(error)
    elif where == "streamed list":
        machine = ReflectorMachine()
        machine.ask(0.0, random=0.0)
        reaction = machine.watch_list_failed(error, 0.0, random=0.0)
    elif where == "stream":
        reaction = streaming().stream_failed(error)
    else:
        driver = streaming(options=ReflectorOptions(watch_list=False), seconds=100.0)
        driver.ended()
        if where == "probe":
            assert isinstance(driver.machine.ask(driver.now, random=0.0), Probe)
            reaction = driver.machine.probe_failed(error, driver.now, random=0.0)
        else:
            driver.machine.ask(driver.now, random=0.0)
            driver.machine.probed("10", driver.now)
            reaction = driver.watch_refused(error)
    assert reaction.delay == 60.0


def test_broken_stream_resumes_immediately() -> None:
    driver = streaming()
    driver.event(event("MODIFIED", "a", 12))
    assert driver.stream_failed(broken()).recovery is Recovery.WATCH_NOW
    assert driver.watch_options().resource_version == "12"


def test_stream_with_refused_connection_resumes_immediately() -> None:
    reaction = streaming().stream_failed(refused())
    assert (reaction.operation, reaction.recovery) == (Operation.STREAM, Recovery.WATCH_NOW)


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        *((api_error(code), True) for code in (401, 403, 404)),
        *((api_error(code), False) for code in (400, 402, 405, 410, 429, 500)),
        (OSError(), False),
        (None, False),
    ],
)
def test_is_refusal_recognizes_permanent_errors(error: Exception | None, refuses: bool) -> None:
    assert is_refusal(error) is refuses


def test_repeatedly_broken_streams_resume_after_delay() -> None:
    driver = streaming(seconds=0.1)
    decisions: list[Recovery] = []
    for version in range(11, 14):
        driver.event(event("MODIFIED", "a", version))
        reaction = driver.stream_failed(broken())
        decisions.append(reaction.recovery)
        if reaction.delay:
            driver.wait()
        driver.open(seconds=0.1)
    assert decisions == [Recovery.WATCH_NOW, Recovery.WATCH_LATER, Recovery.WATCH_LATER]


def test_stream_that_breaks_early_without_events_lists_again_after_delay() -> None:
    driver = streaming(seconds=0.1)
    reaction = driver.stream_failed(broken())
    assert (reaction.operation, reaction.recovery) == (Operation.SHORT_STREAM, Recovery.LIST_LATER)


def test_malformed_line_lists_again_after_delay() -> None:
    driver = streaming()
    reaction = driver.stream_failed(MalformedEventError("not an event"))
    assert (reaction.recovery, reaction.delay) == (Recovery.LIST_LATER, 0.8)


def test_an_internal_error_in_a_stream_lists_again_by_default() -> None:
    assert streaming().stream_failed(api_error(500)).recovery is Recovery.LIST_LATER


def test_internal_error_in_stream_resumes_watch_within_window() -> None:
    driver = streaming(options=ReflectorOptions(max_internal_error_retry=30.0, watch_list=False, detect_restore=False))
    began = driver.now
    decisions: list[Recovery] = []
    for at in (0.0, 10.0, 30.0, 30.5):
        driver.now = began + at
        decisions.append(driver.stream_failed(api_error(500)).recovery)
        driver.wait()
        if decisions[-1] is Recovery.LIST_LATER:
            driver.listed(page())
        driver.open()
    assert decisions == [Recovery.WATCH_LATER] * 3 + [Recovery.LIST_LATER]


@pytest.mark.parametrize("window", [0.5, 1.0])
def test_internal_error_window_can_be_short(window: float) -> None:
    driver = streaming(
        options=ReflectorOptions(max_internal_error_retry=window, watch_list=False, detect_restore=False)
    )
    assert driver.stream_failed(api_error(500)).recovery is Recovery.WATCH_LATER


def test_window_applies_only_to_internal_errors_of_stream() -> None:
    window = ReflectorOptions(max_internal_error_retry=30.0, watch_list=False, detect_restore=False)
    assert streaming(options=window).stream_failed(expired()).recovery is Recovery.LIST_LATER
    driver = Driver(window)
    driver.listed(page())
    reaction = driver.watch_refused(api_error(500))
    assert (reaction.operation, reaction.recovery) == (Operation.CONNECT, Recovery.LIST_LATER)


def test_window_does_not_restart_during_errors() -> None:
    driver = streaming(options=ReflectorOptions(max_internal_error_retry=100.0, watch_list=False, detect_restore=False))
    began = driver.now
    decisions: list[Recovery] = []
    for at in (0.0, 40.0, 80.0, 120.0):
        driver.now = began + at
        decisions.append(driver.stream_failed(api_error(500)).recovery)
        driver.now += 35.0
        if decisions[-1] is Recovery.WATCH_LATER:
            driver.open()
    assert decisions == [Recovery.WATCH_LATER] * 3 + [Recovery.LIST_LATER]


def test_window_restarts_after_a_quiet_minute() -> None:
    driver = streaming(options=ReflectorOptions(max_internal_error_retry=30.0, watch_list=False, detect_restore=False))
    assert driver.stream_failed(api_error(500)).recovery is Recovery.WATCH_LATER
    began = driver.now
    driver.wait()
    driver.open()
    driver.now = began + 60.0
    assert driver.stream_failed(api_error(500)).recovery is Recovery.WATCH_LATER


def test_store_error_lists_again_after_a_delay() -> None:
    driver = streaming()
    driver.event(event("MODIFIED", "a", 12))
    reaction = driver.machine.store_failed(ValueError("full"), driver.now, random=0.0)
    assert (reaction.operation, reaction.recovery, reaction.delay) == (Operation.STORE, Recovery.LIST_LATER, 0.8)
    driver.wait()
    driver.list_options()


# Pace and liveness


def test_lists_and_watches_share_one_backoff_with_jitter() -> None:
    machine = ReflectorMachine(PAGED)
    machine.ask(0.0, random=0.0)
    assert machine.list_failed(api_error(500), 0.0, random=0.5).delay == pytest.approx(1.2)
    machine.ask(1.3, random=0.0)
    machine.listed(page(), 1.3, random=0.0)
    machine.ask(1.3, random=0.0)
    assert machine.watch_failed(refused(), 1.3, random=0.5).delay == pytest.approx(2.4)


def test_backoff_restarts_after_two_quiet_minutes() -> None:
    driver = streaming()
    driver.stream_failed(expired())
    driver.wait()
    driver.listed(page())
    driver.open(seconds=119.0)
    assert driver.stream_failed(expired()).delay == 1.6
    driver.wait()
    driver.listed(page())
    driver.open(seconds=121.0)
    assert driver.stream_failed(expired()).delay == 0.8


def test_delay_grows_up_to_maximum_while_server_fails() -> None:
    driver = Driver()
    delays: list[float] = []
    for _ in range(20):
        driver.list_failed(api_error(500))
        delays.append(driver.wait())
    assert delays[6:] == pytest.approx([30.0] * 14), "client-go 0.36 would begin anew after two minutes"


def test_wait_effect_is_repeated_until_delay_has_passed() -> None:
    driver = Driver()
    driver.list_failed(api_error(500))
    for now in (0.0, 0.4, 0.79):
        assert driver.machine.ask(now, random=0.0) == Wait(0.8)
    assert isinstance(driver.machine.ask(0.8, random=0.0), ListPage)


def test_statistics_have_time_of_last_confirmed_state() -> None:
    driver = Driver()
    assert driver.machine.statistics().last_confirmed_at is None
    driver.list_failed(api_error(403, message="no"))
    driver.wait()
    driver.list_failed(api_error(500))
    seen = driver.machine.statistics()
    assert (seen.failing_since, type(seen.last_error).__name__, seen.errors) == (0.0, "InternalServerError", 2)
    driver.wait()
    driver.listed(page())
    seen = driver.machine.statistics()
    assert seen.last_confirmed_at == pytest.approx(2.4)
    assert (seen.failing_since, seen.last_error) == (None, None)
    driver.open(seconds=10)
    assert driver.machine.statistics().last_confirmed_at == pytest.approx(2.4), "an open stream confirms nothing yet"
    driver.event(bookmark(11))
    assert driver.machine.statistics().last_confirmed_at == pytest.approx(12.4)
    driver.now += 10
    driver.ended()
    assert driver.machine.statistics().last_confirmed_at == pytest.approx(22.4)


def test_inputs_of_other_phase_raise_error() -> None:
    now, listing, connecting = 0.0, Driver(), Driver()
    stream = streaming(options=ReflectorOptions(watch_list=False))
    connecting.listed(page())
    receiving = Driver(ReflectorOptions())
    receiving.machine.ask(now, random=0.0)
    receiving.machine.watch_list_opened(now)
    probing = streaming(options=ReflectorOptions(watch_list=False))
    probing.machine.watch_failed(broken(), 5.0, random=0.0)
    assert isinstance(probing.machine.ask(1000.0, random=0.0), Probe)
    machines = {
        ReflectorPhase.LISTING: listing,
        ReflectorPhase.CONNECTING: connecting,
        ReflectorPhase.STREAMING: stream,
        ReflectorPhase.RECEIVING: receiving,
        ReflectorPhase.PROBING: probing,
    }
    for phase, driver in machines.items():
        machine = driver.machine
        assert machine.phase is phase
        feeds: dict[str, Callable[[], object]] = {
            "listed": partial(machine.listed, page(), now, random=0.0),
            "list_failed": partial(machine.list_failed, OSError(), now, random=0.0),
            "watch_opened": partial(machine.watch_opened, now),
            "watch_event": partial(machine.watch_event, bookmark(1), now),
            "watch_events": partial(machine.watch_events, [bookmark(1)], now),
            "watch_ended": partial(machine.watch_ended, now, random=0.0),
            "watch_failed": partial(machine.watch_failed, OSError(), now, random=0.0),
            "watch_interrupted": machine.watch_interrupted,
            "store_failed": partial(machine.store_failed, OSError(), now, random=0.0),
            "watch_list_opened": partial(machine.watch_list_opened, now),
            "initial_event": partial(machine.initial_event, bookmark(1), now),
            "initial_events": partial(machine.initial_events, [bookmark(1)], now),
            "other_shard_event": partial(machine.other_shard_event, now),
            "watch_list_ended": partial(machine.watch_list_ended, now, random=0.0),
            "watch_list_failed": partial(machine.watch_list_failed, OSError(), now, random=0.0),
            "probed": partial(machine.probed, "1", now),
            "probe_failed": partial(machine.probe_failed, OSError(), now, random=0.0),
            "looked": partial(machine.looked, "1", now),
            "look_failed": machine.look_failed,
        }
        assert feeds.keys() == FEEDS.keys()
        for name, feed in feeds.items():
            if phase not in FEEDS[name]:
                with pytest.raises(RuntimeError, match=rf"{name} does not belong to a reflector that is {phase}"):
                    feed()
    with pytest.raises(RuntimeError):
        Driver().machine.listed(page(), now, random=0.0)
    for asked_at in (now, 1000.0):
        with pytest.raises(RuntimeError):
            stream.machine.ask(asked_at, random=0.0)


@pytest.mark.parametrize("wrong", [{"page_size": -1}, {"min_watch_timeout": 0.0}, {"max_internal_error_retry": -1.0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"ReflectorOptions\."):
        ReflectorOptions(**wrong)  # type: ignore[arg-type]  # the fault under test
