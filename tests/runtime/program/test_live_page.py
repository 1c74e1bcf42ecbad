"""The page of the health server: its policy, its data, and the requests that it rejects."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

import aiohttp
import pytest

from deltaloop.events import EventRecorder
from deltaloop.runtime import Context, Request, controller
from deltaloop.runtime.program.bind_address import BindAddress
from tests.runtime.worlds import CM, until, world

FILE = resources.files("deltaloop.runtime.program").joinpath("live_page.html").read_text(encoding="utf-8")
PLANTED = "planted-8d1f"


def test_page_has_one_script_and_no_external_or_inline_parts() -> None:
    assert len(re.findall("<script", FILE)) == len(re.findall("<style", FILE)) == 1
    assert not re.search(r"""https?://(?!www\.w3\.org/2000/svg)|\bsrc=|<[^>]*\s(on[a-z]+|style)\s*=""", FILE)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", FILE)
    assert len(FILE.splitlines()) < 700


@controller(CM, name="maps")
async def reconcile(request: Request, ctx: Context) -> None:
    found = await ctx.client.find(CM, request.name)
    if found is not None and request.name == "a":
        ctx.recorder.event(found, "Warning", "Told", PLANTED)
        await ctx.client.patch(CM, "a", {"data": {"seen": PLANTED}}, namespace="default")
    if request.name == "broken":
        raise ValueError(PLANTED)


OWN = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def entries_of(session: aiohttp.ClientSession, key: str) -> list[dict[str, Any]]:
    async with session.get(f"/page/timeline?controller=maps&key={key}") as answer:
        found: dict[str, Any] = await answer.json()
        return list(found["entries"])


@pytest.mark.real_time
async def test_page_shows_causes_writes_and_events_but_no_values_and_only_to_its_own_origin() -> None:
    async with (
        world() as w,
        EventRecorder(w.client, component="maps") as recorder,
        w.running(reconcile, recorder=recorder, health=BindAddress()) as manager,
    ):
        url = manager.servers["health"].url
        async with aiohttp.ClientSession(url) as session:
            for name in ("a", "broken", "other"):
                await w.put(name)
            await until(lambda: bool(manager.loops[0].failing()) and manager.loops[0].queue.statistics().done > 3)
            seen = ""

            async with session.get("/") as page:
                assert (page.status, page.content_type) == (200, "text/html")
                policy = page.headers["Content-Security-Policy"]
                script = FILE.partition("<script>")[2].partition("</script>")[0]
                digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
                assert f"script-src 'sha256-{digest}';" in policy
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert page.headers["Referrer-Policy"] == "no-referrer"

            entries = await entries_of(session, "default/a")
            assert {each["entry"] for each in entries} == {"reconcile", "version", "event"}
            writes = [write for each in entries if each["entry"] == "reconcile" for write in each["writes"]]
            assert ["data"] in [write["paths"] for write in writes]
            assert ("Warning", "Told") in [(each.get("type"), each.get("reason")) for each in entries]
            seen += json.dumps(entries)

            async with session.get("/page/objects?controller=maps&search=o&start=1") as answer:
                found = await answer.json()
            assert (found["total"], [each["key"] for each in found["objects"]]) == (2, ["default/other"])
            async with session.get("/page/objects?controller=maps") as answer:
                seen += await answer.text()
            assert '"state":"failing"' in seen

            async with session.get("/page/live") as stream:
                assert stream.content_type == "text/event-stream"
                messages = [await stream.content.readuntil(b"\n\n") for _ in range(3)]
            first, second = (json.loads(each.removeprefix(b"data: ")) for each in messages[1:])
            assert first["controllers"][0]["name"] == "maps"
            assert second["seconds"] > first["seconds"]
            seen += b"".join(messages).decode()
            assert PLANTED not in seen

            async def status(path: str, **headers: str) -> int:
                async with session.get(path, headers=headers) as answer:
                    return answer.status

            for path in ("/", "/page/live", "/page/objects?controller=maps", "/explain?name=a", "/doctor"):
                assert await status(path, Host="evil.example") == 403
                assert await status(path, Origin="https://evil.example") == 403
                assert await status(path, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}) == 403
                assert await status(path, **{"Sec-Fetch-Site": "same-site"}) == 403
            assert await status("/", **LINK) == 200
            assert await status("/page/objects?controller=maps", **LINK) == 403
            assert await status("/page/objects?controller=maps", **OWN, Origin=url) == 200
            assert await status("/page/objects?controller=unknown") == 404
            assert await status("/page/objects?controller=maps&start=-1") == 400

            streams = [await session.get("/page/live") for _ in range(8)]
            assert await status("/page/live") == 503
            for each in streams:
                each.close()
