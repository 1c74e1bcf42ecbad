from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.status import ExpiredError, ForbiddenError
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.client import Client, ClientConfig, HttpResponse, WatchLimitOptions
from deltaloop.client.core.watch_limits import WatchLimits
from deltaloop.client.verbs.watch import WatchStream
from deltaloop.errors import ResponseTooLargeError, StreamEndedError, TransportError
from deltaloop.testing import run_virtual
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, collect, pod, text_answer
from tests.nightly import examples


def line(kind: str, name: str = "a", *, version: str = "1") -> bytes:
    return json.dumps({"type": kind, "object": pod(name, version=version)}).encode() + b"\n"


BOOKMARK = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}\n'
EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,'
    b'"message":"too old resource version: 1 (297)"}}\n'
)


def client_over(*script: bytes | Pause | Exception) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(Stream(script))
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


async def read(client: Client, options: ListOptions = ListOptions()) -> list[WatchEvent]:  # noqa: B008 - immutable
    async with client.watch(kinds.POD, options=options) as events:
        return await collect(events)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_watch_delivers_events_in_order_until_end() -> None:
    client, transport = client_over(line("ADDED", "a"), line("MODIFIED", "b") + line("DELETED", "c"), BOOKMARK)
    events = await read(client, ListOptions(resource_version="5", allow_watch_bookmarks=True, timeout_seconds=300))
    assert [(event.type, event.object.name) for event in events] == [
        (EventType.ADDED, "a"),
        (EventType.MODIFIED, "b"),
        (EventType.DELETED, "c"),
        (EventType.BOOKMARK, ""),
    ]
    assert all(event.object.resource_type is kinds.POD for event in events)
    (request,) = transport.requests
    assert (request.method, request.path, request.timeout) == ("GET", "/api/v1/pods", 30.0)
    assert request.query == {
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "watch": "true",
    }
    assert transport.open_streams == 0


@settings(max_examples=examples(30))
@given(st.lists(st.integers(0, 400), max_size=12))
def test_chunk_boundaries_do_not_matter(cuts: list[int]) -> None:
    data = line("ADDED", "ä") + b"\n" + line("MODIFIED", "b") + BOOKMARK
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(edges)]

    async def run() -> list[str]:
        client, _ = client_over(*chunks)
        return [event.type.value for event in await read(client)]

    assert run_virtual(run()) == ["ADDED", "MODIFIED", "BOOKMARK"]


async def test_large_object_is_read_in_small_pieces() -> None:
    big: dict[str, Any] = {**pod("big"), "data": "x" * 20_000_000}
    data = json.dumps({"type": "ADDED", "object": big}).encode() + b"\n"
    client, _ = client_over(*(data[start : start + 65_536] for start in range(0, len(data), 65_536)))
    (event,) = await read(client)
    assert len(event.object.raw) > 20_000_000


async def test_empty_lines_are_passed_over() -> None:
    client, _ = client_over(b"\n\r\n  \n", line("ADDED"), b"\n", b" ")
    assert len(await read(client)) == 1


async def test_error_event_is_raised_after_earlier_events() -> None:
    client, _ = client_over(line("ADDED", "a") + EXPIRED + line("ADDED", "b"))
    async with client.watch(kinds.POD) as events:
        assert (await anext(events)).object.name == "a"
        with pytest.raises(ExpiredError, match="too old resource version"):
            await anext(events)
        assert await anext(events, None) is None


async def test_batch_has_received_events_and_error_follows_them() -> None:
    many = b"".join(line("ADDED", f"p{number}") for number in range(230))
    client, _ = client_over(line("ADDED", "a") + line("ADDED", "b"), many, line("ADDED", "c") + EXPIRED + many)
    async with client.watch(kinds.POD) as events:
        assert (await anext(events)).object.name == "a"
        assert [event.object.name for event in await events.batch()] == ["b"]
        assert [len(await events.batch()) for _ in range(3)] == [100, 100, 30]
        assert [event.object.name for event in await events.batch()] == ["c"]
        with pytest.raises(ExpiredError, match="too old resource version"):
            await events.batch()
        assert await events.batch() == []
        assert await anext(events, None) is None


async def test_single_read_after_a_batch_raises_the_error_of_the_batch() -> None:
    client, _ = client_over(line("ADDED", "a") + EXPIRED)
    async with client.watch(kinds.POD) as events:
        assert len(await events.batch()) == 1
        with pytest.raises(ExpiredError):
            await anext(events)
        assert await events.batch() == []


