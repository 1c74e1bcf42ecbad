from __future__ import annotations

import asyncio
import itertools
import json
import logging
from typing import Any

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ForbiddenError, NotFoundError
from deltaloop.client import Client, ClientConfig, HttpResponse
from deltaloop.client.core.waiting import Waiting
from deltaloop.client.verbs.resource_list import ResourceList
from deltaloop.client.verbs.waiting import wait_until
from deltaloop.errors import StreamEndedError, TransportError, WaitTimeoutError
from deltaloop.wait import created, deleted, field_value
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, logged, page, pod, text_answer
from tests.having import having

RUNNING = field_value("status.phase", "Running")
EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"x"}}\n'
)


def in_phase(phase: str, *, version: str = "1") -> dict[str, Any]:
    return {**pod("a", version=version), "status": {"phase": phase}}


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def client_over(*answers: HttpResponse | Exception | After | Stream) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport), transport


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_wait_returns_immediately_if_condition_is_met() -> None:
    client, transport = client_over(page(in_phase("Running")))
    found = await client.wait_for(kinds.POD, "a", RUNNING)
    assert found["status"]["phase"] == "Running"
    (request,) = transport.requests
    assert (request.path, dict(request.query)) == (
        "/api/v1/namespaces/mine/pods",
        {"fieldSelector": "metadata.name=a"},
    )


async def test_wait_lists_then_watches() -> None:
    script = (line("MODIFIED", in_phase("Pending", version="11")), Pause(3.0), line("MODIFIED", in_phase("Running")))
    client, transport = client_over(page(in_phase("Pending"), version="10"), Stream(script))
    found = await client.wait_for("v1/Pod", "a", RUNNING, namespace="n", timeout=20.0)
    assert found["status"]["phase"] == "Running"
    assert now() == 3.0
    assert transport.open_streams == 0
    assert transport.requests[1].query == {
        "fieldSelector": "metadata.name=a",
        "resourceVersion": "10",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "20",
        "watch": "true",
    }


async def test_wait_continues_after_end_break_and_expiry() -> None:
    broken = StreamEndedError("reset", method="GET", path="/x")
    client, transport = client_over(
        page(version="10"),
        Stream((Pause(5.0), line("ADDED", in_phase("Pending", version="12")), Pause(5.0))),  # ends in good order
        Stream((Pause(1.0), broken)),
        text_answer("busy", status=503),
        Stream((EXPIRED,)),
        TransportError("refused", method="GET", path="/x", refused=True),
        page(in_phase("Running", version="40"), version="41"),
    )
    found = await client.wait_for(kinds.POD, "a", RUNNING, timeout=60.0)
    assert found.resource_version == "40"
    asked = [request.query.get("resourceVersion", "") for request in transport.requests]
    assert asked == ["", "10", "12", "12", "12", "", ""]
    assert now() < 20.0


async def test_wait_for_deletion_returns_none_and_for_creation_object() -> None:
    client, _ = client_over(page(pod("a"), version="3"), Stream((line("DELETED", pod("a", version="4")),)))
    await client.wait_for(kinds.POD, "a", deleted())
    client, _ = client_over(page(version="3"), Stream((line("ADDED", pod("a", version="4")),)))
    assert (await client.wait_for(kinds.POD, "a", created())).resource_version == "4"


async def test_timeout_error_shows_the_last_state() -> None:
    client, transport = client_over(page(in_phase("s3cret", version="7"), version="10"), Stream((Pause(100.0),)))
    with pytest.raises(WaitTimeoutError) as caught:
        await client.wait_for(kinds.POD, "a", RUNNING, timeout=12.0)
    assert str(caught.value) == (
        "v1/Pod mine/a: waited 12 s for a matching value of status.phase; "
        "last seen: at resourceVersion 7 it has another status.phase"
    )
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.condition == "a matching value of status.phase"
    assert now() == 12.0
    assert transport.open_streams == 0


async def test_wait_with_silent_server_times_out() -> None:
    client, _ = client_over(After(100.0, page()))
    with pytest.raises(
        WaitTimeoutError, check=having(condition="creation", last_seen="the server has not responded yet")
    ):
        await client.wait_for(kinds.POD, "a", created())
    assert now() == 30.0


async def test_wait_for_resource_without_versions_lists_with_delay() -> None:
    """As metrics.k8s.io answers; a script that runs out fails, so 8 lists in 30 s is the most."""
    client, transport = client_over(*[page(in_phase("Pending", version=""), version="") for _ in range(8)])
    with pytest.raises(
        WaitTimeoutError,
        check=having(
            condition="a matching value of status.phase", last_seen="at resourceVersion - it has another status.phase"
        ),
    ):
        await client.wait_for(kinds.POD, "a", RUNNING)
    assert all("watch" not in request.query for request in transport.requests)
    assert now() == 30.0
    client, _ = client_over(page(in_phase("Pending"), version=""), page(in_phase("Running"), version=""))
    await client.wait_for(kinds.POD, "a", RUNNING)
    assert now() < 31.0


async def test_permanent_errors_are_raised() -> None:
    client, _ = client_over(text_answer("no", status=403))
    with pytest.raises(ForbiddenError):
        await client.wait_for(kinds.POD, "a", created())
    with pytest.raises(InvalidArgumentError):
        await client.wait_for(kinds.POD, "../a", created())


