"""When the last byte came: what a stream shows that has stalled in the middle of an object."""

from __future__ import annotations

import asyncio
import json

from deltaloop.api.kinds import POD
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.informer import Informer
from deltaloop.cache.listwatch import ListWatch
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import StreamEndedError
from tests.cache.fake_source import FakeSource, api_error, refused
from tests.cache.test_informer import PAGED, STILL, running
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, page, pod


def line(name: str, version: int) -> bytes:
    return json.dumps({"type": "ADDED", "object": pod(name, version=str(version))}).encode() + b"\n"


def ago(at: float | None) -> float | None:
    return None if at is None else round(asyncio.get_running_loop().time() - at, 1)


async def test_freshness_shows_bytes_of_incomplete_object() -> None:
    whole = line("b", 12)
    script = (Pause(1), line("a", 11), Pause(10), whole[:50], Pause(60), whole[50:], Pause(3600))
    transport = FakeTransport(page(version="10"), Stream(script))
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    informer = Informer(ListWatch(client, POD), POD, options=STILL)
    assert informer.freshness().last_byte_at is None
    async with running(informer):
        await asyncio.sleep(31)
        seen = informer.freshness()
        assert (ago(seen.last_event_at), ago(seen.last_byte_at), seen.pending_bytes) == (30.0, 20.0, 50)
        assert (ago(seen.last_confirmed_at), seen.resource_version) == (30.0, "11")
        await asyncio.sleep(50)
        seen = informer.freshness()
        assert (ago(seen.last_event_at), ago(seen.last_byte_at), seen.pending_bytes) == (10.0, 10.0, 0)
        levels = informer.levels(asyncio.get_running_loop().time())
        assert (round(levels.last_byte_age or 0, 1), levels.items, levels.seen_resource_version) == (10.0, 2, "12")
    assert informer.freshness().pending_bytes == 0, "the stream is closed"


async def test_time_of_last_byte_is_kept_after_stream_ends() -> None:
    gone = StreamEndedError("reset", method="GET", path="/api/v1/pods")
    script = (Pause(1), line("a", 11), Pause(10), line("b", 12)[:50], Pause(5), gone)
    transport = FakeTransport(page(version="10"), Stream(script), After(1000, page()))
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    informer = Informer(ListWatch(client, POD), POD, options=STILL)
    async with running(informer):
        await asyncio.sleep(36)
        seen = informer.freshness()
        assert (ago(seen.last_event_at), ago(seen.last_byte_at), seen.pending_bytes) == (35.0, 25.0, 0)
        assert len(transport.requests) == 3


async def test_freshness_of_source_without_byte_times_uses_events() -> None:
    source = FakeSource(list_delay=2.0)
    informer = Informer(source, POD, options=STILL.replace(reflector=PAGED))
    async with running(informer):
        await asyncio.sleep(5)
        assert ago(informer.freshness().last_byte_at) == 5.0, "the watch was accepted"
        source.put("a")
        await asyncio.sleep(3)
        assert ago(informer.freshness().last_byte_at) == 3.0
        source.bookmark()
        await asyncio.sleep(1)
        assert ago(informer.freshness().last_byte_at) == 1.0


def test_error_response_updates_last_byte_and_refused_connection_does_not() -> None:
    machine = ReflectorMachine(PAGED)
    machine.ask(0.0, random=0.0)
    machine.list_failed(refused(), 1.0, random=0.0)
    assert machine.statistics().last_byte_at is None
    machine.ask(9.0, random=0.0)
    machine.list_failed(api_error(503), 9.5, random=0.0)
    assert machine.statistics().last_byte_at == 9.5
    machine.saw_bytes(7.0)
    seen = machine.statistics(last_byte_at=8.0, pending_bytes=3)
    assert (seen.last_byte_at, seen.pending_bytes) == (9.5, 3), "time never goes back"
    assert machine.statistics(last_byte_at=11.0).last_byte_at == 11.0
