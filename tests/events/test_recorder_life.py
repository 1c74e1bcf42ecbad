"""The recorder from its beginning to its end: what waits, what is dropped, and what is said of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import ObjectReference
from deltaloop.api.status import ForbiddenError, Status
from deltaloop.events import (
    CorrelatorOptions,
    EventApi,
    EventDraft,
    EventRecorder,
    EventRecorderOptions,
    SeriesOptions,
)
from tests.events.fake_events import NO_ANSWER, POD_X, START, FakeEvents, make, make_series, now
from tests.having import having


def said(caplog: pytest.LogCaptureFixture, message: str, *names: str) -> list[tuple[object, ...]]:
    """The lines that say so, with these of their fields."""
    found = [vars(record) for record in caplog.records if record.getMessage() == message]
    return [tuple(each[name] for name in names) for each in found]


def test_default_options() -> None:
    options = asdict(EventRecorderOptions())
    made = {name: options["correlation"].pop(name) for name in ("similar_key", "combined_message", "spam_key")}
    assert all(callable(each) for each in made.values())
    assert options == {
        "api": EventApi.CORE_V1,
        "queue_size": 1000,
        "max_tries": 12,
        "retry_delay": 10.0,
        "close_timeout": 5.0,
        "correlation": {
            "similar_limit": 10,
            "similar_interval": 600.0,
            "spam_burst": 25,
            "spam_rate": 1 / 300,
            "cache_size": 4096,
        },
        "series": {"finish_after": 360.0, "refresh_interval": 1800.0, "cache_size": 4096},
    }
    defaults = inspect.signature(EventRecorder).parameters
    assert defaults["clock"].default is time.monotonic
    assert defaults["random"].default is random.random
    assert abs(datetime.now(UTC) - defaults["wall_clock"].default()) < timedelta(seconds=60)


@pytest.mark.parametrize("name", ["queue_size", "max_tries", "retry_delay", "close_timeout"])
def test_recorder_options_must_be_positive_numbers(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, check=having(argument=f"EventRecorderOptions.{name}")):
        EventRecorderOptions(**options)
    options = {name: "1"}
    with pytest.raises(TypeError, check=having(option=f"EventRecorderOptions.{name}")):
        EventRecorderOptions(**options)


@pytest.mark.parametrize("options", [SeriesOptions, CorrelatorOptions])
def test_correlation_and_series_options_must_be_positive_numbers(options: Any) -> None:
    for each in fields(options):
        if each.type not in ("int", "float"):
            continue
        with pytest.raises(ValueError, check=having(argument=f"{options.__name__}.{each.name}")):
            options(**{each.name: 0})
        with pytest.raises(TypeError, check=having(option=f"{options.__name__}.{each.name}")):
            options(**{each.name: "1"})


def test_api_option_accepts_string() -> None:
    api: Any = "events.k8s.io/v1"
    assert EventRecorderOptions(api=api).api is EventApi.EVENTS_V1
    api = "events/v3"
    with pytest.raises(ValueError, match="events/v3"):
        EventRecorderOptions(api=api)


async def test_dropped_event_is_logged_with_total(caplog: pytest.LogCaptureFixture) -> None:
    recorder = make(FakeEvents(), queue_size=1)
    for reason in ("First", "Second", "Third"):
        recorder.event(POD_X, "Normal", reason, "m")
    assert repr(recorder) == "<EventRecorder sample-controller, 1 waiting, 2 dropped>"
    nanoseconds = int(START.timestamp()) * 10**9
    assert said(caplog, "dropped an event", "levelno", "object", "event", "reason", "why", "dropped") == [
        (logging.WARNING, "Pod team/x", f"team/x.{nanoseconds + 1:x}", "Second", "the queue is full", 1),
        (logging.WARNING, "Pod team/x", f"team/x.{nanoseconds + 2:x}", "Third", "the queue is full", 2),
    ]


async def test_event_names_increase_when_wall_clock_goes_back() -> None:
    wall = START
    client = FakeEvents()
    recorder = EventRecorder(client, component="c", clock=now, wall_clock=lambda: wall)
    for index, moment in enumerate((START, START, START - timedelta(seconds=9), START + timedelta(microseconds=1))):
        wall = moment
        recorder.event(POD_X, "Normal", f"R{index}", "m")
    async with recorder:
        pass
    first = int(START.timestamp()) * 10**9
    assert [event["metadata"]["name"] for event in client.events] == [f"x.{first + more:x}" for more in (0, 1, 2, 1000)]


async def test_recording_is_reentrant() -> None:
    """As a destructor or a signal handler does, in the thread that has the lock."""
    recorded = list[str]()

    def wall_clock() -> datetime:
        if not recorded:
            recorded.append("inner")
            recorder.event(POD_X, "Normal", "Inner", "m")
        return START

    client = FakeEvents()
    recorder = EventRecorder(client, component="c", clock=now, wall_clock=wall_clock)
    recorder.event(POD_X, "Normal", "Outer", "m")
    async with recorder:
        pass
    assert {event["reason"] for event in client.events} == {"Inner", "Outer"}
    assert len({event["metadata"]["name"] for event in client.events}) == 2


async def test_flush_waits_for_earlier_events() -> None:
    client = FakeEvents(errors=[NO_ANSWER, None, NO_ANSWER, None])
    async with make(client) as recorder:
        await asyncio.sleep(0)
        ends = list[tuple[str, bool, float]]()

        async def flush(name: str, timeout: float) -> None:
            ends.append((name, await recorder.flush(timeout), now()))

        async with asyncio.TaskGroup() as group:
            recorder.event(POD_X, "Normal", "First", "m")
            group.create_task(flush("first", 100))
            await asyncio.sleep(1)
            recorder.event(POD_X, "Normal", "Second", "m")
            group.create_task(flush("second", 100))
            group.create_task(flush("impatient", 1))
        assert ends == [("impatient", False, 2), ("first", True, 3), ("second", True, 6)]
        assert await recorder.flush(0.1)
        assert now() == 6
    with pytest.raises(RuntimeError):
        await recorder.flush(1)


async def test_rejection_is_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(errors=[ForbiddenError(Status(code=403, message="no: Bearer abcdefgh"))])
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
    names = ("levelno", "object", "event", "reason", "outcome", "error")
    nanoseconds = int(START.timestamp()) * 10**9
    assert said(caplog, "cannot send an event", *names) == [
        (logging.WARNING, "Pod team/x", f"team/x.{nanoseconds:x}", "R", "rejected by the server", "ForbiddenError")
    ]
    [(text,)] = said(caplog, "cannot send an event", "text")
    assert "no: " in str(text)
    assert "abcdefgh" not in str(text)


async def test_switch_to_another_api_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with make_series(FakeEvents(serves_events_v1=False)) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
    assert said(caplog, "switching to another events API", "previous", "present") == [("events.k8s.io/v1", "v1")]


async def test_failing_watcher_is_logged_and_receives_next_event(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: EventDraft) -> None:
        raise KeyError("x")

    recorder = make(FakeEvents(), watchers=iter([broken]))
    recorder.event(POD_X, "Normal", "First", "m")
    recorder.event(POD_X, "Normal", "Second", "m")
    assert said(caplog, "event watcher raised an exception", "levelno", "object", "reason") == [
        (logging.ERROR, "Pod team/x", "First"),
        (logging.ERROR, "Pod team/x", "Second"),
    ]


async def test_canceled_exit_drops_remaining_events_and_propagates(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(hangs=True)

    recorder = make(client)

    async def program() -> None:
        async with recorder:
            recorder.event(POD_X, "Normal", "First", "m")
            recorder.event(POD_X, "Normal", "Second", "m")

    running = asyncio.create_task(program())
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert now() == 1
    assert said(caplog, "dropped unsent events at the end", "levelno", "dropped", "counts") == [(logging.WARNING, 2, 0)]
    assert client.calls == [(0, "create")]
    assert len(recorder) == 0
    await asyncio.sleep(20)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_exit_without_queued_events_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with make(FakeEvents()) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
    assert caplog.records == []
    assert len(recorder) == 0
    assert now() == 0


async def test_internal_error_in_sender_is_raised_on_exit() -> None:
    def broken() -> float:
        raise KeyError("random")

    recorder = EventRecorder(FakeEvents(always=NO_ANSWER), component="c", clock=now, random=broken)

    async def use() -> None:
        async with recorder:
            recorder.event(POD_X, "Normal", "R", "m")
            await asyncio.sleep(1)
            with pytest.raises(RuntimeError, match="open recorder"):
                await recorder.flush(1)

    with pytest.raises(KeyError, match="random"):
        await use()


def test_events_after_loop_closed_are_dropped() -> None:
    client = FakeEvents()
    recorder = EventRecorder(client, component="c", instance="i")

    async def forget_to_leave() -> None:
        await recorder.__aenter__()

    asyncio.run(forget_to_leave())
    recorder.event(POD_X, "Normal", "R", "m")
    assert (len(recorder), client.calls) == (1, [])


async def test_watcher_receives_all_event_fields() -> None:
    shown = list[EventDraft]()
    recorder = make(FakeEvents(), watchers=[shown.append])
    about = ObjectReference(kind="Node", name="n")
    said_of: dict[str, Any] = {"action": "Act", "related": POD_X, "annotations": {"a": "b"}}
    recorder.event(about, "Normal", "R", "m" * 1025, **said_of)
    recorder.for_component("other").event(about, "Normal", "R", "m", **said_of)
    first, second = shown
    assert (first.component, first.instance, second.component, second.instance) == (
        *("sample-controller", "pod-1"),
        *("other", "pod-1"),
    )
    for draft in shown:
        assert (draft.namespace, draft.action, draft.annotations) == ("default", "Act", {"a": "b"})
        assert draft.related is not None
        assert (draft.related.name, draft.first_at, draft.last_at) == ("x", START, START)
    assert first.message == "m" * 1024


@pytest.mark.real_time
async def test_event_names_are_unique_across_threads() -> None:
    """The second one waits while the first one reads the clock."""
    inside, go_on = threading.Event(), threading.Event()

    def wall_clock() -> datetime:
        if threading.current_thread().name == "first":
            inside.set()
            assert go_on.wait(5)
        return START

    shown = list[EventDraft]()
    recorder = EventRecorder(FakeEvents(), component="c", wall_clock=wall_clock, watchers=[shown.append])

    def record() -> None:
        recorder.event(POD_X, "Normal", threading.current_thread().name.capitalize(), "m")

    threads = [threading.Thread(target=record, name=name) for name in ("first", "second")]
    threads[0].start()
    assert inside.wait(5)
    threads[1].start()
    threads[1].join(0.02)
    assert threads[1].is_alive()
    go_on.set()
    for thread in threads:
        thread.join(5)
    assert [draft.reason for draft in sorted(shown, key=lambda draft: draft.name)] == ["First", "Second"]


@pytest.mark.real_time
async def test_exit_waits_for_event_being_recorded() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wall_clock() -> datetime:
        inside.set()
        assert go_on.wait(5)
        return START

    client = FakeEvents()
    recorder = EventRecorder(client, component="c", wall_clock=wall_clock)
    thread = threading.Thread(target=recorder.event, args=(POD_X, "Normal", "R", "m"))
    async with recorder:
        thread.start()
        assert await asyncio.to_thread(inside.wait, 5)
        threading.Timer(0.02, go_on.set).start()
    thread.join(5)
    assert (len(client.stored), recorder.dropped) == (1, 0)


async def test_forked_child_closes_only_entered_recorders() -> None:
    """What the hook does that is called there; the test below makes a child."""
    fresh = make(FakeEvents())
    fresh._in_child(held=False)
    fresh.event(POD_X, "Normal", "R", "m")
    assert (len(fresh), fresh.dropped) == (1, 0)
    client = FakeEvents()
    entered = make(client)
    await entered.__aenter__()
    entered._in_child(held=True)
    entered.event(POD_X, "Normal", "R", "m")
    assert (len(entered), entered.dropped) == (0, 1)
    await entered.__aexit__(None, None, None)
    assert client.calls == []


def test_invalid_component_of_single_event_is_rejected() -> None:
    recorder = EventRecorder(FakeEvents(), component="c", options=EventRecorderOptions(api=EventApi.EVENTS_V1))
    with pytest.raises(InvalidArgumentError, check=having(argument="component")):
        recorder.event(POD_X, "Normal", "R", "m", component="my foos")
    assert len(recorder) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_forked_child_drops_events_of_parent_recorder() -> None:
    """One that was not entered before the fork is as good there as anywhere."""

    def in_child(check: Callable[[], bool]) -> bool:
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = check()
            finally:
                os._exit(0 if good else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    client = FakeEvents()

    def record(recorder: EventRecorder) -> tuple[int, int]:
        recorder.event(POD_X, "Normal", "R", "m")
        return len(recorder), recorder.dropped

    def refuses_to_be_entered(recorder: EventRecorder) -> bool:
        try:
            recorder.__aenter__().send(None)
        except RuntimeError as error:
            return "entered only once" in str(error)
        return False

    async with make(client) as entered:
        assert in_child(lambda: record(entered) == (0, 1))
        assert in_child(lambda: refuses_to_be_entered(entered))
        assert record(entered) == (1, 0)
    fresh = make(client)
    assert in_child(lambda: record(fresh) == (1, 0))
    assert len(client.stored) == 1
