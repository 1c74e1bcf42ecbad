"""What lives as long as the program: entered before the first reconcile, exited after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

import pytest

import deltaloop as dl
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.errors import InvalidControllerError, LifespanError
from deltaloop.runtime import Context, Controller, Request, controller
from tests.having import having
from tests.runtime.worlds import CM, until, world


class Pool:
    """A pool of connections that notes what happens."""

    def __init__(self, notes: list[str], *, fail: str = "") -> None:
        self.notes = notes
        self.fail = fail

    async def __aenter__(self) -> Self:
        await asyncio.sleep(1.0)
        if self.fail == "begin":
            raise ConnectionError("nobody listens")
        self.notes.append("open")
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.sleep(1.0)
        if self.fail == "end":
            raise ConnectionError("it broke")
        if self.fail == "hang":
            await asyncio.sleep(1e6)
        self.notes.append(f"closed {raised[0]}")


def using(pool: dl.runtime.Lifespan[Pool], **more: Any) -> Controller:
    @controller(CM, lifespan=pool, **more)
    async def reconcile(request: Request, ctx: Context) -> None:
        ctx.lifespan(pool).notes.append(f"reconcile {request.name}")
        if request.name == "slow":
            await asyncio.sleep(5.0)
            ctx.lifespan(pool).notes.append("slow ends")

    return reconcile


async def test_lifespan_encloses_all_reconciles() -> None:
    notes: list[str] = []

    @dl.lifespan
    async def pool() -> AsyncIterator[Pool]:
        async with Pool(notes) as opened:
            yield opened
        notes.append("after the yield")

    async with world() as w:
        await w.put("a")
        async with w.running(using(pool)):
            await w.put("slow")
            await until(lambda: "reconcile slow" in notes)
    assert notes == ["open", "reconcile a", "reconcile slow", "slow ends", "closed None", "after the yield"]


async def test_function_may_return_any_async_context_manager() -> None:
    notes: list[str] = []

    @dl.lifespan
    @asynccontextmanager
    async def generator() -> AsyncGenerator[Pool]:
        async with Pool(notes) as opened:
            yield opened

    @dl.lifespan
    def returned() -> AbstractAsyncContextManager[Pool]:
        return Pool(notes)

    for pool in (generator, returned, dl.lifespan(lambda: Pool(notes))):
        notes.clear()
        async with world() as w, w.running(using(pool)):
            await w.put("a")
            await until(lambda: len(notes) == 2)
        assert notes == ["open", "reconcile a", "closed None"]


async def test_controllers_share_lifespan_of_their_program() -> None:
    notes: list[str] = []
    pool = dl.lifespan(lambda: Pool(notes))
    async with world() as w:
        for _ in range(2):
            async with w.running(using(pool, name="first"), using(pool, name="second")):
                await asyncio.sleep(1.0)
    assert notes == ["open", "closed None"] * 2


async def test_plain_functions_cleanups_and_deadlines_can_use_lifespan() -> None:
    notes: list[str] = []
    pool = dl.lifespan(lambda: Pool(notes))

    def give_up(request: Request, ctx: Context) -> bool:
        ctx.lifespan(pool).notes.append("deadline")
        return True

    @controller(CM, lifespan=pool, finalizer="x.dev/y")
    def reconcile(request: Request, ctx: Context) -> None:
        ctx.lifespan(pool).notes.append("plain")

    @reconcile.cleanup(deadline=0.001, on_deadline=give_up)
    def clean_up(request: Request, ctx: Context) -> None:
        ctx.lifespan(pool).notes.append("clean-up")
        raise ValueError

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: "plain" in notes)
        await w.client.delete(CM, "a")
        await until(lambda: "deadline" in notes)
    assert {"clean-up", "deadline"} < set(notes)


async def test_lifespan_stays_open_across_terms() -> None:
    notes: list[str] = []
    pool = dl.lifespan(lambda: Pool(notes))
    async with world() as w:
        elector = w.elector(w.client, "me")
        async with w.running(using(pool), elector=elector):
            await w.put("a")
            await until(lambda: "reconcile a" in notes)
            await w.client.patch("coordination.k8s.io/v1/Lease", "test", {"spec": {"holderIdentity": "other"}})
            await until(lambda: not elector.is_leader)
            await until(lambda: elector.is_leader)
            await w.put("b")
            await until(lambda: "reconcile b" in notes)
    assert (notes.count("open"), notes.count("closed None"), notes[-1]) == (1, 1, "closed None")


@pytest.mark.parametrize(("fail", "phase"), [("begin", "begin"), ("end", "end"), ("hang", "end")])
async def test_failing_lifespan_ends_program_with_error(fail: str, phase: str) -> None:
    pool = dl.lifespan(lambda: Pool([], fail=fail))
    async with world() as w:
        manager = w.manager(using(pool), shutdown_timeout=30.0)
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(5.0)
        manager.stop()
        with pytest.raises(LifespanError, match=rf"lifespan <lambda> failed to {phase}: \w+Error") as caught:
            await running
    assert (caught.value.phase, caught.value.lifespan) == (phase, "<lambda>")
    assert isinstance(caught.value.__cause__, TimeoutError if fail == "hang" else ConnectionError)


async def test_lifespan_closes_after_failure_of_program() -> None:
    notes: list[str] = []
    broken = using(dl.lifespan(lambda: Pool(notes)), reads=["example.com/v1/Missing"])
    async with world() as w:
        with pytest.raises(dl.errors.UnknownResourceError):
            await w.manager(broken).run()
    assert notes == ["open", "closed None"]


async def test_stop_during_start_of_lifespan_ends_program() -> None:
    notes: list[str] = []
    async with world() as w:
        manager = w.manager(using(dl.lifespan(lambda: Pool(notes))))
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(0.5)
        manager.stop()
        await running
    assert notes == []


async def test_undeclared_lifespan_raises_error_with_remedy() -> None:
    errors: list[Exception] = []
    pool = dl.lifespan(lambda: Pool([]))

    @controller(CM)
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            ctx.lifespan(pool)
        except InvalidControllerError as error:
            errors.append(error)

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: errors)
    assert "lifespan=" in str(errors[0])


async def coroutine() -> Pool:
    return Pool([])


def generator() -> Any:
    yield Pool([])


def needs(dsn: str) -> Pool:
    return Pool([])


@pytest.mark.parametrize("wrong", [coroutine, generator, needs, Pool([]), 3])
def test_invalid_lifespan_is_rejected(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="lifespan"):
        dl.lifespan(wrong)
    with pytest.raises(InvalidControllerError, check=having(argument="lifespan")):
        using(wrong)
