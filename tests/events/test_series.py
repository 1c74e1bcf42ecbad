"""The recorder of events.k8s.io/v1 events in virtual time, against a small store of Events."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import ObjectReference
from deltaloop.api.status import ForbiddenError, Status, StatusDetails, error_from_status
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions, SeriesOptions
from tests.events.fake_events import NO_ANSWER, POD_X, START, FakeEvents, make_series, now
from tests.having import having

PART_1 = ObjectReference(api_version="v1", kind="Pod", namespace="baz", name="foo", uid="bar", field_path="part1")
PART_0 = ObjectReference(api_version="v1", kind="Pod", namespace="baz", name="foo", uid="bar", field_path="part0")


def series_of(client: FakeEvents) -> list[int]:
    return [event.get("series", {"count": 1})["count"] for event in client.events]


async def test_series_event_request_bodies() -> None:
    client = FakeEvents()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node1", "uid": "67890"}}
    address = {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "2001:db8::123"}}
    async with make_series(client) as recorder:
        recorder.event(POD_X, "Normal", "Started", "Pod started", action="starting")
        recorder.event(POD_X, "Warning", "FailedScheduling", "no room", action="scheduling", related=node)
        recorder.event(address, "Warning", "IPAddressNotAllocated", "leaked", action="IPAddressAllocation")
        assert await recorder.flush(1)
    first, second, third = client.events
    assert first == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"x.{int(START.timestamp()) * 10**9:x}", "namespace": "team"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "sample-controller",
        "reportingInstance": "pod-1",
        "action": "starting",
        "reason": "Started",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "x",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "note": "Pod started",
        "type": "Normal",
    }
    assert second["related"] == {"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": "67890"}
    assert (third["metadata"]["namespace"], len(third["metadata"]["name"])) == ("default", 36)


async def test_isomorphic_events_form_series_and_other_action_does_not() -> None:
    client = FakeEvents()
    async with make_series(client) as recorder:
        for action in ("started", "started", "stopped"):
            recorder.event(PART_1, "Normal", "test", "some verbose message: 1", action=action, related=PART_0)
            assert await recorder.flush(1)
        assert client.verbs == ["create", "patch", "create"]
        assert series_of(client) == [2, 1]
        assert client.events[0]["series"]["lastObservedTime"] == "2026-01-02T03:04:05.000000Z"


@pytest.mark.parametrize(
    ("errors", "times", "count"),
    [
        ([], 1, 1),
        ([], 2, 2),
        # The create never arrived: the series is created when its patch finds nothing.
        ([ForbiddenError(Status(code=403))], 2, 2),
        # The create was carried out without an answer: its repetition finds it there.
        ([None, error_from_status(Status(code=404, details=StatusDetails(name="x", kind="events")))], 2, 2),
    ],
)
async def test_series_reaches_server_despite_errors(errors: list[Any], times: int, count: int) -> None:
    client = FakeEvents(errors=list(errors))
    async with make_series(client) as recorder:
        for _ in range(times):
            recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(100)
    assert series_of(client) == [count]


async def test_series_ends_after_six_idle_minutes_and_count_is_written() -> None:
    client = FakeEvents()
    async with make_series(client) as recorder:
        for _ in range(10):
            recorder.event(POD_X, "Normal", "R", "m")
            await asyncio.sleep(1)
        recorder.event(PART_1, "Normal", "Alone", "m")
        await asyncio.sleep(1)
        assert series_of(client) == [2, 1]
        await asyncio.sleep(400)
        assert series_of(client) == [10, 1]
        assert client.events[0]["series"]["lastObservedTime"] == "2026-01-02T03:04:14.000000Z"
        assert client.calls == [(0, "create"), (1, "patch"), (10, "create"), (369, "patch")]
        recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(1)
        assert series_of(client) == [10, 1, 1]


@pytest.mark.parametrize("error", [None, ForbiddenError(Status(code=403)), NO_ANSWER])
async def test_continuing_series_is_written_again_after_failed_write(error: Exception | None) -> None:
    client = FakeEvents()
    async with make_series(client) as recorder:
        for minute in range(0, 64, 2):
            if minute == 20:
                client.errors = [error]
            recorder.event(POD_X, "Normal", "R", "m")
            await asyncio.sleep(120)
        assert len(client.stored) == 1
    signs = [at for at, verb in client.calls if verb == "patch"][1:-1]
    if error is NO_ANSWER:
        assert signs == [1920, 1930.75, 3720]
    else:
        assert signs == [1920, 3720]
    assert series_of(client) == [32]


async def test_count_is_written_when_due() -> None:
    client = FakeEvents()
    async with make_series(client) as recorder:
        for _ in range(3):
            recorder.event(POD_X, "Normal", "R", "m")
        await asyncio.sleep(359.5)
        recorder.event(PART_1, "Normal", "Alone", "m")
        await asyncio.sleep(1)
    assert client.calls[2:] == [(359.5, "create"), (360, "patch")]


async def test_flush_and_exit_write_counts() -> None:
    client = FakeEvents()
    async with make_series(client) as recorder:
        for _ in range(5):
            recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(1)
        assert series_of(client) == [5]
        recorder.event(POD_X, "Normal", "R", "m")
        await asyncio.sleep(1)
        assert series_of(client) == [5]
    assert series_of(client) == [6]
    assert now() == 1


async def test_counts_not_written_on_exit_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents()
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make_series(client) as recorder:
            for about in (POD_X, PART_0, PART_1):
                for _ in range(3):
                    recorder.event(about, "Normal", "R", "m")
            await asyncio.sleep(1)
            client.hangs = True
    [record] = caplog.records
    assert (vars(record)["dropped"], vars(record)["counts"]) == (0, 2)


async def test_series_does_not_end_while_server_is_unavailable() -> None:
    client = FakeEvents()
    async with make_series(client, max_tries=100) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        recorder.event(POD_X, "Normal", "R", "m")
        await asyncio.sleep(300)
        client.errors = [NO_ANSWER] * 40
        recorder.event(PART_1, "Normal", "R", "m")
        recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(1000)
        assert now() > 660
    assert series_of(client) == [3, 1]


async def test_core_events_are_written_if_api_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(serves_events_v1=False)
    with caplog.at_level(logging.INFO, logger="deltaloop.events"):
        async with make_series(client) as recorder:
            for _ in range(3):
                recorder.event(POD_X, "Normal", "R", "m", action="Act", related=PART_0)
            assert await recorder.flush(1)
            assert recorder.api is EventApi.CORE_V1
    [event] = client.events
    assert (event["apiVersion"], event["count"], event["action"], event["related"]["name"]) == ("v1", 3, "Act", "foo")
    assert client.verbs == ["create", "create", "patch", "patch"]
    assert [record.getMessage() for record in caplog.records] == ["switching to another events API"]


async def test_removed_api_loses_no_counts() -> None:
    client = FakeEvents()
    async with make_series(client, series=SeriesOptions(cache_size=1)) as recorder:
        for _ in range(3):
            recorder.event(PART_0, "Normal", "R", "m")
        await asyncio.sleep(1)
        client.stored.clear()
        client.serves_events_v1 = False
        recorder.event(PART_1, "Normal", "R", "m")  # there is no room for both
        assert await recorder.flush(1)
    assert [(event["apiVersion"], event["count"]) for event in client.events] == [("v1", 3), ("v1", 1)]


async def test_missing_namespace_does_not_switch_api() -> None:
    missing = error_from_status(Status(code=404, details=StatusDetails(name="team", kind="namespaces")))
    client = FakeEvents(errors=[missing])
    async with make_series(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(1)
        assert recorder.api is EventApi.EVENTS_V1
    assert client.stored == {}


async def test_number_of_series_is_limited() -> None:
    client = FakeEvents()
    async with make_series(client, series=SeriesOptions(cache_size=2)) as recorder:
        for about in ("a", "b", "c", "a"):
            for _ in range(3):
                recorder.event(ObjectReference(kind="Pod", name=about), "Normal", "R", "m")
        assert await recorder.flush(1)
    assert series_of(client) == [3, 3, 3, 3]


async def test_invalid_event_is_rejected_immediately() -> None:
    recorder = make_series(FakeEvents())
    with pytest.raises(InvalidArgumentError, check=having(argument="reason")):
        recorder.event(POD_X, "Normal", "", "m")
    with pytest.raises(InvalidArgumentError, check=having(argument="component")):
        make_series(FakeEvents(), component="my controller")
    with pytest.raises(InvalidArgumentError, check=having(argument="instance")):
        EventRecorder(
            FakeEvents(), component="c", instance="é" * 65, options=EventRecorderOptions(api=EventApi.EVENTS_V1)
        )
    named = EventRecorder(FakeEvents(), component="c", options=EventRecorderOptions(api=EventApi.EVENTS_V1))
    assert named.instance.startswith("c-")


@pytest.mark.real_time
async def test_concurrent_events_of_two_threads_form_one_series() -> None:
    client = FakeEvents()
    async with EventRecorder(
        client, component="test", options=EventRecorderOptions(api=EventApi.EVENTS_V1)
    ) as recorder:
        about = ObjectReference(kind="Pod", name="x")
        await asyncio.gather(*(asyncio.to_thread(recorder.event, about, "Normal", "reason", "") for _ in range(8)))
        assert await recorder.flush(5)
        assert series_of(client) == [8]
