"""Watches over HTTP: what comes, in which order, at which time, and how a stream ends."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from deltaloop.apiserver import Fault, Manifest
from deltaloop.apiserver.core.answers.rendering import WatchRendering
from deltaloop.apiserver.persistence import DataFile
from tests.apiserver.serving import (
    CONFIG_MAPS,
    CRDS,
    WIDGETS,
    Serving,
    Watch,
    config_map,
    seen,
    serving,
    widget,
    widget_crd,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_headers_are_sent_before_the_first_event() -> None:
    async with (
        serving() as on,
        on.call.watch(f"{CONFIG_MAPS}?watch=true&resourceVersion={on.server.revision}") as watch,
    ):
        assert asyncio.get_running_loop().time() == 0
        assert watch.response.headers["Content-Type"] == "application/json"
        assert watch.response.headers["Transfer-Encoding"] == "chunked"


async def test_watch_without_revision_begins_with_existing_objects() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        async with on.call.watch("/api/v1/configmaps?watch=1") as watch:
            first = await watch.next()
            assert first == {"type": "ADDED", "object": made.json}
            b = await on.call.created(CONFIG_MAPS, config_map("b"))
            assert seen(await watch.next()) == ("ADDED", "b", b.revision)


async def test_watch_sends_changes_after_a_revision_and_delete_revisions() -> None:
    async with serving() as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a", {"x": "1"}))
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={a.revision}") as watch:
            changed = await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "2"}})
            await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "2"}})  # changes nothing: no event
            await on.call.delete(f"{CONFIG_MAPS}/a")
            assert await watch.next() == {"type": "MODIFIED", "object": changed.json}
            last = await watch.next()
            assert seen(last) == ("DELETED", "a", str(on.server.revision))
            assert last["object"]["data"] == {"x": "2"}


async def test_selectors_turn_changes_into_added_and_deleted() -> None:
    async with serving() as on:
        start = on.server.revision
        query = f"{CONFIG_MAPS}?watch=1&resourceVersion={start}&labelSelector=team%3Dx"
        async with on.call.watch(query) as watch:
            await on.call.created(CONFIG_MAPS, config_map("a"))
            joined = await on.call.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"team": "x"}}})
            stays = await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
            left = await on.call.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"team": "y"}}})
            await on.call.delete(f"{CONFIG_MAPS}/a")
            back = await on.call.created(CONFIG_MAPS, config_map("b", labels={"team": "x"}))
            assert seen(await watch.next()) == ("ADDED", "a", joined.revision)
            assert seen(await watch.next()) == ("MODIFIED", "a", stays.revision)
            gone = await watch.next()
            assert seen(gone) == ("DELETED", "a", left.revision)
            assert gone["object"]["metadata"]["labels"] == {"team": "x"}  # the object before, at the new revision
            assert seen(await watch.next()) == ("ADDED", "b", back.revision)


async def test_single_object_can_be_watched_by_name() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db") as watch:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b"))
        assert seen(await watch.next())[1] == "b"


async def test_namespaced_watch_sends_only_its_namespace() -> None:
    async with serving() as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "default-2"}})
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
            await on.call.created("/api/v1/namespaces/default-2/configmaps", config_map("other"))
            await on.call.created(CONFIG_MAPS, config_map("mine"))
            assert seen(await watch.next())[1] == "mine"


async def test_expired_revision_sends_an_error_event_and_ends() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        on.server.compact()
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion=1") as watch:
            (error,) = await watch.rest()
        assert error["type"] == "ERROR"
        status = error["object"]
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"] == f"too old resource version: 1 ({on.server.revision})"


async def test_watch_from_a_future_revision_waits() -> None:
    async with serving() as on:
        future = on.server.revision + 1
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={future}") as watch:
            await on.call.created(CONFIG_MAPS, config_map("a"))
            await on.call.created(CONFIG_MAPS, config_map("b"))
            assert seen(await watch.next()) == ("ADDED", "b", str(future + 1))


async def test_invalid_resource_version_gives_an_http_error() -> None:
    async with serving() as on:
        (await on.call.get(f"{CONFIG_MAPS}?watch=1&resourceVersion=x")).refuses(500, "")


async def test_timeout_seconds_ends_the_watch_without_an_event() -> None:
    async with serving() as on:
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion=0&timeoutSeconds=7") as watch:
            assert await watch.rest() == []
        assert asyncio.get_running_loop().time() == pytest.approx(7.0)


async def test_default_watch_timeout_is_30_to_60_minutes() -> None:
    async with serving() as on:
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion=0") as watch:
            assert await watch.rest() == []
        assert 1800 <= asyncio.get_running_loop().time() <= 3600


async def test_bookmarks_are_sent_every_minute_and_before_the_timeout() -> None:
    async with serving() as on:
        loop = asyncio.get_running_loop()
        query = (
            f"{CONFIG_MAPS}?watch=1&resourceVersion={on.server.revision}&timeoutSeconds=100&allowWatchBookmarks=true"
        )
        async with on.call.watch(query) as watch:
            await on.call.created("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
            mark = await watch.next()
            assert loop.time() == pytest.approx(60.0)
            assert mark == {
                "type": "BOOKMARK",
                "object": {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "metadata": {"resourceVersion": str(on.server.revision)},
                },
            }
            assert (await watch.next())["type"] == "BOOKMARK"
            assert loop.time() == pytest.approx(98.0)
            assert await watch.rest() == []
        assert loop.time() == pytest.approx(100.0)


async def test_watch_list_sends_annotated_bookmark_after_initial_events() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b"))
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with on.call.watch(f"{CONFIG_MAPS}?{query}") as watch:
            events = [await watch.next() for _ in range(3)]
            assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
            metadata = events[2]["object"]["metadata"]
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert metadata["resourceVersion"] == str(on.server.revision)
            await on.call.created(CONFIG_MAPS, config_map("c"))
            assert seen(await watch.next())[:2] == ("ADDED", "c")


async def test_legacy_watch_from_zero_gets_annotated_bookmark() -> None:
    async with (
        serving() as on,
        on.call.watch(f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=0") as watch,
    ):
        event = await watch.next()
        assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_send_initial_events_false_skips_initial_events() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        async with on.call.watch(f"{CONFIG_MAPS}?{query}") as watch:
            await on.call.created(CONFIG_MAPS, config_map("b"))
            assert seen(await watch.next())[1] == "b"


async def test_watch_list_from_a_future_revision_times_out_after_three_seconds() -> None:
    async with serving() as on:
        future = on.server.revision + 5
        query = f"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={future}"
        async with on.call.watch(f"{CONFIG_MAPS}?{query}") as watch:
            (error,) = await watch.rest()
        assert error["object"]["code"] == 504
        assert error["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert asyncio.get_running_loop().time() == pytest.approx(3.0)


@pytest.mark.parametrize(
    "query",
    [
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "continue=x",
    ],
)
async def test_watch_options_are_checked(query: str) -> None:
    async with serving() as on:
        (await on.call.get(f"{CONFIG_MAPS}?watch=1&{query}")).refuses(422, "Invalid")


async def test_deprecated_watch_paths_and_named_paths() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        async with on.call.watch("/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1") as watch:
            assert [seen(event)[1] for event in await watch.rest()] == ["a"]
        assert (await on.call.get(f"{CONFIG_MAPS}/a?watch=1")).json == made.json  # no stream


async def test_columns_are_in_the_first_table_only() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1", Accept=TABLE) as watch:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b"))
        first, second = (await watch.next())["object"], (await watch.next())["object"]
        assert first["kind"] == second["kind"] == "Table"
        assert first["columnDefinitions"]
        assert second["columnDefinitions"] is None


async def test_metadata_only() -> None:
    async with serving() as on:
        accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true", Accept=accept) as watch:
            mark = await watch.next()
            assert mark["object"]["kind"] == "PartialObjectMetadata"
            assert "annotations" in mark["object"]["metadata"]
            await on.call.created(CONFIG_MAPS, config_map("a", {"x": "1"}))
            assert set((await watch.next())["object"]) == {"kind", "apiVersion", "metadata"}


async def test_deleting_the_crd_ends_the_watch_after_the_last_events() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("w"))
        async with on.call.watch(f"{WIDGETS}?watch=1") as watch:
            assert seen(await watch.next())[:2] == ("ADDED", "w")
            await on.call.delete(f"{CRDS}/widgets.example.com")
            assert [seen(event)[:2] for event in await watch.rest()] == [("DELETED", "w")]
        assert asyncio.get_running_loop().time() < 1


async def test_stopping_the_server_ends_watches_cleanly() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        reading = asyncio.create_task(watch.rest())
        await asyncio.sleep(1)
        await on.server.__aexit__(None, None, None)
        assert await reading == []
        assert asyncio.get_running_loop().time() == pytest.approx(1.0)


async def test_idle_watch_does_not_expire_because_of_another_resource() -> None:
    async with (
        serving(window=40) as on,
        on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={on.server.revision}") as watch,
    ):
        for number in range(100):
            await on.call.created("/api/v1/namespaces/default/secrets", {"metadata": {"name": f"s{number}"}})
        await on.call.created(CONFIG_MAPS, config_map("a"))
        assert seen(await watch.next())[:2] == ("ADDED", "a")


_LARGE = 12


async def test_slow_client_uses_bounded_memory_and_gets_expired() -> None:
    async with serving(window=8) as on:
        with await _client_that_does_not_read(on.server.url) as raw:
            await _write_a_lot(on)
            received = await _everything(raw)
    assert received.count(b'"type":"ADDED"') < _LARGE
    assert b'"type":"ERROR"' in received
    assert b"too old resource version" in received
    assert received.endswith(b"0\r\n\r\n")


async def test_client_that_reads_nothing_for_a_minute_is_disconnected() -> None:
    async with serving() as on:
        with await _client_that_does_not_read(on.server.url) as raw:
            await _write_a_lot(on)
            await asyncio.sleep(100)
            received = await _everything(raw)
    assert received.count(b'"type":"ADDED"') < _LARGE
    assert not received.endswith(b"0\r\n\r\n")  # the stream broke off, it did not end


def _write_in_one_turn(on: Serving, *names: str, **data: str) -> None:
    on.server.load(Manifest("test", number, config_map(name, data)) for number, name in enumerate(names))


async def _chunk(watch: Watch) -> list[str]:
    """Names in the next chunk, as the server framed it."""
    content, whole = b"", False
    while not whole:
        part, whole = await watch.response.content.readchunk()
        content += part
        if not part:
            break
    assert not content or content.endswith(b"\n")
    return [json.loads(line)["object"]["metadata"]["name"] for line in content.splitlines()]


async def test_events_of_one_iteration_are_sent_in_one_chunk() -> None:
    async with (
        serving() as on,
        on.call.watch(f"{CONFIG_MAPS}?watch=1") as one,
        on.call.watch(f"{CONFIG_MAPS}?watch=1", Accept=TABLE) as two,
    ):
        _write_in_one_turn(on, "a", "b", "c")
        assert await _chunk(one) == ["a", "b", "c"]
        content, _ = await two.response.content.readchunk()
        assert content.count(b"\n") == 3
        _write_in_one_turn(on, "d")
        assert await _chunk(one) == ["d"]
        # What is there at the beginning, too.
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1") as late:
            assert await _chunk(late) == ["a", "b", "c", "d"]


async def test_chunk_size_is_bounded() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        _write_in_one_turn(on, "a", "b", "c", "d", "e", blob="x" * 30_000)
        chunks: list[list[str]] = []
        while sum(map(len, chunks)) < 5:
            chunks.append(await _chunk(watch))
        assert chunks == [["a", "b", "c"], ["d", "e"]]


async def test_events_are_sent_one_by_one_while_a_fault_counts_them() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        on.server.faults.strike_watches(Fault(do="end", events=2))
        _write_in_one_turn(on, "a", "b", "c")
        assert [await _chunk(watch) for _ in range(3)] == [["a"], ["b"], []]


async def test_stalled_watch_reads_no_more_events_than_it_sent() -> None:
    async with serving() as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        on.server.faults.strike_watches(Fault(do="stall", events=1))
        _write_in_one_turn(on, "a", "b", "c")
        assert seen(await watch.next())[1] == "a"
        on.server.compact()
        on.server.faults.clear()
        (error,) = await watch.rest()
        assert error["object"]["reason"] == "Expired"


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data directory where it takes five seconds until something is durable."""

    async def settle(self: DataFile) -> None:
        await asyncio.sleep(5)

    monkeypatch.setattr(DataFile, "settle", settle)
    return tmp_path


