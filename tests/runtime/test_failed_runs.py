"""Writes of failed runs do not trigger the key again; changes by others do."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.errors import TerminalError
from deltaloop.runtime import Context, Controller, HotLoopOptions, Manager, Request, Result, controller
from deltaloop.runtime.controller import ReconcileFunction
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from tests.runtime.objects.test_status import DB, crd
from tests.runtime.worlds import World, now, until, world

SECRET = kinds.SECRET
Write = Callable[[Context, dl.Resource, str], Awaitable[object]]


def minute() -> ItemExponentialFailureRateLimiter:
    """Make a limiter that delays each retry by 60 seconds."""
    return ItemExponentialFailureRateLimiter(base_delay=60.0, max_delay=60.0)


@asynccontextmanager
async def failing(*controllers: Controller) -> AsyncGenerator[tuple[World, Manager]]:
    """Run controllers beside a Database ``a``."""
    async with world() as w:
        await w.client.create(kinds.CUSTOM_RESOURCE_DEFINITION, crd())
        await w.client.wait_for(kinds.CUSTOM_RESOURCE_DEFINITION, "databases.example.com", dl.wait.established())
        await w.client.create(DB, {"metadata": {"name": "a"}, "spec": {}})
        async with w.running(*controllers) as manager:
            yield w, manager


def declared(**more: Any) -> Callable[[ReconcileFunction], Controller]:
    return controller(DB, owns=[SECRET], writes=[DB, SECRET], rate_limiter=minute, **more)


def child(name: str, ctx: Context, db: dl.Resource, text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": name, "namespace": db.namespace}, "stringData": {"text": text}}
    dl.set_controller_reference(made, db)
    return made


async def annotate(ctx: Context, db: dl.Resource, text: str) -> None:
    await ctx.client.patch(DB, db.name, {"metadata": {"annotations": {"error": text}}})


async def update(ctx: Context, db: dl.Resource, text: str) -> None:
    await ctx.client.update(DB, {**db.edit(), "spec": {"error": text}})


async def several(ctx: Context, db: dl.Resource, text: str) -> None:
    for step in ("begins", "ends"):
        await annotate(ctx, db, f"{text} {step}")
        await ctx.client.patch(DB, db.name, {"status": {"phase": f"{text} {step}"}}, subresource="status")


async def finalizer(ctx: Context, db: dl.Resource, text: str) -> None:
    marked = await ctx.client.add_finalizer(DB, db, "example.com/hold")
    await ctx.client.remove_finalizer(DB, marked, "example.com/hold")


async def apply_child(ctx: Context, db: dl.Resource, text: str) -> None:
    await ctx.client.apply(SECRET, child("child", ctx, db, text))


async def many_children(ctx: Context, db: dl.Resource, text: str) -> None:
    for number in range(20):  # more triggers than a key keeps
        await ctx.client.apply(SECRET, child(f"child-{number}", ctx, db, text))


async def generated_child(ctx: Context, db: dl.Resource, text: str) -> None:
    made = child("", ctx, db, text)
    made["metadata"] = {**made["metadata"], "generateName": "child-"}
    del made["metadata"]["name"]
    await ctx.client.create(SECRET, made)


async def replace_child(ctx: Context, db: dl.Resource, text: str) -> None:
    await ctx.client.delete(SECRET, "child") if await ctx.client.find(SECRET, "child") else None
    await ctx.client.create(SECRET, child("child", ctx, db, text))


async def live(ctx: Context, db: dl.Resource, text: str) -> None:
    await ctx.client.live.patch(DB, db.name, {"metadata": {"annotations": {"error": text}}})


WRITES: list[Write] = [
    annotate,
    update,
    several,
    finalizer,
    apply_child,
    many_children,
    generated_child,
    replace_child,
    live,
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_write_of_failed_run_does_not_shorten_backoff(write: Write) -> None:
    runs: list[float] = []

    @declared()
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        await write(ctx, await ctx.client.get(DB, request.name), f"error {len(runs)}")
        raise ValueError(f"error {len(runs)}")

    async with failing(reconcile):
        await asyncio.sleep(200.0)
    assert [round(later - earlier) for earlier, later in itertools.pairwise(runs)] == [60, 60, 60]


async def fail(request: Request, ctx: Context, text: str, how: Callable[[str], Exception] = ValueError) -> None:
    """Fail with a condition that says the text."""
    db = await ctx.client.get(DB, request.name)
    async with ctx.status(db, on_error="Ready"):
        raise how(text)


async def test_condition_of_failed_run_does_not_shorten_backoff() -> None:
    runs: list[float] = []

    @declared()
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        await fail(request, ctx, f"request {len(runs)} failed")

    async with failing(reconcile) as (w, _):
        await asyncio.sleep(100.0)
        assert len(runs) == 2
        [condition] = (await w.client.get(DB, "a"))["status"]["conditions"]
        assert condition["message"] == "request 2 failed"


async def test_terminal_error_runs_once_until_another_writer_changes_the_object() -> None:
    runs: list[float] = []

    @declared()
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        await apply_child(ctx, await ctx.client.get(DB, request.name), f"error {len(runs)}")
        await fail(request, ctx, f"error {len(runs)}", TerminalError)

    async with failing(reconcile) as (w, manager):
        await asyncio.sleep(100.0)
        assert len(runs) == 1
        [letter] = manager.loops[0].queue.dead_letters()
        assert {getattr(trigger, "source", "") for trigger in letter.triggers} >= {"informer", "owner"}
        await w.client.patch(DB, "a", {"spec": {"size": 2}})
        await asyncio.sleep(1.0)
        assert len(runs) == 2
        await w.client.delete(SECRET, "child")
        await asyncio.sleep(100.0)
        assert len(runs) == 3


async def test_rate_limited_requeue_waits_like_failed_reconcile() -> None:
    runs: list[float] = []

    @declared()
    async def reconcile(request: Request, ctx: Context) -> Result:
        runs.append(now())
        await annotate(ctx, await ctx.client.get(DB, request.name), f"run {len(runs)}")
        return Result(requeue=True)

    async with failing(reconcile):
        await asyncio.sleep(100.0)
    assert len(runs) == 2


async def test_reconcile_over_timeout_waits_for_rate_limiter() -> None:
    runs: list[float] = []

    @declared(timeout=5.0)
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        await annotate(ctx, await ctx.client.get(DB, request.name), f"run {len(runs)}")
        await asyncio.sleep(3600.0)

    async with failing(reconcile):
        await asyncio.sleep(100.0)
    assert len(runs) == 2


@pytest.mark.parametrize("delay", [0.0, 3.0], ids=["during", "after"])
async def test_change_by_another_writer_runs_at_once(delay: float) -> None:
    runs: list[float] = []
    begun = asyncio.Event()

    @declared()
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        begun.set()
        await annotate(ctx, await ctx.client.get(DB, request.name), f"run {len(runs)}")
        await asyncio.sleep(2.0)
        raise ValueError

    async with failing(reconcile) as (w, _):
        await begun.wait()
        await asyncio.sleep(delay)
        await w.client.patch(DB, "a", {"spec": {"size": 2}})
        changed = now()
        await asyncio.sleep(30.0)
        assert len(runs) == 2
        assert runs[1] - changed < 2.5


async def test_echo_of_a_successful_run_still_triggers() -> None:
    runs: list[float] = []

    @declared()
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        if len(runs) == 1:
            await annotate(ctx, await ctx.client.get(DB, request.name), "once")

    async with failing(reconcile):
        await asyncio.sleep(10.0)
    assert len(runs) == 2


async def test_failing_keys_that_trigger_each_other_are_slowed_down() -> None:
    runs: list[float] = []

    @declared(hot_loops=HotLoopOptions(threshold=5, min_interval=2.0, max_interval=8.0, reset_after=30.0), workers=2)
    async def reconcile(request: Request, ctx: Context) -> None:
        runs.append(now())
        other = "b" if request.name == "a" else "a"
        await ctx.client.patch(DB, other, {"metadata": {"annotations": {"from": f"run {len(runs)}"}}})
        raise ValueError

    async with failing(reconcile) as (w, _):
        await w.client.create(DB, {"metadata": {"name": "b"}, "spec": {}})
        await until(lambda: len(runs) > 12)
        await asyncio.sleep(100.0)
    assert len(runs) < 60
