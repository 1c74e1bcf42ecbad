"""The informer against servers and networks that misbehave, over real sockets, in virtual time.

``scene`` checks after each test that the cache equals the server, that each handler's story makes sense, that requests
were not too many, and that nothing is left open.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.status import ExpiredError, ServiceUnavailableError, TooManyRequestsError
from deltaloop.api.watch_event import MalformedEventError
from deltaloop.cache import Operation, Recovery
from deltaloop.client.errors import StreamEndedError
from deltaloop.testing import Corrupt, Cut, Delay, Direction, HalfOpen, RelayFault, Reset, Stall, Throttle
from tests.hostile.scene import Scene, scene
from tests.hostile.scripted_server import HTML, Reply, WatchList, event_line, status_reply
from tests.nightly import by_day


def errors(made: Scene) -> list[type[BaseException]]:
    return [type(reaction.error) for reaction in made.reactions]


async def test_informer_without_faults_needs_one_list_and_one_watch() -> None:
    async with scene() as made:
        made.server.put("object-0", "second")
        made.server.remove("object-1")
        await made.settled()
        assert [asked.verb for asked in made.server.asked] == ["list", "watch"]
        assert made.reactions == []
        assert ("update", "object-0") in made.recorder.calls
        assert ("delete", "object-1") in made.recorder.calls


# The connection


async def test_cut_in_middle_of_object() -> None:
    async with scene() as made:
        stream = await made.stream()
        whole = event_line("MODIFIED", made.server.put_silently("object-0", "second"))
        made.server.events.append((made.server.version, "MODIFIED", made.server.objects["object-0"]))
        stream.chunk(whole[: len(whole) // 2])
        await asyncio.sleep(1.0)
        made.relay.inject(Cut(), on=made.watch_connection)
        await made.settled()
        assert errors(made) == [StreamEndedError]
        assert made.reactions[0].recovery is Recovery.WATCH_NOW
        assert made.server.listed == 1, "a watch that broke resumes, it does not list again"


async def test_clean_end_in_middle_of_object() -> None:
    async with scene() as made:
        stream = await made.stream()
        whole = event_line("MODIFIED", made.server.put_silently("object-0", "second"))
        made.server.events.append((made.server.version, "MODIFIED", made.server.objects["object-0"]))
        await asyncio.sleep(2.0)
        stream.chunk(event_line("MODIFIED", made.server.objects["object-1"]))
        stream.chunk(whole[:-20])
        stream.end()
        await made.settled()
        assert errors(made) == [StreamEndedError]


@pytest.mark.parametrize("at", [0, 1, 3, 9, 60])
@pytest.mark.parametrize("fault", [Cut, Reset])
async def test_cut_in_middle_of_chunk(fault: type[Cut | Reset], at: int) -> None:
    async with scene() as made:
        await made.stream()
        await asyncio.sleep(2.0)
        made.relay.inject(fault(after_bytes=at), on=made.watch_connection)
        made.server.put("object-0", "second")
        await made.settled()
        assert made.server.listed <= 2


@pytest.mark.parametrize("at", [0, 10, 100, 200, 400])
async def test_cut_in_middle_of_list(at: int) -> None:
    loop = asyncio.get_running_loop()
    async with scene(wait=False) as made:
        made.relay.plan(Cut(after_bytes=at), connections=2)
        await made.settled()
        assert loop.time() >= 2.0, "the client waits a second before each repeat"
        assert made.relay.accepted == 4
        assert made.server.listed <= 3


@pytest.mark.parametrize("fault", [Stall(), HalfOpen()])
async def test_stalled_stream_ends_at_deadline(fault: RelayFault) -> None:
    loop = asyncio.get_running_loop()
    async with scene() as made:
        await made.stream()
        asked = made.server.asked[-1]
        made.relay.inject(fault, on=made.watch_connection)
        made.server.put("object-0", "second")
        await made.settled()
        assert 0 <= loop.time() - (asked.at + int(asked.query["timeoutSeconds"]) + 15) < 2
        assert made.server.asked[-1].version == asked.version, "it resumes where it was"
        assert made.server.listed == 1


@pytest.mark.parametrize("fault", [Stall(), HalfOpen()])
async def test_stalled_stream_with_bookmarks_ends_early(fault: RelayFault) -> None:
    loop = asyncio.get_running_loop()
    async with scene() as made:
        await made.stream()
        await asyncio.sleep(10)
        made.server.send_bookmark()
        await asyncio.sleep(1)
        made.relay.inject(fault, on=made.watch_connection)
        silent_since = loop.time() - 1
        made.server.put("object-0", "second")
        await made.settled()
        assert 90 <= loop.time() - silent_since < 92
        assert made.server.listed == 1


async def test_slow_network_causes_no_errors() -> None:
    async with scene(wait=False, objects=20) as made:
        made.relay.plan(Delay(seconds=2.0), Throttle(bytes_per_second=2000), connections=None)
        await made.settled()
        made.server.put("object-0", "second")
        await made.settled()
        assert made.reactions == []


@pytest.mark.parametrize("at", [0, 3, 8, 16])
async def test_corrupted_framing_and_events_are_detected(at: int) -> None:
    async with scene() as made:
        await made.stream()
        await asyncio.sleep(2.0)
        # The highest bit: no framing and no JSON survives it.
        made.relay.inject(Corrupt(after_bytes=at, mask=0x80), on=made.watch_connection)
        made.server.put("object-0", "second")
        await made.settled()


async def test_undecodable_event_causes_list() -> None:
    async with scene() as made:
        await made.stream()
        await asyncio.sleep(2.0)
        line = event_line("MODIFIED", made.server.put_silently("object-0", "second"))
        made.relay.inject(Corrupt(after_bytes=line.index(b"second") + 6, mask=0x80), on=made.watch_connection)
        made.server.streams[-1].line("MODIFIED", made.server.objects["object-0"])
        await made.settled()
        kept = made.informer.indexer.get_by_key("default/object-0")
        assert kept is not None
        assert b"second" in kept.raw
        assert any("object default/object-0 of" in str(reaction.error) for reaction in made.reactions)


async def test_connection_refused_for_a_minute() -> None:
    async with scene() as made:
        await asyncio.sleep(2.0)
        made.relay.refuse()
        made.relay.inject(Reset())
        made.server.put("object-0", "second")
        made.server.remove("object-1")
        await asyncio.sleep(60)
        tried = len(made.reactions)
        assert 3 <= tried <= 10, "the backoff grows"
        assert not made.is_equal()
        await made.relay.accept()
        await made.settled(seconds=61)
        assert made.server.listed == 1, "the watch resumed, nothing was listed again"


async def test_connection_refused_from_the_beginning() -> None:
    async with scene(wait=False) as made:
        made.relay.refuse()
        await asyncio.sleep(60)
        assert len(made.reactions) <= 10
        await made.relay.accept()
        await made.settled(seconds=61)


# What the server says


async def test_expired_token_in_paged_list() -> None:
    async with scene(page_size=2, objects=5, wait=False) as made:
        made.server.lists.extend([page(made, 2), status_reply(410, "Expired", message="the token has expired")])
        await made.settled()
        queries = [asked.query for asked in made.server.asked if asked.verb == "list"]
        assert [query.get("limit") for query in queries] == ["2", "2", None]
        assert made.reactions[0].operation is Operation.LATER_PAGE


def page(made: Scene, size: int) -> Reply:
    """Make the first page of a list at "0", which the server would answer as a whole."""
    items = [made.server.objects[name] for name in sorted(made.server.objects)[:size]]
    metadata = {"resourceVersion": str(made.server.version), "continue": str(size)}
    fields = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}
    return Reply(200, json.dumps(fields).encode())


async def test_expired_error_event() -> None:
    async with scene() as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        made.server.put_silently("object-0", "second")
        made.server.objects.pop("object-1")
        made.server.objects["object-2"]["metadata"]["uid"] = "another"
        made.server.expire()
        stream.chunk(b'{"type":"ERROR","object":' + status_reply(410, "Expired", message="too old").body + b"}\n")
        await made.settled()
        assert errors(made) == [ExpiredError]
        assert ("delete", "object-1") in made.recorder.calls


async def test_expired_when_a_watch_resumes() -> None:
    async with scene() as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        made.server.put_silently("object-0", "second")
        made.server.expire()
        stream.end()
        await made.settled()
        assert errors(made) == [ExpiredError]
        assert made.server.listed == 2


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("retry_after", [None, 7])
async def test_rejected_lists_are_retried(code: int, retry_after: int | None) -> None:
    async with scene(wait=False) as made:
        made.server.lists.extend([status_reply(code, retry_after=retry_after)] * 3)
        await made.settled()
        times = [asked.at for asked in made.server.asked if asked.verb == "list"]
        assert len(times) == 4
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert all(gap >= (retry_after or 0.8) - 1e-6 for gap in gaps), gaps


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("retry_after", [None, 7])
async def test_rejected_watches_are_retried(code: int, retry_after: int | None) -> None:
    async with scene(wait=False) as made:
        made.server.watch_answers.extend([status_reply(code, retry_after=retry_after)] * 3)
        await made.settled()
        times = [asked.at for asked in made.server.asked if asked.verb == "watch"]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert all(gap >= (retry_after or 0.8) - 1e-6 for gap in gaps), gaps
        expected = {429: TooManyRequestsError, 503: ServiceUnavailableError}
        if code in expected:
            assert errors(made)[0] is expected[code]


@pytest.mark.parametrize("code", [429, 500])
async def test_error_events_are_retried(code: int) -> None:
    async with scene() as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        stream.chunk(b'{"type":"ERROR","object":' + status_reply(code).body + b"}\n")
        made.server.put("object-0", "second")
        await made.settled()
        assert len(made.reactions) == 1
        assert made.reactions[0].delay >= 0.8


@pytest.mark.parametrize("status", [200, 502])
async def test_html_instead_of_a_list(status: int) -> None:
    async with scene(wait=False) as made:
        made.server.lists.extend([Reply(status, HTML, content_type="text/html")] * 3)
        await made.settled()
        text = str(made.reactions[0].error)
        assert "Please log in" in text if status == 502 else "not JSON" in text
        assert "DOCTYPE" not in text


@pytest.mark.parametrize("status", [200, 502])
async def test_html_instead_of_a_watch(status: int) -> None:
    async with scene(wait=False) as made:
        made.server.watch_answers.extend([Reply(status, HTML, content_type="text/html")] * 2)
        await made.settled()
        assert made.reactions
        assert "DOCTYPE" not in str(made.reactions[0].error)


async def test_malformed_list_responses() -> None:
    async with scene(wait=False) as made:
        made.server.lists.extend([Reply(200, b""), Reply(200, b"null"), Reply(200, b"{}"), Reply(200, b'{"items":7}')])
        await made.settled()
        assert errors(made) == [MalformedObjectError] * 4


@pytest.mark.parametrize("pieces", by_day([1, 300], [300]))
async def test_a_twenty_megabyte_object(pieces: int) -> None:
    async with scene() as made:
        stream = await made.stream()
        large = made.server.put_silently("large", "x" * 20_000_000)
        made.server.events.append((made.server.version, "ADDED", large))
        line = event_line("ADDED", large)
        size = len(line) // pieces + 1
        for start in range(0, len(line), size):
            stream.chunk(line[start : start + size])
            await stream.writer.drain()
        await made.settled()
        made.server.remove("large")
        await made.settled()
        made.server.expire()


@pytest.mark.nightly
async def test_a_twenty_megabyte_object_in_a_list() -> None:
    async with scene(wait=False) as made:
        made.server.put_silently("large", "x" * 20_000_000)
        await made.settled()
        made.server.remove("large")
        await made.settled()


BAD_OBJECTS = [
    b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n',
    b'{"type":"ADDED","object":{"kind":"ConfigMap"}}\n',
    b'{"type":"ADDED","object":[]}\n',
    b'{"type":"SURPRISE","object":{"metadata":{"name":"x"}}}\n',
    b'{"type":"ADDED"}\n',
    b"\xff\xfe\n",
    b"[" * 5000 + b"\n",
]


@pytest.mark.parametrize("bad", BAD_OBJECTS)
async def test_malformed_event_between_valid_events(bad: bytes) -> None:
    async with scene() as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        made.server.put("object-0", "second")
        stream.chunk(bad)
        made.server.put("object-1", "second")
        await made.settled()
        assert errors(made) == [MalformedEventError]
        assert made.reactions[0].delay >= 0.8


async def test_event_without_name_is_skipped() -> None:
    async with scene() as made:
        stream = await made.stream()
        stream.chunk(b'{"type":"ADDED","object":{"metadata":{}}}\n')
        made.server.put("object-1", "second")
        await made.settled()
        assert made.reactions == []
        assert made.informer.statistics().skipped == 1


async def test_next_list_corrects_duplicated_and_reordered_events() -> None:
    async with scene() as made:
        stream = await made.stream()
        first = made.server.put("object-0", "second")
        gone = made.server.remove("object-1")
        stream.line("ADDED", first)
        stream.line("DELETED", gone)
        stream.line("DELETED", gone)
        stream.line("MODIFIED", {**gone, "metadata": {**gone["metadata"], "resourceVersion": "101"}})
        stream.line("ADDED", first)
        stream.line("DELETED", made.server.objects["object-2"])
        await made.until(lambda: ("delete", "object-2") in made.recorder.calls, "the events were handled")
        await asyncio.sleep(1.0)
        assert not made.is_equal(), "nothing tells a false event from a true one, until the next list"
        made.server.expire()
        stream.chunk(b'{"type":"ERROR","object":' + status_reply(410, "Expired").body + b"}\n")
        await made.settled()


async def test_object_recreated_without_watch() -> None:
    async with scene() as made:
        await asyncio.sleep(2.0)
        made.relay.refuse()
        made.relay.inject(Reset())
        made.server.remove("object-0")
        made.server.put("object-0", "another")
        made.server.expire()
        await asyncio.sleep(5)
        await made.relay.accept()
        await made.settled()
        assert ("update", "object-0") in made.recorder.calls


async def test_bookmarks_only_for_hours() -> None:
    await bookmarks_only(minutes=4 * 60)


async def bookmarks_only(*, minutes: int) -> None:
    async with scene() as made:
        for _ in range(minutes):
            await asyncio.sleep(60)
            made.server.version += 10
            made.server.send_bookmark()
        assert made.server.listed == 1
        assert made.reactions == []
        seen = [int(asked.version) for asked in made.server.asked if asked.verb == "watch"]
        assert seen == sorted(seen)
        assert seen[-1] > 100, "a watch begins where the last bookmark was"


async def test_streams_that_end_immediately() -> None:
    async with scene() as made:
        for number in range(8):
            stream = await made.stream()
            made.server.put("object-0", str(number))
            stream.end()
            await made.until(lambda ended=stream: ended not in made.server.streams, "the stream has ended")
        await made.settled()


def reset_counter(made: Scene) -> None:
    """The server begins anew, as after a restore of an old backup: same names, other objects, small versions."""
    made.server.version = 1
    made.server.events.clear()
    made.server.objects.clear()
    for name in ("object-0", "object-9"):
        made.server.put(name, "reborn")


async def test_server_with_reset_counter_and_error() -> None:
    async with scene() as made:
        await asyncio.sleep(2.0)
        made.relay.inject(Reset())
        reset_counter(made)
        await made.settled()
        assert ("delete", "object-1") in made.recorder.calls


@pytest.mark.parametrize("watch_list", [False, True])
async def test_server_with_reset_counter_without_error(watch_list: bool) -> None:
    async with scene(watch_list=watch_list) as made:
        made.server.is_silent_about_the_future = True
        await asyncio.sleep(2.0)
        made.relay.inject(Reset())
        reset_counter(made)
        await made.settled(seconds=60)
        assert ("delete", "object-1") in made.recorder.calls


async def test_malformed_object_in_list_is_skipped() -> None:
    async with scene(wait=False) as made:
        items = [*made.server.objects.values()]
        fields = {
            "metadata": {"resourceVersion": str(made.server.version)},
            "items": [items[0], {"kind": "ConfigMap"}, *items[1:]],
        }
        made.server.lists.extend([Reply(200, json.dumps(fields).encode())] * 100)
        await made.settled(seconds=600)
        assert made.informer.statistics().skipped == 1


# Lists that are streamed


async def test_a_streamed_list_is_one_request_for_list_and_watch() -> None:
    async with scene(watch_list=True) as made:
        made.server.put("object-0", "second")
        await made.settled()
        assert [asked.verb for asked in made.server.asked] == ["watch"]
        assert made.reactions == []


async def test_streamed_list_without_end_falls_back_to_pages() -> None:
    loop = asyncio.get_running_loop()
    async with scene(watch_list=True, wait=False) as made:
        made.server.watch_list = WatchList.UNENDING
        await made.settled()
        assert 30 <= loop.time() < 32
        assert [asked.verb for asked in made.server.asked] == ["watch", "probe", "list", "watch"]
        assert len(made.reactions) == 1


async def test_server_without_streamed_lists_gets_paged_lists() -> None:
    async with scene(watch_list=True, wait=False) as made:
        made.server.watch_list = WatchList.REFUSED
        await made.settled()
        assert [asked.verb for asked in made.server.asked] == ["watch", "list", "watch"]
        assert asyncio.get_running_loop().time() < 1.0


@pytest.mark.parametrize("at", [0, 50, 150, 400, 700])
@pytest.mark.parametrize("fault", [Cut, Reset])
async def test_cut_streamed_list_is_repeated(fault: type[Cut | Reset], at: int) -> None:
    async with scene(watch_list=True, wait=False) as made:
        made.relay.plan(fault(after_bytes=at), connections=2)
        await made.settled()
        assert made.informer.statistics().lists == 1, "half a list is no list"


@pytest.mark.parametrize("fault", [Stall(after_bytes=400), HalfOpen(after_bytes=400)])
async def test_stalled_streamed_list_is_replaced(fault: RelayFault) -> None:
    loop = asyncio.get_running_loop()
    async with scene(watch_list=True, wait=False) as made:
        made.relay.plan(fault)
        await made.settled()
        assert 30 <= loop.time() < 32


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_rejected_streamed_lists_are_retried(code: int) -> None:
    async with scene(watch_list=True, wait=False) as made:
        made.server.watch_answers.extend([status_reply(code)] * 3)
        await made.settled()


async def test_expired_watch_repeats_streamed_list() -> None:
    async with scene(watch_list=True) as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        made.server.put_silently("object-0", "second")
        made.server.objects.pop("object-1")
        made.server.expire()
        stream.chunk(b'{"type":"ERROR","object":' + status_reply(410, "Expired", message="too old").body + b"}\n")
        await made.settled()
        assert ("delete", "object-1") in made.recorder.calls
        assert {asked.verb for asked in made.server.asked} <= {"watch", "probe"}


async def test_faults_on_requests_only() -> None:
    async with scene(wait=False) as made:
        made.relay.plan(Cut(after_bytes=20, direction=Direction.TO_SERVER), connections=1)
        made.relay.plan(Stall(direction=Direction.TO_SERVER), connections=1)
        await made.settled()
