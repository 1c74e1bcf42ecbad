"""Objects that are there and cannot be read: what is known of them is kept, and nobody takes them for deleted."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import MalformedEventError
from deltaloop.cache.core.deltas import DeltaQueue, Unread
from deltaloop.cache.core.real_fifo import InOrderQueue
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.store import Store
from deltaloop.client import Client, ClientConfig
from tests.cache.core.test_deltas import Known
from tests.cache.fake_source import FakeSource, expired
from tests.cache.objects import pod
from tests.cache.test_informer import PAGED, Recorder, running, settle

MESSAGE = "list contains unreadable objects, keeping their cached state"


@pytest.mark.parametrize("many", [0, 1_100], ids=["a short list", "a long list"])
@pytest.mark.parametrize("kind", [*QueueKind])
async def test_unreadable_object_in_a_relist_is_not_deleted(
    kind: QueueKind, many: int, caplog: pytest.LogCaptureFixture
) -> None:
    source = FakeSource()
    for name in ("kept", "gone", "changed", *(f"p{number}" for number in range(many))):
        source.put(name)
    options = InformerOptions(random=lambda: 0.0, reflector=PAGED, queue=kind, consistency_period=1e6)
    informer = Informer(source, POD, options=options)
    informer.add_event_handler(recorder := Recorder())
    async with running(informer):
        known = informer.lister().get("default/kept")
        recorder.heard.clear()
        source.put("kept", silent=True)
        source.remove("gone", silent=True)
        source.put("changed", silent=True)
        source.unreadable = {"kept": "default/kept", "never": "default/never"}
        source.objects["never"] = pod("never")
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert informer.lister().get("default/kept") == known
        assert informer.lister().find("default/never") is None
        assert [each.partition("@")[0] for each in recorder.heard if each[1] != "p"] == (
            ["-gone", "~changed"] if kind is QueueKind.REAL_FIFO else ["~changed", "-gone"]
        )
        told = [record for record in caplog.records if record.getMessage() == MESSAGE]
        assert [record.__dict__["keys"] for record in told] == [["default/kept", "default/never"]]
        report = await informer.check_consistency()
        assert not report.left_over
        # Readable again, it is what it has become; gone, it is gone.
        recorder.heard.clear()
        source.unreadable = {}
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert sorted(each.partition("@")[0] for each in recorder.heard) == ["+never", "~kept"]
        source.unreadable = {"kept": "default/kept"}
        source.remove("kept", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert informer.lister().find("default/kept") is None


@pytest.mark.parametrize("kind", [*QueueKind])
async def test_unreadable_item_without_key_keeps_all_missing_objects(kind: QueueKind) -> None:
    source = FakeSource()
    for name in "ab":
        source.put(name)
    informer = Informer(source, POD, options=InformerOptions(random=lambda: 0.0, reflector=PAGED, queue=kind))
    informer.add_event_handler(recorder := Recorder())
    async with running(informer):
        source.remove("b", silent=True)
        source.unreadable = {"a": None}
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert sorted(informer.indexer.list_keys()) == ["default/a", "default/b"]
        source.unreadable = {}
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert informer.indexer.list_keys() == ["default/a"]
    assert [each for each in recorder.heard if each[0] == "-"] == ["-b@12?"]


def test_queues_keep_unreadable_objects() -> None:
    unread = Unread(frozenset({"default/kept"}))
    in_order = InOrderQueue(known_objects=Known(pod("gone", 1), pod("kept", 1)))
    in_order.replace([], unread=unread)
    batch = in_order.pop()
    assert batch is not None
    assert [(delta.type.value, delta.object.key) for delta in batch.deltas] == [
        ("Deleted", "default/gone"),
        ("Replaced", "default/kept"),
    ]
    by_key = DeltaQueue(known_objects=Known(pod("gone", 1), pod("kept", 1)))
    by_key.add(pod("waits", 2))
    by_key.replace([], unread=Unread(frozenset({"default/kept", "default/waits"})))
    assert by_key.list_keys() == ["default/waits", "default/gone"]
    assert [delta.type.value for delta in by_key.deltas_of("default/waits")] == ["Added"]
    store = Store[Resource]()
    store.replace([pod("kept", 1), pod("gone", 1), pod("changed", 1)])
    store.replace([pod("changed", 2)], "2", Unread(frozenset({"default/kept", "default/changed"})))
    assert {obj.name: obj.resource_version for obj in store.list()} == {"kept": "1", "changed": "2"}


class Server:
    """Serves config maps, one of them with a label that is no text, to a real client."""

    def __init__(self) -> None:
        self.broken = False
        self.version = 10
        self.lists = 0
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    def item(self, name: str) -> dict[str, object]:
        labels = {"a": 1 if self.broken and name == "kept" else "1"}
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def test_unreadable_watch_event_keeps_cached_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from aiohttp import web

    from tests.client.loopback import serving

    served = Server()

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.query.get("sendInitialEvents"):
            return web.json_response({"kind": "Status", "code": 400, "reason": "BadRequest"}, status=400)
        if not request.query.get("watch"):
            served.lists += 1
            items = [served.item(name) for name in ("kept", "other")]
            return web.json_response(
                {"kind": "ConfigMapList", "metadata": {"resourceVersion": str(served.version)}, "items": items}
            )
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(await served.lines.get())

    heard = Recorder()
    async with (
        serving(handle) as address,
        Client(ClientConfig(server=f"http://{address}")) as client,
        InformerFactory(client) as factory,
    ):
        informer = factory.informer(kinds.CONFIG_MAP)
        informer.add_event_handler(heard)
        await factory.wait_for_sync()
        await settle()
        heard.heard.clear()
        served.broken = True
        event = {"type": "MODIFIED", "object": served.item("kept")}
        served.lines.put_nowait(msgspec.json.encode(event) + b"\n")
        await asyncio.sleep(10.0)
        assert served.lists >= 2
        assert informer.lister().get("default/kept").labels == {"a": "1"}
    assert heard.heard == []
    assert any(record.getMessage() == MESSAGE for record in caplog.records if record.levelno == logging.WARNING)
    assert any(MalformedEventError.__name__ in str(record.__dict__.get("error")) for record in caplog.records)


def served_item(name: str, version: int, text: bytes = b"ok") -> bytes:
    metadata = b'"metadata":{"name":"%b","namespace":"default","uid":"%b","resourceVersion":"%d"}'
    return b'{"kind":"ConfigMap",' + metadata % (name.encode(), name.encode(), version) + b',"data":{"a":"%b"}}' % text


@pytest.mark.parametrize("streamed", [True, False])
async def test_object_with_invalid_text_is_not_cached(streamed: bool, caplog: pytest.LogCaptureFixture) -> None:
    from aiohttp import web

    from tests.client.loopback import serving

    lines: asyncio.Queue[bytes] = asyncio.Queue()
    items = [served_item("a", 1), served_item("bad", 2, b"\xff"), served_item("c", 3)]

    async def handle(request: web.Request) -> web.StreamResponse:
        initial = request.query.get("sendInitialEvents")
        if initial and not streamed:
            return web.json_response({"kind": "Status", "code": 400, "reason": "BadRequest"}, status=400)
        if not request.query.get("watch"):
            body = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"10"},"items":[' + b",".join(items) + b"]}"
            return web.Response(body=body, content_type="application/json")
        answer = web.StreamResponse()
        await answer.prepare(request)
        for item in items if initial else ():
            await answer.write(b'{"type":"ADDED","object":' + item + b"}\n")
        while True:
            await answer.write(await lines.get())

    async with (
        serving(handle) as address,
        Client(ClientConfig(server=f"http://{address}")) as client,
        InformerFactory(client) as factory,
    ):
        informer = factory.informer(kinds.CONFIG_MAP)
        await factory.wait_for_sync()
        assert [obj["data"]["a"] for obj in informer.lister().list()] == ["ok", "ok"]
        told = [record.__dict__["keys"] for record in caplog.records if record.getMessage() == MESSAGE]
        assert told == [["default/bad"]]
        # Good objects that become unreadable stay as they are known.
        items[0] = served_item("a", 11, b"\xff")
        lines.put_nowait(b'{"type":"MODIFIED","object":' + items[0] + b"}\n")
        await asyncio.sleep(10.0)
        assert [obj["data"]["a"] for obj in informer.lister().list()] == ["ok", "ok"]
        errors = [str(record.__dict__.get("error")) for record in caplog.records]
        assert any("object default/a of" in error for error in errors)
