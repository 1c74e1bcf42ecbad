"""Look at every page of the built site with headless Chromium: telephone and desk, light and dark palette.

    python -m tools.site.look [--pictures FOLDER]

A page fails if it scrolls sideways, if code on a desk does (except in the API reference), if a picture does not load,
or if its main text is empty. Then the site is served over HTTP, and a search must find pages. Pictures of all pages go
to ``build/look``. Without Chromium (``CHROMIUM`` names it), the tool reports this and exits with 0.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
WIDTHS = {"telephone": (375, 800), "desk": (1280, 900)}
SCHEMES = ("light", "dark")
PATIENCE = 20.0
SEARCHED = "informer"
FOUND = """
new Promise(done => {
  const look = () => {
    const found = document.querySelector('.md-search-result__meta')?.innerText ?? '';
    if (/^[0-9]/.test(found)) done(found); else setTimeout(look, 50);
  };
  look();
})
"""
ASK = """
new Promise(done => {
  const tell = () => {
    const root = document.documentElement;
    const inside = element => {
      for (let e = element.parentElement; e && e !== root; e = e.parentElement) {
        const style = getComputedStyle(e);
        if (['auto', 'scroll', 'hidden', 'clip'].includes(style.overflowX) || style.position === 'fixed') return true;
      }
      return false;
    };
    const wide = [...document.querySelectorAll('.md-content *')]
      .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1 && !inside(e));
    done(JSON.stringify({
      scroll: root.scrollWidth, width: root.clientWidth,
      wide: wide.slice(0, 3).map(e => e.tagName + ' ' + (e.textContent || '').slice(0, 40)),
      code: [...document.querySelectorAll('.md-content pre > code')]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => (e.textContent || '').slice(0, 40)),
      broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src),
      words: (document.querySelector('article') || document.body).innerText.length,
    }));
  };
  if (document.readyState === 'complete') tell(); else addEventListener('load', tell);
})
"""


class Browser:
    """A headless Chromium, spoken to by its DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Speak to a page through its socket."""
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> Any:
        """Call a method and return its result.

        Raises:
            RuntimeError: Chromium refused, or closed.
        """
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE):
            async for message in self._socket:
                answer = json.loads(message.data)
                if answer.get("id") == self._number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]
        raise RuntimeError(f"{method}: Chromium has closed")

    async def prefer(self, scheme: str) -> None:
        """Use the light or the dark palette for all pages from now on."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def look(self, page: Path, width: int, height: int) -> tuple[list[str], bytes]:
        """Open a page; return its faults and a picture (PNG)."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.call("Page.navigate", url=page.as_uri())
        evaluated = await self.call("Runtime.evaluate", expression=ASK, awaitPromise=True)
        found = json.loads(evaluated["result"]["value"])
        shot = await self.call("Page.captureScreenshot", format="png")
        wrong = [f"a picture does not show: {source}" for source in found["broken"]]
        if found["scroll"] > found["width"] or found["wide"]:
            wrong.append(f"scrolls sideways: {found['scroll']} of {found['width']} px {found['wide']}")
        if found["code"] and width > 600 and "api" not in page.parts:
            wrong.append(f"code scrolls sideways: {found['code']}")
        if found["words"] < 40:
            wrong.append("has no text")
        return wrong, base64.b64decode(shot["data"])

    async def search(self, url: str) -> str:
        """Open a page that is served with a search in its address; return what the search box says of what it found."""
        await self.call("Page.navigate", url=url)
        evaluated = await self.call("Runtime.evaluate", expression=FOUND, awaitPromise=True)
        return str(evaluated["result"]["value"])


@asynccontextmanager
async def served(site: Path) -> AsyncGenerator[str, None]:
    """Serve the site on the loopback interface, as a web server would: from a file, a page cannot load the index."""
    app = web.Application()
    app.router.add_static("/", site)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def browser(program: str) -> AsyncGenerator[Browser, None]:
    """Run Chromium with a profile of its own, which is removed, as the process is ended, in any case."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = await answer.json()
                target = next(page for page in pages if page["type"] == "page")
                async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Browser(socket)
        finally:
            process.terminate()
            await process.wait()


async def _port(file: Path) -> int:
    async with asyncio.timeout(PATIENCE):
        while not (lines := _lines(file)):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    return int(lines[0])


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; none while it is not there, or not whole."""
    text = file.read_text() if file.exists() else ""
    return text.splitlines() if "\n" in text else []


def _keep(picture: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)


async def look_at_all(program: str, pictures: Path) -> list[str]:
    """Look at all pages in all widths; return what is wrong."""
    wrong: list[str] = []
    pages = sorted(path for path in SITE.rglob("*.html") if path.name != "404.html")
    async with browser(program) as chromium:
        for scheme, (name, (width, height)) in itertools.product(SCHEMES, WIDTHS.items()):
            await chromium.prefer(scheme)
            for page in pages:
                where = page.relative_to(SITE)
                found, picture = await chromium.look(page, width, height)
                _keep(picture, pictures / f"{name}-{scheme}" / where.with_suffix(".png"))
                wrong += [f"{where} ({name}, {scheme}): {what}" for what in found]
        async with served(SITE) as url:
            hits = await chromium.search(f"{url}/index.html?q={SEARCHED}")
        if hits.startswith("0 "):
            wrong.append(f"the search box finds nothing for {SEARCHED!r}")
    print(f"looked at {len(pages)} pages as {' and '.join(WIDTHS)}; {len(wrong)} wrong; pictures are in {pictures}")
    print(f"searched for {SEARCHED!r} over HTTP: {hits}")
    return wrong


def main() -> int:
    """Look, and return the exit code."""
    parser = argparse.ArgumentParser(description="Look at the built site with headless Chromium.")
    parser.add_argument("--pictures", type=Path, default=ROOT / "build" / "look", help="where pictures go")
    arguments = parser.parse_args()
    named = os.environ.get("CHROMIUM", "")
    program = shutil.which(named) if named else shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print(f"skipped: there is no {named or 'chromium'} here to look with")
        return 0
    wrong = asyncio.run(look_at_all(program, arguments.pictures))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