@pytest.mark.parametrize("bad", [b"not json s3cret\n", b'{"type":"ADDED"}\n', b'{"type":"ODD","object":{}}\n'])
async def test_invalid_event_line_raises_error(bad: bytes) -> None:
    client, _ = client_over(line("ADDED") + bad)
    async with client.watch(kinds.POD) as events:
        assert (await anext(events)).object.name == "a"
        with pytest.raises(MalformedEventError) as caught:
            await anext(events)
    assert "s3cret" not in str(caught.value)


async def test_stream_that_ends_inside_event_raises_error() -> None:
    client, _ = client_over(line("ADDED") + line("ADDED")[:20])
    async with client.watch(kinds.POD) as events:
        await anext(events)
        with pytest.raises(StreamEndedError, match="20 bytes"):
            await anext(events)
        assert await anext(events, None) is None


async def test_last_event_without_line_feed_is_delivered() -> None:
    client, _ = client_over(line("ADDED")[:-1])
    assert len(await read(client)) == 1


async def test_last_error_event_without_line_feed_is_raised() -> None:
    client, _ = client_over(EXPIRED[:-1])
    with pytest.raises(ExpiredError):
        await read(client)


async def test_broken_watch_raises_error() -> None:
    broken = StreamEndedError("reset", method="GET", path="/api/v1/pods")
    client, transport = client_over(line("ADDED"), broken)
    async with client.watch(kinds.POD) as events:
        await anext(events)
        with pytest.raises(StreamEndedError, match="reset"):
            await anext(events)
        assert await anext(events, None) is None
    assert transport.open_streams == 0


async def test_overdue_watch_ends() -> None:
    client, transport = client_over(Pause(3600.0))
    with pytest.raises(StreamEndedError, match=r"15 s .*300 s"):
        await read(client, ListOptions(timeout_seconds=300))
    assert now() == 315.0
    assert transport.open_streams == 0


async def test_overdue_watch_with_events_ends() -> None:
    client, _ = client_over(*[step for _ in range(100) for step in (Pause(10.0), line("MODIFIED"))])
    with pytest.raises(StreamEndedError, match="15 s"):
        await read(client, ListOptions(timeout_seconds=300))
    assert now() == 315.0


async def test_silent_watch_ends_after_bookmark() -> None:
    client, _ = client_over(Pause(200.0), line("ADDED"), Pause(200.0), BOOKMARK, Pause(3600.0))
    with pytest.raises(StreamEndedError, match="90 s"):
        await read(client)
    assert now() == 490.0


async def test_partial_lines_keep_watch_open() -> None:
    data = line("ADDED")
    pieces = [step for byte in range(10) for step in (Pause(60.0), data[byte : byte + 1])]
    client, _ = client_over(BOOKMARK, *pieces, data[10:])
    assert len(await read(client)) == 2


async def test_without_limits_silence_is_borne() -> None:
    client, _ = client_over(Pause(100_000.0), line("ADDED"))
    assert len(await read(client)) == 1


def stream_of(source: AsyncIterator[bytes], *, timeout_seconds: int | None = None) -> WatchStream:
    limits = WatchLimits(WatchLimitOptions(), now=0.0, timeout_seconds=timeout_seconds)
    return WatchStream(source, kinds.POD, "/api/v1/pods", limits, metadata_only=False, drop_managed_fields=False)


class FromQueue:
    """Slices that somebody else puts in; a cancelled read takes none."""

    def __init__(self) -> None:
        self.slices: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    def __aiter__(self) -> FromQueue:
        return self

    async def __anext__(self) -> bytes:
        found = await self.slices.get()
        if isinstance(found, Exception):
            raise found
        return found


async def test_canceled_read_loses_no_event() -> None:
    source = FromQueue()
    events = stream_of(source)
    data = line("ADDED", "a") + line("ADDED", "b")
    source.slices.put_nowait(data[:30])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5.0):
            await anext(events)
    source.slices.put_nowait(data[30:])
    assert [(await anext(events)).object.name for _ in range(2)] == ["a", "b"]


