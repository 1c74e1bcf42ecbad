"""What a reconciler keeps between its runs, and when its next one comes: ``ctx.memo`` and ``Result.jitter``."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Manager, Request, Result, controller
from deltaloop.sources import Channel, Periodic
from tests.having import having
from tests.runtime.worlds import CM, now, until, world


def kept(manager: Manager) -> int:
    """Return how many memories a manager's only controller keeps."""
    [loop] = manager.loops
    return len(loop.memories)


async def test_memo_survives_retries_and_later_reconciles() -> None:
    seen: list[tuple[str, int, int]] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        assert ctx.memo is ctx.memo
        ctx.memo["runs"] = ctx.memo.get("runs", 0) + 1
        seen.append((request.name, ctx.memo["runs"], ctx.attempts))
        if ctx.attempts < 3:
            raise ValueError("not yet")

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await w.put("b")
        await until(lambda: len(seen) == 6)
        await w.client.patch(CM, "a", {"data": {"x": "y"}})
        await until(lambda: len(seen) == 9)
        assert [each for each in seen if each[0] == "a"] == [("a", runs, 1 + (runs - 1) % 3) for runs in range(1, 7)]
        assert [each for each in seen if each[0] == "b"] == [("b", runs, runs) for runs in range(1, 4)]
        assert kept(manager) == 2


async def test_memo_is_dropped_with_object_despite_predicates() -> None:
    seen: list[dict[str, Any]] = []
    channel = Channel()

    @controller("v1/ConfigMap", predicates=[Where(lambda _: False)], sources=[channel])
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(dict(ctx.memo))
        ctx.memo["of"] = request.name

    async def run(expected: dict[str, Any]) -> None:
        await asyncio.sleep(1.0)
        channel.send("default/a")
        await until(lambda: seen)
        assert seen == [expected]
        seen.clear()

    async with world() as w, w.running(reconcile) as manager:
        await run({})
        await run({})
        assert kept(manager) == 0, "there is no such object"
        await w.put("a")
        await run({})
        await run({"of": "a"})
        await w.client.delete(CM, "a", namespace="default")
        await asyncio.sleep(1.0)
        assert kept(manager) == 0
        await w.put("a")
        await run({})
        await run({"of": "a"})
        # A watch that was away brings the successor as an update.
        w.server.faults.add(Fault(do="refuse", verbs=("watch", "list"), resources=("configmaps",), code=503))
        w.server.faults.strike_watches(Fault(do="cut", resources=("configmaps",)))
        await asyncio.sleep(1.0)
        await w.client.delete(CM, "a", namespace="default")
        await w.put("a")
        w.server.faults.compact()
        w.server.faults.clear()
        await asyncio.sleep(60.0)
        assert kept(manager) == 0
        await run({})


@pytest.mark.parametrize("successor", [False, True])
async def test_reconcile_that_outlives_object_leaves_no_memo(successor: bool) -> None:
    go, begun, seen = asyncio.Event(), asyncio.Event(), list[dict[str, Any]]()

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        begun.set()
        await go.wait()
        seen.append(dict(ctx.memo))
        ctx.memo["handle"] = request.name

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await begun.wait()
        await w.client.delete(CM, "a", namespace="default")
        if successor:
            await w.put("a")
        await asyncio.sleep(1.0)
        go.set()
        await until(lambda: len(seen) == 2)
        assert seen == [{}, {}]
        assert kept(manager) == (1 if successor else 0)


async def test_memo_ends_with_term() -> None:
    seen: list[int] = []

    @controller("v1/ConfigMap", sources=[Periodic(5.0, ["default/a"])])
    async def reconcile(request: Request, ctx: Context) -> None:
        ctx.memo["runs"] = ctx.memo.get("runs", 0) + 1
        seen.append(ctx.memo["runs"])

    async with world() as w, w.another_client() as client:
        await w.put("a")
        elector = w.elector(client, "one")
        manager = w.manager(reconcile, client=client, elector=elector)
        running = asyncio.create_task(manager.run())
        await until(lambda: len(seen) >= 3)
        assert seen[:3] == [1, 2, 3]
        fault = w.server.faults.add(Fault(do="refuse", resources=("leases.coordination.k8s.io",), code=503))
        await until(lambda: not elector.is_leader)
        await asyncio.sleep(5.0)
        assert kept(manager) == 0
        w.server.faults.remove(fault)
        seen.clear()
        await until(lambda: len(seen) >= 2, timeout=120.0)
        assert seen[:2] == [1, 2]
        manager.stop()
        await running


@pytest.mark.real_time
async def test_plain_function_has_memo() -> None:
    seen: list[int] = []

    @controller("v1/ConfigMap")
    def reconcile(request: Request, ctx: Context) -> Result | None:
        assert threading.current_thread() is not threading.main_thread()
        ctx.memo["runs"] = ctx.memo.get("runs", 0) + 1
        seen.append(ctx.memo["runs"])
        return Result(requeue_after=0.0) if len(seen) < 3 else None

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: seen == [1, 2, 3], timeout=5.0)


# -- jitter


@pytest.mark.parametrize(("random", "after"), [(0.0, 300.0), (0.5, 315.0), (0.999, 329.97)])
async def test_jitter_delays_requeue_by_random_fraction(random: float, after: float) -> None:
    at: list[float] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> Result:
        at.append(now())
        return Result(requeue_after=300.0, jitter=0.1)

    async with world() as w, w.running(reconcile, random=lambda: random):
        await w.put("a")
        await until(lambda: len(at) == 3, timeout=1000.0)
    assert [later - earlier for earlier, later in itertools.pairwise(at)] == pytest.approx([after, after])


@pytest.mark.parametrize(
    "given",
    [
        {"requeue_after": 300.0, "jitter": -0.1},
        {"requeue_after": 300.0, "jitter": 30.0},
        {"requeue_after": 300.0, "jitter": float("nan")},
        {"requeue": True, "jitter": 0.1},
    ],
)
def test_invalid_jitter_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, check=having(argument="Result.jitter")):
        Result(**given)
