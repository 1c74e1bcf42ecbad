"""The recorder in virtual time, against a small store of Events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltaloop.api.errors import InvalidInputError, MalformedObjectError
from deltaloop.api.kinds import EVENT, POD
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import AlreadyExistsError, ForbiddenError, NotFoundError, Status, StatusCause, StatusDetails
from deltaloop.client.errors import TransportError
from deltaloop.events import EventRecorder, EventRecorderOptions

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POD_X = Resource.from_dict({"metadata": {"name": "x", "namespace": "team", "uid": "u1", "resourceVersion": "7"}}, POD)
NO_ANSWER = TransportError("no answer", method="POST", path="/events")


@dataclass
class FakeEvents:
    """Stores Events; errors to come are raised one for each request."""

    stored: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calls: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    errors: list[Exception | None] = field(default_factory=list[Exception | None])
    always: Exception | None = None
    hangs: bool = False

    async def create(
        self, rt: ResourceType[Resource], obj: Mapping[str, Any], /, *, namespace: str | None = None
    ) -> Resource:
        await self._request("create")
        assert rt == EVENT
        assert obj["metadata"]["namespace"] == namespace
        key = f"{namespace}/{obj['metadata']['name']}"
        if key in self.stored:
            raise AlreadyExistsError(Status(code=409))
        self.stored[key] = dict(obj)
        return Resource.from_dict(obj, EVENT)

    async def patch(
        self,
        rt: ResourceType[Resource],
        name: str,
        patch: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        await self._request("patch")
        key = f"{namespace}/{name}"
        if key not in self.stored:
            raise NotFoundError(Status(code=404))
        self.stored[key].update(patch)
        return Resource.from_dict(self.stored[key], EVENT)

    async def _request(self, verb: str) -> None:
        self.calls.append((now(), verb))
        if self.hangs:
            await asyncio.sleep(1000)
        error = self.errors.pop(0) if self.errors else self.always
        if error is not None:
            raise error

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.stored.values())


def now() -> float:
    return asyncio.get_running_loop().time()


def make(client: FakeEvents, **options: Any) -> EventRecorder:
    loop = asyncio.get_running_loop()
    return EventRecorder(
        client,
        component="sample-controller",
        instance="pod-1",
        options=EventRecorderOptions(**options),
        clock=loop.time,
        wall_clock=lambda: START + timedelta(seconds=loop.time()),
        chance=lambda: 0.3,
    )


async def test_an_event_as_it_goes_to_the_server() -> None:
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


async def test_repeats_are_counted_by_a_patch() -> None:
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


async def test_no_event_is_lost_and_names_differ_within_one_instant() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        for index in range(1000):
            recorder.event(
                ObjectReference(kind="Pod", namespace="team", name=f"p{index % 100}"), "Normal", f"R{index}", "m"
            )
        assert recorder.dropped == 0
    # The spam filter lets 25 pass for each object; here each has ten.
    assert len(client.stored) == 1000


async def test_a_full_queue_drops_with_a_log(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents()
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make(client, queue_size=2) as recorder:
            for index in range(3):
                recorder.event(POD_X, "Normal", f"R{index}", "m")
            assert (len(recorder), recorder.dropped) == (2, 1)
    assert [event["reason"] for event in client.events] == ["R0", "R1"]
    [record] = caplog.records
    assert vars(record)["why"] == "the queue is full"


async def test_without_an_answer_it_is_tried_again_each_ten_seconds() -> None:
    client = FakeEvents(errors=[NO_ANSWER, NO_ANSWER, NO_ANSWER])
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "m")
        assert not await recorder.flush(5)
        assert await recorder.flush(100)
    assert client.calls == [(0, "create"), (3, "create"), (13, "create"), (23, "create")]
    assert len(client.stored) == 1


async def test_after_twelve_tries_it_is_given_up_and_the_next_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeEvents(errors=[NO_ANSWER] * 12)
    with caplog.at_level(logging.WARNING, logger="deltaloop.events"):
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "First", "m")
            recorder.event(POD_X, "Normal", "Second", "m")
            assert await recorder.flush(1000)
            assert now() == 103
    assert [event["reason"] for event in client.events] == ["Second"]
    assert [vars(record)["outcome"] for record in caplog.records] == ["no answer, given up"]


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
async def test_a_refusal_is_logged_and_not_tried_again(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    client = FakeEvents(errors=[error])
    with caplog.at_level(logging.DEBUG, logger="deltaloop.events"):
        async with make(client) as recorder:
            recorder.event(POD_X, "Normal", "R", "m")
            await recorder.flush(1)
    assert [verb for _, verb in client.calls] == ["create"]
    assert [record.levelno for record in caplog.records] == [level]


async def test_leaving_makes_one_try_for_each_and_gives_up() -> None:
    client = FakeEvents(always=NO_ANSWER)
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "First", "m")
        recorder.event(POD_X, "Normal", "Second", "m")
        await asyncio.sleep(1)
    assert now() == 1
    assert client.calls == [(0, "create"), (1, "create"), (1, "create")]


async def test_leaving_takes_bounded_time_when_the_server_hangs(caplog: pytest.LogCaptureFixture) -> None:
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


async def test_events_before_the_recorder_is_open_wait() -> None:
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


async def test_messages_are_redacted_and_cut() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        recorder.event(POD_X, "Normal", "R", "sent with Bearer abcdefgh")
        recorder.event(POD_X, "Normal", "R", "x" * 2000)
    first, second = client.events
    assert "abcdefgh" not in first["message"]
    assert second["message"] == "x" * 1024


async def test_bad_input_is_refused_at_once() -> None:
    recorder = make(FakeEvents())
    with pytest.raises(InvalidInputError, match="'Normal' or 'Warning'"):
        recorder.event(POD_X, "Error", "R", "m")
    with pytest.raises(MalformedObjectError, match="name"):
        recorder.event(ObjectReference(kind="Pod"), "Normal", "R", "m")
    with pytest.raises(InvalidInputError, match="not a int"):
        recorder.event(5, "Normal", "R", "m")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInputError, match="component"):
        EventRecorder(FakeEvents(), component="")
    with pytest.raises(ValueError, match="queue_size"):
        EventRecorderOptions(queue_size=0)