class Arriving(FromQueue):
    """Slices that are offered when they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self._consume: Callable[[], bool]
        self._arrived: list[bytes] = []

    def on_arrival(self, consume: Callable[[], bool]) -> None:
        self._consume = consume

    def take(self) -> bytes:
        return self._arrived.pop()

    def put(self, data: bytes) -> None:
        """Offer a slice, and wake the task if nothing took it."""
        self._arrived.append(data)
        if not self._consume():
            self.slices.put_nowait(b"".join(self._arrived))
            self._arrived.clear()


async def test_arriving_events_are_consumed_without_waking_the_task_until_one_is_invalid() -> None:
    source, seen = Arriving(), list[str]()
    events = stream_of(source)

    def consume() -> bool:
        seen.extend(event.object.name for event in events.received())
        return True

    source.put(line("ADDED", "a"))
    assert [event.object.name for event in await events.batch()] == ["a"], "nobody consumes yet"
    events.consume = consume
    reading = asyncio.create_task(events.batch())
    await asyncio.sleep(1.0)
    source.put(line("ADDED", "b")[:20])
    source.put(line("ADDED", "b")[20:] + line("ADDED", "c"))
    await asyncio.sleep(1.0)
    assert (seen, reading.done(), events.last_byte_at) == (["b", "c"], False, 1.0)
    source.put(line("ADDED", "d") + b"{}\n")
    with pytest.raises(MalformedEventError):
        await reading
    assert seen == ["b", "c", "d"]
    assert await events.batch() == []


async def test_error_of_consumer_is_raised_by_read() -> None:
    source = Arriving()
    events = stream_of(source)

    def consume() -> bool:
        raise RuntimeError("full")

    events.consume = consume
    reading = asyncio.create_task(events.batch())
    await asyncio.sleep(1.0)
    source.put(line("ADDED", "a"))
    with pytest.raises(RuntimeError, match="full"):
        await reading


async def test_cancellation_closes_watch() -> None:
    client, transport = client_over(Pause(1000.0))
    task = asyncio.create_task(read(client))
    await asyncio.sleep(1.0)
    assert transport.open_streams == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.open_streams == 0


async def test_errors_of_opening_are_raised_on_entering() -> None:
    forbidden = Stream((text_answer("no", status=403).body,), status=403)
    refused = TransportError("refused", method="GET", path="/api/v1/pods", refused=True)
    client = Client(ClientConfig(server="http://fake"), transport=FakeTransport(forbidden, refused))
    with pytest.raises(ForbiddenError):
        await client.watch(kinds.POD).__aenter__()
    with pytest.raises(TransportError) as caught:
        await client.watch(kinds.POD).__aenter__()
    assert caught.value.refused


async def test_watch_requests_path_of_kind_and_namespace() -> None:
    transport = FakeTransport(Stream(()), Stream(()))
    client = Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport)
    for namespace in (None, "n"):
        async with client.watch("apps/v1/Deployment", namespace=namespace, timeout=5.0) as events:
            assert await collect(events) == []
    assert [request.path for request in transport.requests] == [
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/namespaces/n/deployments",
    ]
    assert transport.requests[0].timeout == 5.0


async def test_watch_has_last_byte_time_and_pending_bytes() -> None:
    whole = line("ADDED", "a")
    client, _ = client_over(Pause(5), whole, Pause(10), whole[:20], Pause(7), whole[20:30], Pause(100), whole[30:])
    began = now()
    async with client.watch(kinds.POD) as events:
        assert (events.last_byte_at - began, events.pending_bytes) == (0.0, 0), "the headers"
        await anext(events)
        assert (events.last_byte_at - began, events.pending_bytes) == (5.0, 0)
        reading = asyncio.ensure_future(anext(events))
        await asyncio.sleep(60)
        assert (events.last_byte_at - began, events.pending_bytes) == (22.0, 30)
        await reading
        assert (events.last_byte_at - began, events.pending_bytes) == (122.0, 0)


# --- What is left when it ends ---


async def test_last_byte_time_starts_with_headers() -> None:
    answer = HttpResponse(status=200, body=line("ADDED"))
    client = Client(ClientConfig(server="http://fake"), transport=FakeTransport(After(5.0, answer)))
    async with client.watch(kinds.POD) as events:
        assert events.last_byte_at == 5.0


@pytest.mark.parametrize("read_all", [True, False])
@pytest.mark.parametrize("bad", [EXPIRED, b"not json\n"])
async def test_stream_delivers_no_events_after_a_failure(bad: bytes, read_all: bool) -> None:
    client, transport = client_over(line("ADDED", "a") + bad + line("ADDED", "b") + b"part of a li", line("ADDED", "c"))
    async with client.watch(kinds.POD) as events:
        if read_all:
            assert [event.object.name for event in await events.batch()] == ["a"]
        else:
            assert (await anext(events)).object.name == "a"
        with pytest.raises((ExpiredError, MalformedEventError)):
            await anext(events)
        assert events.pending_bytes == 0
        for _ in range(2):
            assert await events.batch() == []
            assert await anext(events, None) is None
    assert transport.open_streams == 0


@pytest.mark.parametrize("first", [b"", line("ADDED", "a")])
async def test_stream_delivers_no_events_after_a_too_large_event(first: bytes) -> None:
    transport = FakeTransport(Stream((first + b'{"x":"' + b"y" * 1000, b"y" * 1000, b'"}\n' + line("ADDED", "b"))))
    client = Client(ClientConfig(server="http://fake", max_event_bytes=500), transport=transport)
    async with client.watch(kinds.POD, namespace="n") as events:
        if first:
            assert len(await events.batch()) == 1
        with pytest.raises(ResponseTooLargeError, match="500 bytes") as caught:
            await events.batch()
        assert (caught.value.method, caught.value.path) == ("GET", "/api/v1/namespaces/n/pods")
        assert str(caught.value).startswith("GET /api/v1/namespaces/n/pods: ")
        assert (events.pending_bytes, await events.batch(), await anext(events, None)) == (0, [], None)


async def test_read_after_timeout_or_break_returns_end() -> None:
    client, _ = client_over(line("ADDED"), Pause(1000.0), line("ADDED", "late"))
    async with client.watch(kinds.POD, options=ListOptions(timeout_seconds=60)) as events:
        await anext(events)
        with pytest.raises(StreamEndedError, match=r"GET /api/v1/pods: .*15 s") as caught:
            await events.batch()
        assert (caught.value.method, caught.value.path, caught.value.sent) == ("GET", "/api/v1/pods", True)
        assert await events.batch() == []
    client, _ = client_over(StreamEndedError("reset", method="GET", path="/x"), line("ADDED"))
    async with client.watch(kinds.POD) as events:
        with pytest.raises(StreamEndedError, match="reset"):
            await events.batch()
        assert await events.batch() == []


async def test_timeout_error_of_transport_is_raised_unchanged() -> None:
    client, _ = client_over(TimeoutError("its own"), line("ADDED"))
    async with client.watch(kinds.POD, options=ListOptions(timeout_seconds=60)) as events:
        with pytest.raises(TimeoutError, match="its own") as caught:
            await anext(events)
        assert type(caught.value) is TimeoutError
        assert await events.batch() == []


async def test_white_space_after_last_event_is_ignored() -> None:
    client, _ = client_over(line("ADDED") + b" \r")
    assert len(await read(client)) == 1


async def test_error_of_lost_event_names_request() -> None:
    client, _ = client_over(b'{"type"')
    with pytest.raises(StreamEndedError, match=r"GET /api/v1/pods: .*7 bytes") as caught:
        await read(client)
    assert (caught.value.method, caught.value.path) == ("GET", "/api/v1/pods")


async def test_white_space_before_event_is_ignored() -> None:
    client, _ = client_over(b"  " + line("ADDED"))
    assert len(await read(client)) == 1


async def test_metadata_only_events() -> None:
    whole = {**pod("a"), "spec": {"x": 1}}
    client, _ = client_over(json.dumps({"type": "ADDED", "object": whole}).encode() + b"\n")
    async with client.watch(kinds.POD, metadata_only=True) as events:
        event = await anext(events)
    assert (event.type, event.object.name) == (EventType.ADDED, "a")
    assert "spec" not in event.object.to_dict()


@pytest.mark.parametrize("broken", [None, StreamEndedError("reset", method="GET", path="/x"), TimeoutError("its own")])
async def test_data_after_the_end_is_not_read(broken: Exception | None) -> None:
    """A transport may go on giving; whoever was told of the end must not see events after it."""
    source = FromQueue()
    events = stream_of(source, timeout_seconds=60)
    if broken is not None:
        source.slices.put_nowait(broken)
    with pytest.raises(type(broken) if broken is not None else StreamEndedError):
        await anext(events)
    source.slices.put_nowait(line("ADDED"))
    assert await events.batch() == []
    assert await anext(events, None) is None


async def test_nothing_is_pending_after_a_last_event_without_a_line_feed() -> None:
    client, _ = client_over(line("ADDED")[:-1])
    async with client.watch(kinds.POD) as events:
        assert len(await events.batch()) == 1
        assert (events.pending_bytes, await events.batch()) == (0, [])