async def test_events_are_sent_after_they_are_durable(slow_disk: Path) -> None:
    async with serving(data_dir=slow_disk) as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        began = asyncio.get_running_loop().time()
        _write_in_one_turn(on, "a", "b")
        assert await _chunk(watch) == ["a", "b"]
        assert asyncio.get_running_loop().time() == pytest.approx(began + 5)


@pytest.mark.parametrize(("do", "events"), [("end", 0), ("end", 1), ("end", 2), ("cut", 1)])
async def test_fault_counts_events_read_before_it_was_set(slow_disk: Path, do: str, events: int) -> None:
    async with serving(data_dir=slow_disk) as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        _write_in_one_turn(on, "a", "b", "c")
        await asyncio.sleep(1)
        assert on.server.faults.strike_watches(Fault(do=do, events=events)) == 1
        received = [await _chunk(watch) for _ in range(events)]
        assert received == [["a"], ["b"]][:events]
        if do == "end":
            assert await watch.rest() == []
        else:
            with pytest.raises(aiohttp.ClientError):
                await watch.rest()


async def test_pending_events_are_sent_before_the_server_stops(slow_disk: Path) -> None:
    async with serving(data_dir=slow_disk) as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
        reading = asyncio.create_task(watch.rest())
        _write_in_one_turn(on, "a", "b")
        await asyncio.sleep(2)
        await on.server.__aexit__(None, None, None)
        assert [seen(event)[1] for event in await reading] == ["a", "b"]


