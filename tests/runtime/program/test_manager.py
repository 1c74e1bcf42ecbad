"""The life of a manager: start in order, leadership, a good end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import (
    CacheSyncError,
    InvalidControllerError,
    LeadershipLostError,
    PreflightError,
    ShutdownTimeoutError,
)
from deltaloop.leaderelection import LeaderElector
from deltaloop.runtime import Context, Manager, Permission, Request, controller
from deltaloop.runtime.core.readiness import Leadership
from tests.client.loopback import serving
from tests.having import having
from tests.runtime.worlds import CM, World, now, until, world


async def test_controllers_of_one_manager_share_informers() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap", name="one")
    async def one(request: Request, ctx: Context) -> None:
        seen.append(f"one {request}")

    @controller("v1/ConfigMap", name="two", reads=["v1/Secret"])
    async def two(request: Request, ctx: Context) -> None:
        seen.append(f"two {request}")

    async with world() as w, w.running(one, two) as manager:
        await w.put("a")
        await asyncio.sleep(1.0)
        assert sorted(seen) == ["one default/a", "two default/a"]
        informers = manager._informers
        assert [informer.name for informer in informers] == ["v1/ConfigMap", "v1/Secret"]
        assert "Manager of one, two" in repr(manager)


async def test_workers_start_when_all_listed_objects_are_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltaloop.cache.listener._ITEMS_PER_TURN", 1)
    causes: list[set[str]] = []

    @controller("v1/ConfigMap", watches=["v1/Secret"])
    async def maps(request: Request, ctx: Context) -> None:
        causes.append({str(trigger.reference and trigger.reference.kind) for trigger in ctx.triggers})

    async with world() as w:
        for number in range(30):
            await w.client.create("v1/Secret", {"metadata": {"name": f"a{number}", "namespace": "default"}})
        await w.put("a9")  # the key of the last Secret
        async with w.running(maps):
            await asyncio.sleep(1.0)
            assert len(causes) == 30
            assert {"ConfigMap", "Secret"} in causes


async def test_controllers_with_equal_names_are_rejected() -> None:
    @controller("v1/ConfigMap")
    async def one(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        with pytest.raises(InvalidControllerError, check=having(argument="name")):
            w.manager(one, one)


async def test_unknown_kind_raises_error_before_start() -> None:
    @controller("example.com/v1/Widget")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        with pytest.raises(UnknownResourceError, check=having(name="example.com/v1/Widget")):
            await w.manager(reconcile).run()


async def test_unserved_kind_raises_cache_sync_error() -> None:
    widget = ResourceType[Resource]("example.com", "v1", "Widget", "widgets")

    @controller(widget)
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        with pytest.raises(CacheSyncError, match=r"example\.com/v1/Widget"):
            await w.manager(reconcile).run()
        manager = w.manager(reconcile)
        with pytest.raises(CacheSyncError):
            await manager.run()
        with pytest.raises(RuntimeError):
            await manager.run()


@asynccontextmanager
async def reviewing(allowed: set[tuple[str, str]] | None) -> AsyncGenerator[tuple[Client, list[str]], None]:
    """A server that answers access reviews, and nothing else."""
    from aiohttp import web

    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path}")
        if not request.path.endswith("selfsubjectaccessreviews"):
            return web.json_response({"kind": "Status", "code": 503, "reason": "ServiceUnavailable"}, status=503)
        if allowed is None:
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        body = await request.json()
        attributes = body["spec"]["resourceAttributes"]
        verdict = (attributes["verb"], attributes["resource"]) in allowed
        body["status"] = {"allowed": verdict}
        return web.json_response(body, status=201)

    async with serving(handle) as address, Client(ClientConfig(server=f"http://{address}")) as client:
        yield client, asked


async def test_missing_permission_raises_error_before_first_list() -> None:
    @controller("v1/ConfigMap", owns=["apps/v1/Deployment"])
    async def reconcile(request: Request, ctx: Context) -> None: ...

    allowed = {("list", "configmaps"), ("watch", "configmaps"), ("list", "deployments")}
    async with reviewing(allowed) as (client, asked):
        with pytest.raises(PreflightError) as caught:
            await Manager(client, [reconcile]).run()
        assert str(caught.value).startswith(
            "this account is not allowed to watch deployments.apps in all namespaces. Grant the role"
        )
        assert {path.rpartition("/")[2] for path in asked} == {"selfsubjectaccessreviews"}
        assert len(asked) == 4


async def test_preflight_reviews_declared_writes() -> None:
    @controller("v1/ConfigMap", writes=[Permission("v1/Secret", verbs=("create", "patch"))])
    async def reconcile(request: Request, ctx: Context) -> None: ...

    allowed = {("list", "configmaps"), ("watch", "configmaps"), ("create", "secrets")}
    async with reviewing(allowed) as (client, _):
        with pytest.raises(PreflightError, match="patch secrets in all namespaces"):
            await Manager(client, [reconcile]).run()


async def test_server_without_access_reviews_allows_start(caplog: pytest.LogCaptureFixture) -> None:
    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with reviewing(None) as (client, asked):
        manager = Manager(client, [reconcile])
        task = asyncio.create_task(manager.run())
        await until(lambda: any(path.endswith("/configmaps") for path in asked))
        manager.stop()
        await task
    assert [record.message for record in caplog.records if "account" in record.message] == [
        "cannot check the permissions of this account, continuing"
    ]


# -- the end


async def begun(w: World, manager: Manager) -> asyncio.Task[None]:
    """Run a manager until it reconciles something."""
    task = asyncio.create_task(manager.run())
    await w.put("a")
    await until(lambda: manager.loops and len(manager.loops[0].runs))
    return task


async def test_stop_lets_running_reconciles_finish_and_starts_no_new_ones() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap", workers=1)
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(f"{request.name} begins")
        await asyncio.sleep(10.0)
        await ctx.client.create(CM, {"metadata": {"name": f"{request.name}-done", "namespace": "other"}})
        seen.append(f"{request.name} ends")

    async with world() as w:
        await w.client.create("v1/Namespace", {"metadata": {"name": "other"}})
        async with w.running(reconcile, namespace="default") as manager:
            await w.put("a")
            await w.put("b")
            await asyncio.sleep(1.0)
            began = now()
            manager.stop()
            assert not {check.name: check.ok for check in manager.readiness()}["running"]
        assert round(now() - began, 3) == 9.0
        assert seen == ["a begins", "a ends"]
        await w.client.get(CM, "a-done", namespace="other")


async def test_reconcile_is_canceled_after_drain_timeout() -> None:
    seen: list[tuple[str, float]] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            await asyncio.sleep(1000.0)
        except asyncio.CancelledError:
            seen.append(("cancelled", round(now() - began, 3)))
            await asyncio.sleep(3.0)
            raise

    async with world() as w:
        async with w.running(reconcile, drain_timeout=20.0, shutdown_timeout=30.0) as manager:
            await w.put("a")
            await asyncio.sleep(1.0)
            began = now()
            manager.stop()
        assert seen == [("cancelled", 20.0)]
        assert round(now() - began, 3) == 23.0


async def test_unstoppable_reconcile_is_abandoned_and_reported() -> None:
    free = asyncio.Event()

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with world() as w:
        manager = w.manager(reconcile, drain_timeout=20.0, shutdown_timeout=30.0)
        task = await begun(w, manager)
        began = now()
        manager.stop()
        with pytest.raises(ShutdownTimeoutError) as caught:
            await task
        assert caught.value.keys == ("configmap: default/a",)
        assert round(now() - began, 3) == 30.0
        free.set()
        await asyncio.sleep(0)


async def test_second_stop_does_not_wait() -> None:
    free = asyncio.Event()

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        await free.wait()

    async with world() as w:
        manager = w.manager(reconcile)
        task = await begun(w, manager)
        began = now()
        manager.stop()
        manager.stop()
        with pytest.raises(ShutdownTimeoutError):
            await task
        assert now() - began < 0.1
        free.set()
        await asyncio.sleep(0)


@pytest.mark.real_time
async def test_duplicate_signal_counts_once_and_reconciles_finish(
    caplog: pytest.LogCaptureFixture,
) -> None:
    free = asyncio.Event()
    seen: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        await free.wait()
        seen.append("in good order")

    caplog.set_level(logging.INFO, "deltaloop.runtime")
    async with world() as w:
        manager = w.manager(reconcile, duplicate_signal_window=30.0)
        task = asyncio.create_task(manager.run(handle_signals=True))
        await w.put("a")
        await until(lambda: manager.loops and len(manager.loops[0].runs))
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        await until(lambda: manager._shutdown.stopping)
        await asyncio.sleep(0.05)
        free.set()
        await task
    assert seen == ["in good order"]
    told = [record.getMessage() for record in caplog.records if "signal" in record.getMessage()]
    assert told == ["received signal, shutting down gracefully"]


async def test_canceled_manager_shuts_down_gracefully() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        await asyncio.sleep(5.0)
        seen.append("ended")

    async with world() as w:
        manager = w.manager(reconcile)
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(1.0)
        await w.put("a")
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["ended"]


async def test_stop_during_start_ends_manager() -> None:
    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        manager = w.manager(reconcile)
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(0)
        manager.stop()
        await task
        assert now() < 1.0


# -- leadership


def replica(w: World, client: Client, identity: str, work: Any, **options: Any) -> tuple[Manager, LeaderElector]:
    elector = w.elector(client, identity)
    return w.manager(work, client=client, elector=elector, **options), elector


async def test_standby_with_warm_caches_takes_over_keys_of_leader() -> None:
    seen: list[tuple[str, str]] = []

    def work(identity: str) -> Any:
        @controller("v1/ConfigMap", name="maps")
        async def reconcile(request: Request, ctx: Context) -> None:
            seen.append((identity, request.name))

        return reconcile

    async with world() as w, w.another_client() as one, w.another_client() as two:
        first, _ = replica(w, one, "first", work("first"))
        second, _ = replica(w, two, "second", work("second"))
        first_task = asyncio.create_task(first.run())
        await until(lambda: first.leadership is Leadership.LEADING)
        second_task = asyncio.create_task(second.run())
        await w.put("a")
        await asyncio.sleep(5.0)
        assert seen == [("first", "a")]
        assert second.leadership is Leadership.STANDBY
        assert all(check.ok for check in second.readiness())
        assert len(second.loops[0].queue) == 1  # its queue is warm, too
        first.stop()
        await first_task
        stopped_at = now()
        await until(lambda: len(seen) == 2)
        assert seen[1] == ("second", "a")
        assert now() - stopped_at <= 2.5  # the lock was given up, so the next retry wins it
        second.stop()
        await second_task


async def test_lost_lease_cancels_workers_before_release_and_candidate_retries() -> None:
    seen: list[tuple[float, str]] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append((round(now(), 1), f"begins, attempt {ctx.attempts}"))
        try:
            await asyncio.sleep(60.0 if len(seen) == 1 else 0.0)
        except asyncio.CancelledError:
            with pytest.raises(LeadershipLostError):
                await ctx.client.live.delete(CM, "a", namespace="default")
            await asyncio.sleep(4.0)  # takes its time to end
            holder = await w.client.get("coordination.k8s.io/v1/Lease", "test", namespace="default")
            seen.append((round(now(), 1), f"ends, held by {holder['spec']['holderIdentity']}"))
            raise

    async with world() as w, w.another_client() as own:
        manager, elector = replica(w, own, "first", reconcile)
        task = asyncio.create_task(manager.run())
        await until(lambda: elector.is_leader)
        await w.put("a")
        await asyncio.sleep(1.0)
        lease = await w.client.get("coordination.k8s.io/v1/Lease", "test", namespace="default")
        taken = lease.edit()
        taken["spec"].update(holderIdentity="thief", leaseDurationSeconds=5)
        await w.client.update("coordination.k8s.io/v1/Lease", taken)
        await until(lambda: len(seen) == 3)
        assert [what for _, what in seen] == [
            "begins, attempt 1",
            "ends, held by thief",
            "begins, attempt 1",  # put back uncounted, and run again once it leads again
        ]
        assert elector.is_leader
        manager.stop()
        await task


async def test_lock_is_not_released_while_abandoned_reconcile_runs() -> None:
    free = asyncio.Event()

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with world() as w, w.another_client() as own:
        manager, elector = replica(w, own, "first", reconcile, drain_timeout=1.0, shutdown_timeout=2.0)
        task = asyncio.create_task(manager.run())
        await until(lambda: elector.is_leader)
        await w.put("a")
        await asyncio.sleep(1.0)
        manager.stop()
        with pytest.raises(ShutdownTimeoutError):
            await task
        lease = await w.client.get("coordination.k8s.io/v1/Lease", "test", namespace="default")
        assert lease["spec"]["holderIdentity"] == "first"
        free.set()
        await asyncio.sleep(0)


async def test_stopping_leader_releases_lock_after_last_reconcile() -> None:
    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        await asyncio.sleep(5.0)

    async with world() as w, w.another_client() as own:
        manager, elector = replica(w, own, "first", reconcile)
        task = asyncio.create_task(manager.run())
        await until(lambda: elector.is_leader)
        await w.put("a")
        await until(lambda: manager.loops and len(manager.loops[0].runs))
        begun = now()
        manager.stop()
        await asyncio.wait_for(task, 60.0)
        assert now() - begun == pytest.approx(5.0, abs=0.1)
        lease = await w.client.get("coordination.k8s.io/v1/Lease", "test", namespace="default")
        assert (lease["spec"].get("holderIdentity", ""), lease["spec"]["leaseTransitions"]) == ("", 0)


async def test_standby_drops_keys_of_gone_objects_except_latest() -> None:
    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(request.name)

    def event(source: str) -> Trigger:
        return Trigger(source=source, verb="delete", at=now())

    seen: list[str] = []
    async with world() as w, w.another_client() as one, w.another_client() as two:
        first, _ = replica(w, one, "first", reconcile)
        tasks = [asyncio.create_task(first.run())]
        await until(lambda: first.leadership is Leadership.LEADING)
        second, _ = replica(w, two, "second", reconcile)
        tasks.append(asyncio.create_task(second.run()))
        await w.put("there")
        await until(lambda: second.loops and len(second.loops[0].queue) == 1)
        queue = second.loops[0].queue
        queue.add("default/asked-for", trigger=event("channel"))
        for number in range(700):
            queue.add(f"default/gone-{number}", trigger=event("owner" if number % 2 else "informer"))
        await asyncio.sleep(301.0)
        assert len(queue) == 201
        first.stop()
        await until(lambda: len(seen) >= 201)
        await asyncio.sleep(1.0)
        assert seen[-201:] == ["there", "asked-for", *(f"gone-{number}" for number in range(501, 700))]
        second.stop()
        await asyncio.gather(*tasks)


async def test_cold_standbys_start_their_caches_when_they_lead() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(request.name)

    async with world() as w, w.another_client() as one, w.another_client() as two:
        first, _ = replica(w, one, "first", reconcile, warm_standbys=False)
        second, _ = replica(w, two, "second", reconcile, warm_standbys=False)
        tasks = [asyncio.create_task(first.run())]
        await until(lambda: first.leadership is Leadership.LEADING)
        tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(3.0)
        assert second.loops == ()
        first.stop()
        await until(lambda: second.leadership is Leadership.LEADING and second.loops)
        await w.put("a")
        await asyncio.sleep(1.0)
        assert seen == ["a"]
        second.stop()
        await asyncio.gather(*tasks)
        with pytest.raises(NotFoundError):
            await w.client.get(CM, "b", namespace="default")
