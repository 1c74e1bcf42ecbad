"""Faults on the wire, by call and by HTTP; and an informer of ours that recovers from each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, Fault, ServerOptions
from tests.apiserver.serving import CONFIG_MAPS, OBJECTS_FROM_THE_START, Caller, config_map, loop_clock, seen, serving

FAULTS = "/deltaloop/faults"


async def test_injected_errors_have_the_real_format() -> None:
    async with serving() as on:
        on.server.faults.add(Fault(do="refuse", code=429, retry_after=3, count=1))
        busy = await on.call.get(CONFIG_MAPS)
        assert (busy.status, busy.text) == (429, "Too many requests, please try again later.\n")
        assert busy.headers["Retry-After"] == "3"
        assert busy.headers["Content-Type"].startswith("text/plain")
        for code, reason in ((409, "Conflict"), (410, "Expired"), (500, "InternalError"), (503, "ServiceUnavailable")):
            on.server.faults.add(Fault(do="refuse", code=code, verbs=("update",), count=1))
            (await on.call.put(f"{CONFIG_MAPS}/a", config_map("a"))).refuses(code, reason)
        assert (await on.call.get(CONFIG_MAPS)).status == 200
        assert on.server.faults.active() == ()


async def test_delay_drop_and_lose() -> None:
    async with serving() as on:
        loop = asyncio.get_running_loop()
        on.server.faults.add(Fault(do="delay", seconds=30.0, count=1))
        before = loop.time()
        await on.call.created(CONFIG_MAPS, config_map("a"))
        assert loop.time() - before == pytest.approx(30.0)
        on.server.faults.add(Fault(do="drop", verbs=("create",), count=1))
        with pytest.raises(aiohttp.ClientError):
            await on.call.post(CONFIG_MAPS, config_map("b"))
        on.server.faults.add(Fault(do="lose", verbs=("create",), count=1))
        with pytest.raises(aiohttp.ClientError):
            await on.call.post(CONFIG_MAPS, config_map("c"))
        assert (await on.call.get(CONFIG_MAPS)).names == ["a", "c"]


async def test_stale_reads_lag_but_not_behind_the_requested_revision() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a", {"k": "old"}))
        await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "new"}})
        await on.call.created(CONFIG_MAPS, config_map("b"))
        on.server.faults.add(Fault(do="stale", behind=2))
        stale = await on.call.get(f"{CONFIG_MAPS}?resourceVersion=0")
        assert (stale.names, stale.revision) == (["a"], made.revision)
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).json["data"] == {"k": "old"}
        (await on.call.get(f"{CONFIG_MAPS}/b")).refuses(404, "NotFound")
        fresh = await on.call.get(f"{CONFIG_MAPS}?resourceVersion={on.server.revision}")
        assert fresh.names == ["a", "b"]


async def test_stale_watch_begins_with_an_old_state_and_catches_up() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a", {"k": "old"}))
        await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "new"}})
        await on.call.delete(f"{CONFIG_MAPS}/a")
        on.server.faults.add(Fault(do="stale", behind=2))
        initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with on.call.watch(f"{CONFIG_MAPS}?{initial}") as watch:
            added, bookmark, modified, deleted = [await watch.next() for _ in range(4)]
        assert seen(added) == ("ADDED", "a", made.revision)
        assert seen(bookmark) == ("BOOKMARK", "", made.revision)
        assert modified["object"]["data"] == {"k": "new"}
        assert seen(deleted) == ("DELETED", "a", str(on.server.revision))
        # Not behind what is asked for, and not behind what is forgotten.
        async with on.call.watch(f"{CONFIG_MAPS}?{initial}&resourceVersion={on.server.revision}") as watch:
            assert seen(await watch.next()) == ("BOOKMARK", "", str(on.server.revision))
        on.server.faults.compact()
        async with on.call.watch(f"{CONFIG_MAPS}?{initial}") as watch:
            assert seen(await watch.next()) == ("BOOKMARK", "", str(on.server.revision))
        # A watch from now on hears what has happened already.
        await on.call.created(CONFIG_MAPS, config_map("b"))
        now_on = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        async with on.call.watch(f"{CONFIG_MAPS}?{now_on}") as watch:
            assert seen(await watch.next())[:2] == ("ADDED", "b")


async def test_stalled_watch_expires_after_compaction() -> None:
    async with serving() as on:
        faults = on.server.faults
        begin = on.server.revision
        async with (
            on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={begin}") as slow,
            on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={begin}") as quick,
        ):
            # Both are open; the first one that is struck stalls.
            assert faults.strike_watches(Fault(do="stall", count=1)) == 1
            for name in ("a", "b"):
                await on.call.created(CONFIG_MAPS, config_map(name))
            assert [seen(await quick.next())[1] for _ in range(2)] == ["a", "b"]
            faults.compact()
            await on.call.created(CONFIG_MAPS, config_map("c"))
            assert seen(await quick.next())[1] == "c"
            faults.clear()
            expired = (await slow.rest())[0]
        assert (expired["type"], expired["object"]["code"], expired["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_watches_are_ended_cut_expired_and_stalled() -> None:
    async with serving() as on:
        faults = on.server.faults
        path = f"{CONFIG_MAPS}?watch=1"
        for name in ("a", "b", "c"):
            await on.call.created(CONFIG_MAPS, config_map(name))
        faults.add(Fault(do="end", events=2, count=1))
        async with on.call.watch(path) as watch:
            assert [event["object"]["metadata"]["name"] for event in await watch.rest()] == ["a", "b"]
        faults.add(Fault(do="expire", events=1, count=1))
        async with on.call.watch(path) as watch:
            events = await watch.rest()
        assert [event["type"] for event in events] == ["ADDED", "ERROR"]
        assert events[1]["object"]["reason"] == "Expired"
        async with on.call.watch(path) as watch:
            for _ in range(3):
                await watch.next()
            assert faults.strike_watches(Fault(do="stall", seconds=100.0, resources=("configmaps",))) == 1
            assert faults.strike_watches(Fault(do="stall", resources=("pods",))) == 0
            await on.call.created(CONFIG_MAPS, config_map("d"))
            before = asyncio.get_running_loop().time()
            assert seen(await watch.next())[1] == "d"
            assert asyncio.get_running_loop().time() - before == pytest.approx(100.0, abs=1.0)
            assert faults.strike_watches(Fault(do="cut")) == 1
            with pytest.raises(aiohttp.ClientError):
                await watch.rest()


async def test_compaction_and_decreasing_revision() -> None:
    async with serving() as on:
        for number in range(20):
            await on.call.created(CONFIG_MAPS, config_map(f"a{number}"))
        old = on.server.revision
        on.server.faults.compact()
        (await on.call.get(f"{CONFIG_MAPS}?resourceVersion=14&resourceVersionMatch=Exact")).refuses(410, "Expired")
        for number in range(15):
            await on.call.delete(f"{CONFIG_MAPS}/a{number}")
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={on.server.revision}") as watch:
            on.server.faults.reset_revisions()
            with pytest.raises(aiohttp.ClientError):
                await watch.next()
        assert on.server.revision == 1 + OBJECTS_FROM_THE_START + 5 < old
        listed = await on.call.get(CONFIG_MAPS)
        versions = sorted(int(item["metadata"]["resourceVersion"]) for item in listed.json["items"])
        assert listed.names == ["a15", "a16", "a17", "a18", "a19"]
        assert len(set(versions)) == 5
        assert 1 < versions[0] <= versions[-1] <= on.server.revision


async def test_restart_keeps_port_and_objects() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        url = on.server.url
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
            await watch.next()
            away = asyncio.create_task(on.server.faults.restart(5.0))
            with pytest.raises(aiohttp.ClientError):
                await watch.rest()
        await asyncio.sleep(1.0)
        with pytest.raises(aiohttp.ClientError):
            await on.call.get(CONFIG_MAPS)
        await away
        assert on.server.url == url
        assert (await on.call.get(CONFIG_MAPS)).names == ["a"]


async def test_the_http_verbs() -> None:
    async with serving() as on:
        call = on.call
        fault = {"do": "refuse", "verbs": "list", "code": 500}
        assert (await call.post(FAULTS, fault)).json == {"number": 1}
        assert (await call.post(FAULTS, {"do": "delay", "seconds": 1})).json == {"number": 2}
        (await call.get(CONFIG_MAPS)).refuses(500, "InternalError")
        listed = (await call.get(FAULTS)).json
        assert [(item["number"], item["do"], item["struck"]) for item in listed["faults"]] == [
            (1, "refuse", 1),
            (2, "delay", 1),
        ]
        assert (await call.delete(f"{FAULTS}/1")).status == 200
        assert (await call.delete(f"{FAULTS}/1")).status == 404
        assert (await call.delete(FAULTS)).status == 200
        assert (await call.get(CONFIG_MAPS)).status == 200
        async with call.watch(f"{CONFIG_MAPS}?watch=1") as watch:
            assert (await call.post("/deltaloop/watches", {"do": "end"})).json == {"struck": 1}
            assert await watch.rest() == []
        assert (await call.post("/deltaloop/compact", {})).json == {"compacted": on.server.revision}
        assert (await call.post("/deltaloop/reset-revisions", {})).json == {"revision": 1 + OBJECTS_FROM_THE_START}
        for path, wrong in ((FAULTS, {"do": "x"}), ("/deltaloop/watches", {"do": "drop"}), (FAULTS, {"do": 1})):
            (await call.post(path, wrong)).refuses(400, "BadRequest")
        assert (await call.get("/deltaloop/nothing")).status == 404
        assert (await call.post("/deltaloop/restart", {"seconds": 2})).status == 202
        await asyncio.sleep(1.0)
        with pytest.raises(aiohttp.ClientError):
            await call.get(CONFIG_MAPS)
        await asyncio.sleep(2.0)
        assert (await call.get(CONFIG_MAPS)).status == 200


# --- Our client and informer on top: whatever happens, the cache ends up with what there is ---


def all_kinds_of_harm(on: ApiServer) -> list[tuple[str, Callable[[], Any]]]:
    faults = on.faults
    here = ("configmaps",)

    def compacted() -> None:
        faults.compact()
        faults.strike_watches(Fault(do="cut"))

    return [
        ("cut", lambda: faults.strike_watches(Fault(do="cut"))),
        ("end", lambda: faults.strike_watches(Fault(do="end"))),
        ("expire", lambda: faults.strike_watches(Fault(do="expire"))),
        (
            "cut, then 500 and 429",
            lambda: (
                faults.add(Fault(do="refuse", code=500, count=2, verbs=("watch",), resources=here)),
                faults.add(Fault(do="refuse", code=429, count=2, verbs=("watch",), resources=here)),
                faults.strike_watches(Fault(do="cut")),
            ),
        ),
        (
            "410, and lists that fail",
            lambda: (
                faults.add(Fault(do="refuse", code=503, count=2, verbs=("list",), resources=here)),
                faults.add(Fault(do="drop", count=1, verbs=("watch",), resources=here)),
                faults.strike_watches(Fault(do="expire")),
            ),
        ),
        ("stall", lambda: faults.strike_watches(Fault(do="stall", seconds=20.0))),
        ("compacted", compacted),
        ("reset", faults.reset_revisions),
    ]


@asynccontextmanager
async def informed() -> AsyncGenerator[tuple[ApiServer, Caller, Any]]:
    options = ServerOptions(insecure_http=True, wall_clock=loop_clock, bookmark_interval=5.0)
    async with (
        ApiServer(options) as server,
        aiohttp.ClientSession() as session,
        dl.connect(kubeconfig=server.kubeconfig()) as client,
        dl.InformerFactory(client) as factory,
    ):
        informer = factory.informer(dl.kinds.CONFIG_MAP)
        await factory.wait_for_sync(timeout=30)
        yield server, Caller(session, server.url), informer


async def test_informer_recovers_from_all_faults() -> None:
    async with informed() as (server, call, informer):
        lister = informer.lister()
        for number, (what, harm) in enumerate(all_kinds_of_harm(server)):
            harm()
            await call.created(CONFIG_MAPS, config_map(f"a{number}"))
            if number:
                await call.delete(f"{CONFIG_MAPS}/a{number - 1}")
            for _ in range(600):
                if [obj.name for obj in lister.list()] == [f"a{number}"]:
                    break
                await asyncio.sleep(1.0)
            assert [obj.name for obj in lister.list()] == [f"a{number}"], what
            server.faults.clear()