async def test_stalled_watch_does_not_delay_server_stop(slow_disk: Path) -> None:
    async with serving(data_dir=slow_disk) as on, on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:

        async def ended() -> float:
            assert await watch.rest() == []
            return asyncio.get_running_loop().time()

        end = asyncio.create_task(ended())
        _write_in_one_turn(on, "a")
        await asyncio.sleep(1)
        on.server.faults.strike_watches(Fault(do="stall"))
        await asyncio.sleep(9)
        await on.server.__aexit__(None, None, None)
        assert await end == pytest.approx(10)


async def test_watchers_of_one_format_share_the_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    line = WatchRendering.line

    def counted(self: WatchRendering, *args: object, **more: object) -> bytes:
        written.append("")
        render: Callable[..., bytes] = line
        return render(self, *args, **more)

    monkeypatch.setattr(WatchRendering, "line", counted)
    async with serving() as on:
        path = f"{CONFIG_MAPS}?watch=1&resourceVersion={on.server.revision}"
        async with (
            on.call.watch(path) as one,
            on.call.watch(path) as two,
            on.call.watch(path) as three,
            on.call.watch(path, Accept=TABLE) as table,
            on.call.watch(path, Accept=TABLE) as other_table,
        ):
            await asyncio.sleep(1)
            _write_in_one_turn(on, "a", "b")
            assert await one.next() == await two.next() == await three.next()
            first = [await table.next(), await other_table.next()]
            # Two lines for all who want objects, and two for each who wants Tables.
            assert len(written) == 2 + 2 * 2
            await asyncio.sleep(9)
            await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
            await one.next()
            await table.next()
            later = await table.next()
    cells = [each["object"]["rows"][0]["cells"] for each in (*first, later)]
    assert cells == [["a", 0, "0s"], ["a", 0, "0s"], ["a", 1, "9s"]]
    assert [bool(each["object"]["columnDefinitions"]) for each in (*first, later)] == [True, True, False]


