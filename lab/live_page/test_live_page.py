"""Views, live updates, reconnection, speed, requests and secrets of the page in headless Chromium."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tools.site.look import Browser, browser

from lab.live_page.program import PLANTED

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
OBJECTS, RATE, SECONDS = 10_000, 1000, 5.0
VIEWS = ("diagnosis", "controllers", "work", "objects", "recording")
FRAMES = """
new Promise(done => {
  const box = document.querySelector('section:not([hidden]) .rows'), times = [];
  const step = now => {
    times.push(now);
    if (box) box.scrollTop = (times.length * 400) % Math.max(1, box.scrollHeight - box.clientHeight);
    if (now - times[0] < SECONDS * 1000) return requestAnimationFrame(step);
    const gaps = times.slice(1).map((each, number) => each - times[number]);
    done(JSON.stringify({frames: times.length, longest: Math.max(...gaps)}));
  };
  requestAnimationFrame(step);
})
"""
INJECTED = """
(async () => {
  addEventListener('securitypolicyviolation', event => (window.violated ??= []).push(event.effectiveDirective));
  const script = document.createElement('script'), text = 'window.ran = 1', results = [];
  for (const attempt of [
    () => { script.textContent = text; document.body.append(script); },
    () => document.body.setAttribute('onclick', text),
    () => { document.body.innerHTML = '<img src=x onerror="window.ran = 1">'; },
    () => fetch('https://other.example/'),
  ]) {
    try { await attempt(); results.push('done'); } catch { results.push('rejected'); }
  }
  document.body.click();
  return results.join();
})()
"""
RECORDED = {
    "traceEvents": [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "worker 1"}},
        {
            "name": "maps default/a",
            "ph": "X",
            "ts": 1000,
            "dur": 2000,
            "pid": 1,
            "tid": 1,
            "args": {"result": "success"},
        },
        {"name": "queued", "ph": "i", "ts": 4000, "pid": 1, "tid": 2},
    ]
}
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.real_time,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]


class Watched(Browser):
    """A browser that keeps the URLs that it requested."""

    def __init__(self, inner: Browser) -> None:
        super().__init__(inner._socket)
        self.requested: list[str] = []
        self.errors: list[str] = []

    async def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(30):
            async for message in self._socket:
                answer = json.loads(message.data)
                if answer.get("id") == self._number:
                    assert "error" not in answer, answer
                    return answer["result"]
                self._keep(answer)
        raise AssertionError("Chromium has closed")

    def _keep(self, event: dict[str, Any]) -> None:
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(event["params"]["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.errors.append(str(event["params"]["exceptionDetails"].get("exception", {}).get("description")))
        elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.errors.append(event["params"]["entry"]["text"])

    async def value(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression: str, seconds: float = 20.0) -> Any:
        """Evaluate an expression until it is true, at most ``seconds``."""
        end = time.monotonic() + seconds
        while not (found := await self.value(expression)):
            assert time.monotonic() < end, (expression, await self.value("document.body.innerText"), self.errors)
            await asyncio.sleep(0.05)
        return found


@contextmanager
def program(port: int = 0, objects: int = OBJECTS, rate: int = RATE) -> Generator[tuple[str, int]]:
    command = [sys.executable, "-m", "lab.live_page.program", str(port), str(objects), str(rate)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Watched]:
    assert CHROMIUM is not None
    async with browser(CHROMIUM) as inner:
        page = Watched(inner)
        for domain in ("Network", "Runtime", "Log", "Page", "DOM"):
            await page.call(f"{domain}.enable")
        await page.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)
        await page.call("Page.navigate", url=url)
        await page.until("document.getElementById('connection')?.textContent === 'live'")
        yield page


async def show(page: Watched, place: str) -> None:
    await page.value(f"location.hash = {place!r}, true")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def done_by(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/doctor") as answer:
        return sum(each["queue"]["done"] for each in (await answer.json())["controllers"])


async def test_views_are_live_and_stay_fast_with_many_objects_and_reconciles(tmp_path: Path) -> None:
    with program() as (url, _):
        async with opened(f"{url}/") as page:
            await page.until("document.querySelectorAll('#cards .card.stuck h3').length > 0")
            assert "maps default/object-00003" in await page.value("document.getElementById('cards').innerText")

            await show(page, "#/controllers")
            rate = "Number(document.querySelector('#controller-rows tr').children[5].textContent)"
            await page.until(f"{rate} > {RATE / 2}")
            await page.until(
                f"document.getElementById('cache-rows').innerText.includes({str(OBJECTS - OBJECTS // 1000)!r})"
            )

            await show(page, "#/work")
            await page.until("document.getElementById('work-rows').innerText.includes('program.py')")
            await page.until("document.getElementById('work-rows').innerText.includes('ValueError')")

            await show(page, "#/objects")
            await page.until(f"document.getElementById('object-count').textContent.startsWith({str(OBJECTS - 10)!r})")
            for view in ("objects", "work", "controllers"):
                await show(page, f"#/{view}")
                frames = json.loads(await page.value(FRAMES.replace("SECONDS", str(SECONDS))))
                elements = await page.value("document.querySelectorAll('*').length")
                per_second, longest = frames["frames"] / SECONDS, frames["longest"]
                print(f"{view}: {per_second:.0f} frames/s, longest {longest:.0f} ms, {elements} elements")
                assert frames["frames"] > 5 * SECONDS
                assert frames["longest"] < 1000
                assert elements < 2000

            await show(page, "#/objects/maps/default%2Fobject-00004")
            await page.until("document.getElementById('entries').innerText.includes('data')")
            assert "wrote patch v1/ConfigMap default/object-00004" in await page.value(
                "document.getElementById('entries').innerText"
            )
            await show(page, "#/objects/maps/default%2Fobject-00001")
            await page.until("document.getElementById('entries').innerText.includes('Event Normal Reconciled')")
            await page.value(
                "document.getElementById('object-search').value = '0999', "
                "document.getElementById('object-search').dispatchEvent(new Event('input'))"
            )
            await page.until("document.getElementById('object-count').textContent.startsWith('9 ')")

            recording = tmp_path / "recording.json"
            recording.write_text(json.dumps(RECORDED))
            await show(page, "#/recording")
            document = await page.call("DOM.getDocument")
            found = await page.call("DOM.querySelector", nodeId=document["root"]["nodeId"], selector="#file")
            await page.call("DOM.setFileInputFiles", files=[str(recording)], nodeId=found["nodeId"])
            await page.until("document.getElementById('record-rows').innerText.includes('maps default/a')")
            await page.until("document.getElementById('record-rows').innerText.includes('worker 1')")

            texts = "document.documentElement.outerHTML"
            for view in VIEWS:
                await show(page, f"#/{view}")
                await asyncio.sleep(0.5)
                assert PLANTED not in await page.value(texts)
            assert not page.errors
            assert {urlsplit(each).netloc for each in page.requested if not each.startswith("data:")} == {
                urlsplit(url).netloc
            }


async def test_page_reconnects_after_a_restart_and_names_a_lost_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert CHROMIUM is not None
    with program(port, 100, 10) as (url, _):
        context = opened(f"{url}/")
        page = await context.__aenter__()
    try:
        await page.until("document.getElementById('connection').textContent === 'reconnecting'")
        with program(port, 100, 10):
            await page.until("document.getElementById('connection').textContent === 'live'")
            before = await page.value("state.seconds")
            await page.until(f"state.seconds > {before}")
    finally:
        await context.__aexit__(None, None, None)


async def test_buttons_request_actions_and_the_keyboard_changes_views() -> None:
    with program(0, 100, 10) as (url, _):
        async with opened(f"{url}/#/controllers") as page:
            await page.value("window.confirm = () => true, document.querySelector('#tab-controllers').focus(), true")
            buttons = "[...document.querySelectorAll('#controller-rows button')]"
            for name, seen in (
                ("pause", "state.controllers[0].pausedFor > 0"),
                ("resume", "!state.controllers[0].pausedFor"),
            ):
                await page.until(f"{buttons}.length === 4")
                await page.value(f"{buttons}.find(each => each.textContent === {name!r}).click()")
                await page.until(seen)
                await page.until(f"document.getElementById('message').textContent.startsWith('{name} of maps')")
            for kind in ("keyDown", "keyUp"):
                await page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
            await page.until("!document.getElementById('work').hidden")

            await show(page, "#/objects")
            await page.until("document.querySelector('#object-rows .row:not(:disabled)') !== null")
            await page.value("document.querySelector('#object-rows .row').focus(), true")
            for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
                await page.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
            for kind in ("keyDown", "keyUp"):
                await page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r")
            await page.until("location.hash === '#/objects/maps/default%2Fobject-00001'")
            await page.call(
                "Emulation.setDeviceMetricsOverride", width=380, height=700, deviceScaleFactor=1, mobile=True
            )
            await page.value("document.getElementById('back').focus(), document.getElementById('back').click(), true")
            await page.until("document.activeElement.id === 'object-controller'")
            await show(page, "#/objects/maps/default%2Fobject-00002")
            await page.until("document.activeElement.id === 'detail-name'")
            for view in VIEWS:
                await show(page, f"#/{view}")
                await page.until("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            assert not page.errors


async def test_inline_script_and_requests_from_other_sites_are_rejected() -> None:
    with program(0, 100, 10) as (url, _):
        async with opened(f"{url}/") as page:
            assert await page.value(INJECTED) == "rejected,rejected,rejected,rejected"
            await page.until("window.violated?.includes('connect-src')")
            assert await page.value("window.ran === undefined")
            await page.call("Page.navigate", url=f"{url.replace('127.0.0.1', 'localhost')}/healthz")
            await asyncio.sleep(0.3)
            assert (
                await page.value(f"fetch('{url}/page/objects?controller=maps').then(() => 'read', () => 'rejected')")
                == "rejected"
            )
            await page.call("Page.navigate", url="data:text/html,<p>elsewhere")
            await asyncio.sleep(0.3)
            for path in ("page/live", "doctor", "page/objects?controller=maps"):
                assert await page.value(f"fetch('{url}/{path}').then(() => 'read', () => 'rejected')") == "rejected"


async def test_open_page_needs_little_of_the_program() -> None:
    with program() as (url, pid):
        await asyncio.sleep(10)
        costs: dict[str, list[float]] = {"closed": [], "open": []}

        async def measure(name: str) -> None:
            cpu, done = cpu_of(pid), await done_by(url)
            await asyncio.sleep(10)
            costs[name].append((cpu_of(pid) - cpu) / (await done_by(url) - done) * 1e6)

        for _ in range(2):
            await measure("closed")
            async with opened(f"{url}/#/objects/maps/default%2Fobject-00010"):
                await measure("open")
        closed, opened_ = min(costs["closed"]), min(costs["open"])
        share = (opened_ - closed) * RATE / 1e6
        print(f"{closed:.1f} µs per reconcile closed, {opened_:.1f} µs open: the page needs {share:.2%} of a core")
        assert share < 0.05
