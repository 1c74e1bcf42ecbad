"""The recorder of core/v1 events in virtual time, against a small store of Events."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.references import ObjectReference
from deltaloop.api.status import AlreadyExistsError, ForbiddenError, Status, StatusCause, StatusDetails
from deltaloop.events import EventDraft, EventRecorder, EventRecorderOptions, log_event
from tests.events.fake_events import NO_ANSWER, POD_X, START, FakeEvents, make, now
from tests.having import having


async def test_event_request_body() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "Created", "made it", related=ObjectReference(kind="Foo", name="f"))
        assert client.calls == []
        assert await recorder.flush(1)
    nanoseconds = int(START.timestamp()) * 10**9
    assert client.events == [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"x.{nanoseconds:x}", "namespace": "team"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "team",
                "name": "x",
                "uid": "u1",
                "resourceVersion": "7",
            },
            "reason": "Created",
            "message": "made it",
            "source": {"component": "sample-controller"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 1,
            "type": "Normal",
            "reportingComponent": "sample-controller",
            "reportingInstance": "pod-1",
            "related": {"kind": "Foo", "name": "f"},
        }
    ]


async def test_repeats_patch_the_count() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        for _ in range(3):
            recorder.event(POD_X, "Warning", "Failed", "no luck")
            await asyncio.sleep(10)
    assert [verb for _, verb in client.calls] == ["create", "patch", "patch"]
    [event] = client.events
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        3,
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:25Z",
    )


async def test_a_repeat_of_an_expired_event_is_created_again() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        await recorder.flush(1)
        client.stored.clear()
        recorder.event(POD_X, "Normal", "R", "m")
        await recorder.flush(1)
    assert [verb for _, verb in client.calls] == ["create", "patch", "create"]
    assert client.events[0]["count"] == 2


async def test_thousand_events_are_sent_with_unique_names() -> None:
    client = FakeEvents(errors=[*[NO_ANSWER] * 4, None] * 100)
    async with make(client, retry_delay=0.001) as recorder:
        for index in range(1000):
            about = ObjectReference(kind="Pod", namespace="team", name=f"p{index % 100}")
            recorder.event(about, "Normal", f"R{index}", str(index))
        assert await recorder.flush(100)
    # The spam filter lets 25 pass for each object; here each has ten.
    assert (len(client.stored), len(client.calls), recorder.dropped) == (1000, 1400, 0)
    assert {event["message"] for event in client.events} == {str(index) for index in range(1000)}


async def test_full_queue_drops_events_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents()
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make(client, queue_size=2) as recorder:
            for index in range(3):
                recorder.event(POD_X, "Normal", f"R{index}", "m")
            assert (len(recorder), recorder.dropped) == (2, 1)
    assert [event["reason"] for event in client.events] == ["R0", "R1"]
    [record] = caplog.records
    assert vars(record)["why"] == "the queue is full"


async def test_request_without_response_is_retried_every_ten_seconds() -> None:
    client = FakeEvents(errors=[NO_ANSWER, NO_ANSWER, NO_ANSWER])
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        assert not await recorder.flush(5)
        assert await recorder.flush(100)
    assert client.calls == [(0, "create"), (3, "create"), (13, "create"), (23, "create")]
    assert len(client.stored) == 1


async def test_event_is_dropped_after_twelve_attempts(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(errors=[NO_ANSWER] * 12)
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "First", "m")
            recorder.event(POD_X, "Normal", "Second", "m")
            assert await recorder.flush(1000)
            assert now() == 103
    assert [event["reason"] for event in client.events] == ["Second"]
    assert [vars(record)["outcome"] for record in caplog.records] == ["no response, given up"]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (AlreadyExistsError(Status(code=409)), logging.DEBUG),
        (
            ForbiddenError(
                Status(code=403, details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),)))
            ),
            logging.DEBUG,
        ),
        (ForbiddenError(Status(code=403)), logging.WARNING),
    ],
)
async def test_rejected_event_is_logged_and_not_retried(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    client = FakeEvents(errors=[error])
    with caplog.at_level(logging.DEBUG, logger="deltaloop.events"):
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "R", "m")
            await recorder.flush(1)
    assert [verb for _, verb in client.calls] == ["create"]
    assert [record.levelno for record in caplog.records] == [level]


async def test_exit_tries_each_event_once() -> None:
    client = FakeEvents(always=NO_ANSWER)
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "First", "m")
        recorder.event(POD_X, "Normal", "Second", "m")
        await asyncio.sleep(1)
    assert now() == 1
    assert client.calls == [(0, "create"), (1, "create"), (1, "create")]


async def test_canceled_program_sends_queued_events() -> None:
    client = FakeEvents()

    async def program() -> None:
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "Started", "m")
            try:
                await asyncio.Event().wait()
            finally:
                recorder.event(POD_X, "Normal", "Stopped", "m")

    running = asyncio.create_task(program())
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [event["reason"] for event in client.events] == ["Started", "Stopped"]


async def test_exit_is_bounded_when_server_hangs(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(hangs=True)
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "First", "m")
            recorder.event(POD_X, "Normal", "Second", "m")
            await asyncio.sleep(1)
    assert now() == 6
    assert vars(caplog.records[-1])["dropped"] == 2
    recorder.event(POD_X, "Normal", "Third", "m")
    assert recorder.dropped == 1
    assert vars(caplog.records[-1])["why"] == "the recorder is closed"


async def test_events_recorded_before_entry_are_queued() -> None:
    client = FakeEvents()
    recorder = make(client)
    recorder.event(POD_X, "Normal", "R", "m")
    with pytest.raises(RuntimeError, match="open recorder"):
        await recorder.flush(1)
    async with recorder:
        assert await recorder.flush(1)
    assert len(client.stored) == 1
    with pytest.raises(RuntimeError, match="once"):
        await recorder.__aenter__()


@pytest.mark.real_time
async def test_events_from_another_thread() -> None:
    client = FakeEvents()
    loop_time = asyncio.get_running_loop().time
    recorder = EventRecorder(client, component="c", clock=loop_time)
    async with recorder:
        await asyncio.gather(
            *(asyncio.to_thread(recorder.event, POD_X, "Normal", f"R{index}", "m") for index in range(5))
        )
        assert await recorder.flush(5)
    assert len(client.stored) == 5


async def test_names_and_namespaces_of_unusual_objects() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(ObjectReference(kind="Node", name="node-1"), "Normal", "R", "m")
        recorder.event({"apiVersion": "x/v1", "kind": "Role", "metadata": {"name": "system:a"}}, "Normal", "R", "m")
    assert {key.split("/")[0] for key in client.stored} == {"default"}
    first, second = client.events
    assert "namespace" not in first["involvedObject"]
    assert first["metadata"]["name"].startswith("node-1.")
    assert ":" not in second["metadata"]["name"]
    assert len(second["metadata"]["name"]) == 36


async def test_messages_are_redacted_and_truncated() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "sent with Bearer abcdefgh")
        recorder.event(POD_X, "Normal", "R", "x" * 2000)
    first, second = client.events
    assert "abcdefgh" not in first["message"]
    assert second["message"] == "x" * 1024


async def test_invalid_unicode_message_is_sent() -> None:
    file = b"cannot open /data/\xff".decode(errors="surrogateescape")
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Warning", "R", file, annotations={"file": file})
    (event,) = client.events
    assert event["message"] == event["metadata"]["annotations"]["file"] == "cannot open /data/?"


async def test_lone_surrogate_in_reason_is_replaced() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Warning", "R\ud800", "m", action="\ud800")
    (event,) = client.events
    assert (event["reason"], event["action"]) == ("R?", "?")


async def test_invalid_input_is_rejected_immediately() -> None:
    recorder = make(FakeEvents())
    with pytest.raises(InvalidArgumentError, check=having(argument="event type")):
        recorder.event(POD_X, "Error", "R", "m")
    with pytest.raises(MalformedObjectError, check=having(path="metadata.name")):
        recorder.event(ObjectReference(kind="Pod"), "Normal", "R", "m")
    with pytest.raises(InvalidArgumentError, check=having(argument="object")):
        recorder.event(5, "Normal", "R", "m")
    with pytest.raises(InvalidArgumentError, check=having(argument="component")):
        EventRecorder(FakeEvents(), component="")
    for component, instance in (("\ud800", ""), ("c", "\ud800")):
        with pytest.raises(InvalidArgumentError, match="must be Unicode"):
            EventRecorder(FakeEvents(), component=component, instance=instance)
    with pytest.raises(InvalidArgumentError, check=having(argument="'a b'")):
        recorder.event(POD_X, "Normal", "R", "m", annotations={"a b": "c"})
    assert len(recorder) == 0
    with pytest.raises(ValueError, check=having(argument="EventRecorderOptions.queue_size")):
        EventRecorderOptions(queue_size=0)


PART_2 = ObjectReference(
    api_version="v1", kind="Pod", namespace="baz", name="foo", uid="bar", field_path="spec.containers[2]"
)
PART_3 = ObjectReference(
    api_version="v1", kind="Pod", namespace="baz", name="foo", uid="differentUid", field_path="spec.containers[3]"
)
WHOLE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foo", "namespace": "baz", "uid": "bar"}}
SEVEN: list[tuple[ObjectReference | dict[str, Any], str, int]] = [
    (PART_2, "Started", 1),
    (WHOLE, "Killed", 1),
    (PART_2, "Started", 2),
    (PART_3, "Started", 1),
    (PART_2, "Started", 3),
    (PART_3, "Stopped", 1),
    (PART_3, "Stopped", 2),
]


def part(about: ObjectReference | dict[str, Any]) -> tuple[str, str]:
    return (about.uid, about.field_path) if isinstance(about, ObjectReference) else ("bar", "")


async def record_seven(recorder: EventRecorder, client: FakeEvents) -> None:
    """Record one event after the other, and look at each as it stands on the server then."""
    for about, reason, count in SEVEN:
        await asyncio.sleep(1)
        recorder.event(about, "Normal", reason, "some verbose message: 1")
        assert await recorder.flush(1)
        [event] = [
            event
            for event in client.events
            if (event["lastTimestamp"][-3:-1], event["reason"]) == (f"{5 + int(now()):02}", reason)
        ]
        assert event["count"] == count
        assert client.verbs[-1] == ("create" if count == 1 else "patch")
        assert (event["involvedObject"]["uid"], event["involvedObject"].get("fieldPath", "")) == part(about)


async def test_events_are_distinguished_by_object_and_field_path() -> None:
    client, shown = FakeEvents(), list[EventDraft]()
    async with make(client, watchers=[shown.append]) as recorder:
        await record_seven(recorder, client)
    assert [(event.reason, event.message, event.reference.uid, event.count) for event in shown] == [
        (reason, "some verbose message: 1", part(about)[0], 1) for about, reason, _ in SEVEN
    ]


async def test_recorders_count_separately() -> None:
    for _ in range(2):
        client = FakeEvents()
        begun = now()
        async with make(client) as recorder:
            await asyncio.sleep(-begun % 60)
            recorder.event(PART_2, "Normal", "Started", "m")
            recorder.event(PART_2, "Normal", "Started", "m")
        assert [event["count"] for event in client.events] == [2]


async def test_watcher_receives_sent_and_unsent_events(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(hangs=True)
    with caplog.at_level(logging.INFO, logger="deltaloop.events"):
        async with make(client, watchers=[log_event], queue_size=1, close_timeout=1) as recorder:
            recorder.event(PART_2, "Normal", "Started", "m", action="Start")
            recorder.event(PART_2, "Warning", "Stopped", "m")
    first, second, *_ = [record for record in caplog.records if record.levelno == logging.INFO]
    assert first.getMessage() == "event occurred"
    assert {name: vars(first)[name] for name in ("object", "field_path", "type", "reason", "action", "text")} == {
        "object": "Pod baz/foo",
        "field_path": "spec.containers[2]",
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "text": "m",
    }
    assert vars(second)["reason"] == "Stopped"
    assert recorder.dropped == 1


async def test_failing_watcher_does_not_stop_recorder(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: EventDraft) -> None:
        raise KeyError("x")

    client, shown = FakeEvents(), list[EventDraft]()
    async with make(client, watchers=[broken, shown.append]) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
    assert (len(client.stored), len(shown)) == (1, 1)
    assert [record.getMessage() for record in caplog.records] == ["event watcher raised an exception"]


@pytest.mark.parametrize("failures", [1000, 2])
async def test_unknown_errors_are_retried_up_to_twelve_times(failures: int) -> None:
    client = FakeEvents(errors=[RuntimeError("weird")] * failures)
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        assert await recorder.flush(200)
    assert len(client.calls) == min(failures + 1, 12)


async def test_annotations_and_action_are_sent_with_secrets_redacted() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(
            POD_X, "Normal", "R", "m", action="Do", annotations={"team.example/run": "7", "sent": "Bearer abcdefgh"}
        )
    [event] = client.events
    assert event["action"] == "Do"
    assert event["metadata"]["annotations"]["team.example/run"] == "7"
    assert "abcdefgh" not in str(event)


async def test_warnings_are_not_limited_by_normal_events() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        for index in range(30):
            recorder.event(POD_X, "Normal", f"R{index}", "m")
        for index in range(30):
            recorder.event(POD_X, "Warning", f"R{index}", "m")
    assert Counter(event["type"] for event in client.events) == {"Normal": 25, "Warning": 25}


@pytest.mark.real_time
async def test_recording_in_threads_while_closing_sends_or_counts_every_event() -> None:
    client = FakeEvents()
    recorder = EventRecorder(client, component="c", options=EventRecorderOptions(queue_size=50))
    begin = threading.Barrier(5)

    def record(thread: int) -> None:
        begin.wait(5)
        for index in range(20):
            recorder.event(ObjectReference(kind="Pod", name=f"p{thread}"), "Normal", f"R{index}", "m")

    threads = [threading.Thread(target=record, args=(thread,)) for thread in range(4)]
    for each in threads:
        each.start()
    async with recorder:
        await asyncio.to_thread(begin.wait, 5)
        recorder.event(POD_X, "Normal", "Last", "m")
    for each in threads:
        await asyncio.to_thread(each.join, 5)
    assert len(client.stored) + recorder.dropped == 81
    assert len(recorder) == 0