async def test_many_watchers_get_all_events_in_order() -> None:
    async with serving() as on:
        watches = [on.call.watch(f"{CONFIG_MAPS}?watch=1") for _ in range(30)]
        opened = [await watch.__aenter__() for watch in watches]
        await asyncio.gather(*(on.call.created(CONFIG_MAPS, config_map(f"c{number}")) for number in range(20)))
        received = [[seen(await watch.next()) for _ in range(20)] for watch in opened]
        for watch in watches:
            await watch.__aexit__(None, None, None)
    revisions = [int(revision) for _, _, revision in received[0]]
    assert revisions == sorted(revisions)
    assert all(each == received[0] for each in received)


async def test_rendering_error_ends_only_the_failing_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        serving() as on,
        on.call.watch(f"{CONFIG_MAPS}?watch=1", Accept=TABLE) as broken,
        on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch,
    ):
        await asyncio.sleep(1)
        lines = WatchRendering.lines

        def fails(self: WatchRendering, *args: object, **more: object) -> tuple[bytes, int]:
            if self.shows_ages:
                raise ValueError("no Table today")
            write: Callable[..., tuple[bytes, int]] = lines
            return write(self, *args, **more)

        monkeypatch.setattr(WatchRendering, "lines", fails)
        await on.call.created(CONFIG_MAPS, config_map("a"))
        assert seen(await watch.next())[1] == "a"
        async with asyncio.timeout(1):
            with pytest.raises(aiohttp.ClientError):
                await broken.response.content.read()
    assert "request failed with an internal error" in caplog.text
    assert "no Table today" in caplog.text


