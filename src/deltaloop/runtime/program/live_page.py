"""The page of the health server, and the data that it requests.

``/`` is an HTML file without external parts, and its content security policy allows only its own script and style.
``/page/live`` sends the diagnosis as server-sent events, ``/page/objects`` the keys of a controller's objects, and
``/page/timeline`` the timeline of one object. No answer contains values of objects.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.timeline import RecentEvents, SeenEvent, timeline
from deltaloop.runtime.program.pages import HttpPage
from deltaloop.runtime.reconcile.loop import ReconcileLoop

if TYPE_CHECKING:
    from deltaloop.events.core.draft import EventDraft
    from deltaloop.runtime.program.doctor import Doctor

PAGE_PATH: Final = "/"
DATA_PATH: Final = "/page"
LIVE_PATH: Final = "/page/live"

_INTERVAL: Final = 1.0
"""Seconds between two diagnoses of an open page, however many pages are open."""
_KEYS_KEPT: Final = 5.0
"""Seconds for which a sorted list of keys is used again."""
_KEYS_PER_TURN: Final = 10_000
_MOST_KEYS: Final = 50_000
"""Keys of a list. To sort more of them takes too long, and no person reads them."""
_MOST_ROWS: Final = 200
_RETRY_MS: Final = 1000
_NOT_FOUND: Final = HttpPage(b"not found\n", status=404)


@final
class LivePage:
    """The page of one manager. Use it on the event loop of the manager."""

    def __init__(
        self, doctor: Doctor, history: History, loops: Sequence[ReconcileLoop], *, clock: Callable[[], float]
    ) -> None:
        self._doctor = doctor
        self._history = history
        self._loops = loops
        self._clock = clock
        self._events = RecentEvents()
        self._message: bytes = b""
        self._made_at = -_INTERVAL
        self._making = asyncio.Lock()
        self._keys: tuple[str, str, list[str]] | None = None

    def saw_event(self, event: EventDraft) -> None:
        """Remember an Event that the program recorded. Thread-safe."""
        seen, at = event.reference, self._clock()
        kind = f"{seen.api_version}/{seen.kind}"
        self._events.add(
            SeenEvent(kind=kind, key=seen.key, at=at, type=event.type, reason=event.reason, component=event.component)
        )

    async def html(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        del query
        return _NOT_FOUND if rest else _html()

    async def data(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        """Return the objects of a controller, or the timeline of one object, as JSON."""
        name, key = (query.get(field, [""])[0] for field in ("controller", "key"))
        loop = next((loop for loop in self._loops if loop.controller.name == name), None)
        if loop is None or rest not in ("objects", "timeline"):
            return _NOT_FOUND
        if rest == "timeline":
            found: dict[str, Any] = self._timeline(loop, key)
        else:
            start = query.get("start", ["0"])[0]
            if not (start.isascii() and start.isdigit() and len(start) < 10):
                return HttpPage(b"bad request: start must be a number\n", status=400)
            found = await self._objects(loop, query.get("search", [""])[0], int(start))
        return HttpPage(msgspec.json.encode(found), "application/json")

    async def live(self) -> AsyncGenerator[bytes]:
        """Yield the diagnosis as server-sent events, until canceled."""
        yield f"retry: {_RETRY_MS}\n\n".encode()
        while True:
            async with self._making:
                now = self._clock()
                if now - self._made_at >= _INTERVAL:
                    self._message = b"data: " + msgspec.json.encode(await self._doctor.document()) + b"\n\n"
                    self._made_at = now
            yield self._message
            await asyncio.sleep(_INTERVAL)

    async def _objects(self, loop: ReconcileLoop, search: str, start: int) -> dict[str, Any]:
        name, keys, now = loop.controller.name, await self._sorted(loop, search), self._clock()
        running = {run.key for run in loop.runs.present()}
        failing, parked = loop.failing(), {letter.item for letter in loop.queue.dead_letters()}
        rows: list[dict[str, Any]] = []
        for key in keys[start : start + _MOST_ROWS]:
            last = self._history.latest(name, key)
            state = "running" if key in running else "parked" if key in parked else "failing" if key in failing else ""
            row: dict[str, Any] = {"key": key, "state": state}
            if last is not None:
                row |= {"result": last.result, "error": last.error, "secondsAgo": round(now - last.ended_at, 1)}
            rows.append(row)
        return {"total": len(keys), "more": len(keys) >= _MOST_KEYS, "start": start, "objects": rows}

    async def _sorted(self, loop: ReconcileLoop, search: str) -> list[str]:
        """Return the keys that contain a text, at most ``_MOST_KEYS``, without blocking the event loop for long."""
        name = loop.controller.name
        if self._keys is not None and self._keys[:2] == (name, search):
            return self._keys[2]
        objects, keys = [] if loop.own_cache is None else loop.own_cache.list(), list[str]()
        for first in range(0, len(objects), _KEYS_PER_TURN):
            keys += [obj.key for obj in objects[first : first + _KEYS_PER_TURN] if search in obj.key]
            if len(keys) >= _MOST_KEYS:
                break
            await asyncio.sleep(0)
        keys = sorted(keys[:_MOST_KEYS])
        self._keys = name, search, keys
        asyncio.get_running_loop().call_later(_KEYS_KEPT, self._forget_keys)
        return keys

    def _forget_keys(self) -> None:
        self._keys = None

    def _timeline(self, loop: ReconcileLoop, key: str) -> dict[str, Any]:
        kind, cached = str(loop.controller.resource), None if loop.own_cache is None else loop.own_cache.find(key)
        reconciles = self._history.about(kind, frozenset({key}))
        return {
            "kind": kind,
            "key": key,
            "version": None if cached is None else cached.resource_version,
            "entries": timeline(kind, key, reconciles, self._events.about(kind, key), now=self._clock()),
        }


@cache
def _html() -> HttpPage:
    """Return the file with a policy that allows only its own script and style."""
    text = resources.files("deltaloop.runtime.program").joinpath("live_page.html").read_text(encoding="utf-8")

    def digest(tag: str) -> str:
        inner = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        return " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in inner
        )

    policy = (
        f"default-src 'none'; script-src {digest('script')}; style-src {digest('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return HttpPage(text.encode(), "text/html; charset=utf-8", headers=headers)
