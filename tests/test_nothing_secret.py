"""Nothing secret leaves: values are planted wherever secrets are, and all that a run emits is searched for them."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import aiohttp

from deltaloop.api import kinds
from deltaloop.api.logs import JsonFormatter, TextFormatter
from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig, StaticToken
from deltaloop.events import EventRecorder
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime import BindAddress, Context, Controller, Manager, ManagerOptions, Request, controller
from deltaloop.testing import eventually

PLANTED = "planted"


class _Kept(logging.Handler):
    """Keeps every line as both formatters write it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [JsonFormatter().format(record), TextFormatter().format(record)]


def _failing(seen: list[str]) -> Controller:
    """Return a controller that writes a Secret, fails once, and goes on."""

    @controller(kinds.SECRET, name="secrets", writes=[kinds.SECRET])
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.find(kinds.SECRET, request.name, namespace=request.namespace)
        if found is None or request.name != "a" or len(seen) > 2:
            return
        seen.append(repr(found) + repr(ctx) + repr(ctx.client) + " ".join(map(str, ctx.triggers)))
        ctx.logger.info("seen", extra={"token": f"{PLANTED}-extra", "object": found.to_dict()})
        ctx.recorder.event(found, "Warning", "Seen", f"Authorization: Bearer {PLANTED}-in-event")
        changed = {"stringData": {"password": f"{PLANTED}-{len(seen)}"}}
        await ctx.client.patch(kinds.SECRET, "a", changed, namespace="default")
        if len(seen) == 1:
            raise RuntimeError(f"no answer to Authorization: Bearer {PLANTED}-in-error")

    return reconcile


async def _fetch(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200
        return await answer.text()


async def _run() -> dict[str, str]:
    """Run it all; return what was emitted, by where."""
    kept, seen, audit = _Kept(), list[str](), list[str]()
    logger = logging.getLogger("deltaloop")
    before = logger.level
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    metrics = ProgramMetrics()
    try:
        options = ServerOptions(insecure_http=True, audit=audit.append)
        async with ApiServer(options) as server:
            token = SecretText(f"{PLANTED}-token")
            config = ClientConfig(server=server.url, namespace="default", credentials=StaticToken(token))
            async with Client(config) as client, EventRecorder(client, component="test") as recorder:
                secret: dict[str, Any] = {"metadata": {"name": "a"}, "stringData": {"password": f"{PLANTED}-0"}}
                await client.create(kinds.SECRET, secret)
                manager = Manager(
                    client,
                    [_failing(seen)],
                    options=ManagerOptions(health=BindAddress()),
                    recorder=recorder,
                    metrics=metrics.controllers,
                    metrics_page=metrics.render,
                )
                emitted = await _pages(manager, seen)
                await recorder.flush(5)
                events = await client.list(kinds.EVENT)
                emitted["events"] = " ".join(json.dumps(event.to_dict()) for event in events.items)
                emitted["reprs"] = " ".join([*seen, repr(client), repr(config), repr(manager), repr(server)])
    finally:
        logger.removeHandler(kept)
        logger.setLevel(before)
    return {
        **emitted,
        "metrics": metrics.render()[0].decode(),
        "logs": "\n".join(kept.lines),
        "audit": "\n".join(audit),
    }


async def _pages(manager: Manager, seen: list[str]) -> dict[str, str]:
    running = asyncio.create_task(manager.run())
    await eventually(lambda: len(seen) >= 3, within=60)
    url = manager.servers["health"].url
    found = {
        "explain": await _fetch(f"{url}/explain?kind=Secret&namespace=default&name=a"),
        "readyz": await _fetch(f"{url}/readyz?verbose"),
    }
    manager.stop()
    await running
    return found


async def test_nothing_that_was_planted_is_in_what_a_run_emits() -> None:
    emitted = await _run()
    assert "work failed and will be tried again" in emitted["logs"]
    assert "Seen" in emitted["events"]
    assert "stringData" in emitted["explain"] or "data" in emitted["explain"]
    assert 'result="error"' in emitted["metrics"]
    assert '"patch"' in emitted["audit"]
    for where, text in emitted.items():
        at = text.find(PLANTED)
        assert at < 0, f"{where}: ...{text[max(0, at - 200) : at + 40]}"


def test_a_value_that_leaves_is_found() -> None:
    kept = _Kept()
    logger = logging.getLogger("deltaloop.test")
    logger.addHandler(kept)
    values: dict[str, Any] = {"object": f"{PLANTED} as plain text under a plain name"}
    logger.warning("what redaction cannot know", extra=values)
    logger.removeHandler(kept)
    assert any(PLANTED in line for line in kept.lines)