async def test_disconnect_of_a_slow_client_leaves_no_tasks() -> None:
    async with serving() as on:
        raw = await _client_that_does_not_read(on.server.url)
        await _write_a_lot(on)
        # Reset at once, whatever has not been read.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        await asyncio.sleep(1)
        assert not [
            task for task in asyncio.all_tasks() if "RequestHandler" in repr(task) and "send_watch" in repr(task)
        ]
        assert "0 watches open" in repr(on.server.faults)


async def _client_that_does_not_read(url: str) -> socket.socket:
    # With a small receive buffer the server's writes stand still soon.
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    host, port = url.removeprefix("http://").split(":")
    await loop.sock_connect(raw, (host, int(port)))
    head = f"GET {CONFIG_MAPS}?watch=1&timeoutSeconds=1000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    await loop.sock_sendall(raw, head.encode())
    await asyncio.sleep(0.1)
    return raw


async def _everything(raw: socket.socket) -> bytes:
    received = bytearray()
    while part := await asyncio.get_running_loop().sock_recv(raw, 2**20):
        received += part
    return bytes(received)


async def _write_a_lot(on: Serving) -> None:
    """Write more than the kernel buffers, and then more changes than a small window holds."""
    for number in range(_LARGE + 10):
        _write_in_one_turn(on, f"c{number}", blob="x" * 700_000 * (number < _LARGE))
        await asyncio.sleep(0)


async def test_client_disconnect_leaves_no_tasks() -> None:
    async with serving() as on:
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1"):
            pass
        await on.call.session.close()
        await asyncio.sleep(0.1)
        names = [repr(task.get_coro()) for task in asyncio.all_tasks()]
        assert not [name for name in names if "send_watch" in name or "handle" in name]


async def test_client_disconnect_between_two_lines_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """Its end is seen one turn of the loop after its socket closed; a line may be written in that turn."""
    async with serving() as s:
        address = urlsplit(s.server.url)
        for turn in range(60):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            creating = asyncio.ensure_future(s.call.created(CONFIG_MAPS, config_map(f"a{turn}")))
            for _ in range(turn % 20):
                await asyncio.sleep(0)
            writer.close()
            await creating
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