async def test_cancellation_of_wait_closes_watch() -> None:
    client, transport = client_over(page(), Stream((Pause(100.0),)))
    task = asyncio.create_task(client.wait_for(kinds.POD, "a", created(), timeout=1000.0))
    await asyncio.sleep(5.0)
    assert transport.open_streams == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.open_streams == 0


class Named(msgspec.Struct):
    name: str


class Small(msgspec.Struct):
    metadata: Named


async def test_typed() -> None:
    client, _ = client_over(page(pod("a")))
    typed = ResourceType[Small]("", "v1", "Pod", "pods", namespaced=True, model=Small)
    assert (await client.wait_for(typed, "a", created())).metadata.name == "a"


# --- When the next question is asked ---


def gaps(transport: FakeTransport) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(transport.sent_at)]


async def test_wait_delays_only_after_short_watch() -> None:
    client, transport = client_over(
        After(5.0, page(version="10")), Stream(()), Stream((Pause(5.0),)), Stream((line("ADDED", in_phase("Running")),))
    )
    await client.wait_for(kinds.POD, "a", RUNNING)
    first, second, third = gaps(transport)
    assert (first, third) == pytest.approx((5.0, 5.0))
    assert 0.5 <= second <= 0.6


@pytest.mark.parametrize(("asked", "level"), [(15, "DEBUG"), (16, "WARNING"), (600, "WARNING")])
async def test_long_retry_after_during_wait_is_logged(asked: int, level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    client, _ = client_over(text_answer("busy", status=503, headers=[("Retry-After", str(asked))]))
    with pytest.raises(
        WaitTimeoutError,
        check=having(
            condition="creation",
            last_seen="the server has not responded yet; the last attempt failed with ServiceUnavailableError",
        ),
    ):
        await client.wait_for(kinds.POD, "a", created(), timeout=10.0)
    (record,) = (each for each in logged(caplog) if "wait failed" in each.getMessage())
    assert (record.levelname, record.__dict__["wait"]) == (level, float(min(asked, 60)))
    assert record.__dict__["error_type"] == "ServiceUnavailableError"


async def test_wait_delays_after_failure() -> None:
    client, transport = client_over(text_answer("busy", status=503), page(pod("a")))
    await client.wait_for(kinds.POD, "a", created())
    (gap,) = gaps(transport)
    assert 0.5 <= gap <= 0.6


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(0.5, "1"), (1.0, "1"), (2.3, "3"), (300.0, "300"), (301.0, "300"), (1000.0, "300")]
)
async def test_duration_of_a_requested_watch(timeout: float, seconds: str) -> None:
    client, transport = client_over(page(version="10"), Stream((line("ADDED", in_phase("Running")),)))
    await client.wait_for(kinds.POD, "a", RUNNING, timeout=timeout)
    assert transport.requests[1].query["timeoutSeconds"] == seconds


async def test_wait_after_deadline_has_no_remaining_time() -> None:
    given: list[float] = []

    async def ask(_: ListOptions, left: float) -> ResourceList[Resource]:
        given.append(left)
        return await asyncio.Future()

    def watch(*_: object) -> Any:
        raise NotImplementedError

    with pytest.raises(
        WaitTimeoutError, check=having(condition="creation", last_seen="the server has not responded yet")
    ):
        await wait_until(Waiting("a", created()), ask, watch, field_selector="x=y", what="it", until=-5.0, limit=3.0)
    assert given == [0.0]


async def test_watch_after_deadline_requests_one_second() -> None:
    asked: list[int | None] = []

    async def ask(*_: object) -> ResourceList[Resource]:
        raise NotImplementedError

    def watch(options: ListOptions, left: float) -> Any:
        asked.append(options.timeout_seconds)
        raise TransportError("late", method="GET", path="/x")

    waiting = Waiting("a", created())
    waiting.saw_list([], "9", now=0.0, random=0.0)
    with pytest.raises(WaitTimeoutError):
        await wait_until(waiting, ask, watch, field_selector="x=y", what="it", until=-5.0, limit=3.0)
    assert asked == [1]


async def test_foreign_timeout_error_during_wait_is_not_converted() -> None:
    async def ask(*_: object) -> ResourceList[Resource]:
        raise TimeoutError("another's")

    def watch(*_: object) -> Any:
        raise NotImplementedError

    with pytest.raises(TimeoutError, match="another's") as caught:
        await wait_until(Waiting("a", created()), ask, watch, field_selector="x=y", what="it", until=9.0, limit=9.0)
    assert type(caught.value) is TimeoutError


async def test_deletion_ends_a_wait_unless_it_is_ignored() -> None:
    there = {"metadata": {**pod("a")["metadata"], "uid": "u"}}
    next_one = {**in_phase("Running", version="13"), "metadata": {**pod("a", version="13")["metadata"], "uid": "v"}}
    script = (line("DELETED", there), Pause(3.0), line("ADDED", next_one))
    client, _ = client_over(page(there, version="10"), Stream(script))
    with pytest.raises(NotFoundError, match=r'pods "a" .*status\.phase'):
        await client.wait_for(kinds.POD, "a", RUNNING)
    client, _ = client_over(page(there, version="10"), Stream(script))
    found = await client.wait_for(kinds.POD, "a", RUNNING, ignore_deletion=True)
    assert found.uid == "v"
