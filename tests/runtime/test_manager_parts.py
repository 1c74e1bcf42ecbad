"""What a manager says of itself, serves, logs and hands on."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache import InformerOptions
from deltaloop.errors import CacheSyncError, LeadershipLostError, PreflightError, ShutdownTimeoutError
from deltaloop.events import EventRecorder
from deltaloop.runtime import BindAddress, Context, Manager, ManagerOptions, Permission, Request, controller
from deltaloop.runtime.core.readiness import Check, Leadership
from tests.client.fake_transport import After, FakeTransport, json_answer
from tests.having import having
from tests.runtime.program.test_health_server import fetch
from tests.runtime.program.test_manager import reviewing
from tests.runtime.worlds import CM, now, until, world


@controller("v1/ConfigMap", name="maps")
async def maps(request: Request, ctx: Context) -> None: ...


def checks(manager: Manager) -> dict[str, Check]:
    return {check.name: check for check in manager.readiness()}


def fields(caplog: pytest.LogCaptureFixture, words: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if words in record.getMessage()]


class Stubborn:
    """A controller whose reconciles end when they may, and never because they are told to."""

    def __init__(self, name: str = "maps") -> None:
        self.free = asyncio.Event()
        self.declared = controller("v1/ConfigMap", name=name)(self.reconcile)

    async def reconcile(self, request: Request, ctx: Context) -> None:
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                continue


# -- what it says of itself


async def test_manager_is_not_ready_before_start() -> None:
    async with world() as w:
        manager = w.manager(maps)
        assert manager.options == ManagerOptions()
        assert manager.controllers == (maps,)
        assert (manager.loops, dict(manager.servers), manager.leadership) == ((), {}, Leadership.NONE)
        assert checks(manager)["caches-synced"] == Check(
            name="caches-synced", ok=False, message="the caches are not started"
        )
        assert checks(manager)["running"].ok
        assert manager.health() == (Check(name="ping", ok=True), Check(name="leader-election", ok=True))
        assert repr(manager) == "<Manager of maps, running, no election>"
        assert repr(w.manager()) == "<Manager of nothing, running, no election>"


async def test_unconfirmed_cache_is_not_ready() -> None:
    async with world() as w, w.running(maps, max_staleness=10.0) as manager:
        await asyncio.sleep(5.0)
        assert checks(manager)["caches-fresh"].ok
        await asyncio.sleep(20.0)
        assert checks(manager)["caches-fresh"].message.startswith("v1/ConfigMap (last confirmed ")
        assert checks(manager)["caches-synced"].ok


async def test_readiness_contains_unsynced_cache() -> None:
    async with world() as w:
        answer: dict[str, Any] = {
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": [],
        }
        transport = FakeTransport(*[After(3600.0, json_answer(answer))] * 9)
        client = dl.Client(dl.ClientConfig(server="http://fake"), transport=transport)
        manager = w.manager(maps, client=client, preflight=False, sync_timeout=7.0)
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(1.0)
        assert checks(manager)["caches-synced"].message == "not synced: v1/ConfigMap"
        with pytest.raises(CacheSyncError):
            await task
        assert now() == pytest.approx(7.0)


async def test_standby_is_ready_unless_leader_is_required() -> None:
    async with world() as w, w.another_client() as one, w.another_client() as two:
        first = w.manager(maps, client=one, elector=w.elector(one, "first"))
        second = w.manager(
            maps, client=two, elector=w.elector(two, "second"), require_leadership=True, health=BindAddress()
        )
        tasks = [asyncio.create_task(first.run())]
        await until(lambda: first.leadership is Leadership.LEADING)
        tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(5.0)
        assert second.leadership is Leadership.STANDBY
        assert not checks(second)["leader"].ok
        assert checks(second)["caches-synced"].ok
        assert repr(second) == "<Manager of maps, running, standby>"
        url = f"{second.servers['health'].url}/explain?name=a"
        assert json.loads((await fetch(url))[1])["standby"] == {"leader": "first"}
        first.stop()
        await until(lambda: second.leadership is Leadership.LEADING)
        assert "standby" not in json.loads((await fetch(url))[1])
        assert checks(second)["leader"].ok
        second.stop()
        await asyncio.gather(*tasks)


async def test_unknown_leader_is_empty() -> None:
    async with world() as w, w.another_client() as own:
        elector = w.elector(own, "first")
        manager = w.manager(maps, client=own, elector=elector)
        assert manager._standby_of() == ""
        assert w.manager(maps)._standby_of() is None


async def test_term_that_outlives_lease_is_unhealthy() -> None:
    work = Stubborn()
    async with world() as w, w.another_client() as own:
        elector = w.elector(own, "first")
        manager = w.manager(work.declared, client=own, elector=elector, drain_timeout=1.0, shutdown_timeout=2.0)
        task = asyncio.create_task(manager.run())
        await until(lambda: elector.is_leader)
        await w.put("a")
        await asyncio.sleep(1.0)
        lost = (await w.client.get("coordination.k8s.io/v1/Lease", "test", namespace="default")).edit()
        lost["spec"].update(holderIdentity="thief", leaseDurationSeconds=3600)
        await w.client.update("coordination.k8s.io/v1/Lease", lost)
        lease = elector.config.lease_duration
        await asyncio.sleep(2 * lease - 3.0)
        assert manager.health()[1].ok
        await asyncio.sleep(6.0)
        ping, election = manager.health()
        assert ping.ok
        assert not election.ok
        assert "was not renewed" in election.message
        work.free.set()
        await asyncio.sleep(1.0)
        assert manager.health()[1] == Check(name="leader-election", ok=True)
        manager.stop()
        await task


async def test_lost_lease_without_rejoin_ends_program() -> None:
    async with world() as w, w.another_client() as own:
        elector = w.elector(own, "first", rejoin=False)
        manager = w.manager(maps, client=own, elector=elector)
        task = asyncio.create_task(manager.run())
        await until(lambda: elector.is_leader)
        await w.client.delete("coordination.k8s.io/v1/Lease", "test", namespace="default")
        taken = {"metadata": {"name": "test"}, "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
        await w.client.create("coordination.k8s.io/v1/Lease", taken, namespace="default")
        with pytest.raises(LeadershipLostError, check=having(lock="default/test", identity="first")) as caught:
            await task
        assert (caught.value.identity, caught.value.lock) == ("first", elector.lock.describe())


# -- what it serves


async def test_health_and_metrics_have_separate_addresses() -> None:
    async with world() as w:
        options = ManagerOptions(health=BindAddress(), metrics=BindAddress())
        manager = Manager(w.client, [maps], metrics_page=lambda: (b"numbers", "text/plain"), options=options)
        task = asyncio.create_task(manager.run())
        await until(lambda: checks(manager)["caches-synced"].ok)
        health, metrics = manager.servers["health"].url, manager.servers["metrics"].url
        assert sorted(manager.servers) == ["health", "metrics"]
        assert await fetch(f"{health}/healthz?verbose") == (
            200,
            "[+]ping ok\n[+]leader-election ok\ncheck passed\n",
        )
        assert (await fetch(f"{health}/readyz"))[0] == 200
        assert (await fetch(f"{health}/explain?name=a"))[0] == 404
        assert (await fetch(f"{health}/metrics"))[0] == 404
        assert await fetch(f"{metrics}/metrics") == (200, "numbers")
        assert (await fetch(f"{metrics}/healthz"))[0] == 404
        manager.stop()
        await task
        with pytest.raises(RuntimeError):
            _ = manager.servers["health"].url


async def test_token_review_is_configured_per_address(tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "cert.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(path))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
    listen = BindAddress(certificate=path, key=path, token_review=True)
    async with world() as w:
        options = ManagerOptions(health=listen, metrics=listen)
        manager = Manager(w.client, [maps], metrics_page=lambda: (b"numbers", "text/plain"), options=options)
        task = asyncio.create_task(manager.run())
        await until(lambda: checks(manager)["caches-synced"].ok)
        for name, page in (("health", "healthz"), ("metrics", "metrics")):
            url = f"{manager.servers[name].url}/{page}"
            assert (await fetch(url, ssl=trust))[0] == 401
        manager.stop()
        await task


async def test_page_without_address_is_not_served() -> None:
    async with world() as w:
        async with w.running(maps, metrics_page=lambda: (b"numbers", "text/plain")) as manager:
            assert dict(manager.servers) == {}
        with pytest.raises(InvalidArgumentError, check=having(argument="ManagerOptions.metrics")):
            Manager(w.client, [maps], options=ManagerOptions(metrics=BindAddress()))


# -- what it hands on


async def test_each_controller_reports_events_as_itself() -> None:
    components: list[str] = []

    @controller("v1/ConfigMap", name="one")
    async def one(request: Request, ctx: Context) -> None:
        components.append(ctx.recorder.component)

    @controller("v1/Secret", name="two")
    async def two(request: Request, ctx: Context) -> None:
        components.append(ctx.recorder.component)

    async with (
        world() as w,
        EventRecorder(w.client, component="program") as recorder,
        w.running(one, two, recorder=recorder),
    ):
        await w.put("a")
        await w.client.create(kinds.SECRET, {"metadata": {"name": "s"}})
        await asyncio.sleep(1.0)
    assert sorted(components) == ["one", "two"]


async def test_caches_have_namespace_and_informer_options_of_manager() -> None:
    seen: list[tuple[str, Any]] = []
    reconciled: set[str] = set()

    def marked(obj: dl.Resource) -> dl.Resource:
        return dl.Resource.from_dict({**obj.to_dict(), "data": {"seen": "yes"}}, CM)

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        reconciled.add(request.namespace)
        found = await ctx.client.get(CM, request.name, namespace=request.namespace)
        seen.append((request.key, dict(found["data"])))

    async with world() as w, w.running(reconcile, namespace="default", informers=InformerOptions(transform=marked)):
        await w.client.create(CM, {"metadata": {"name": "b", "namespace": "kube-system"}})
        await w.put("a")
        await asyncio.sleep(1.0)
    assert ("default/a", {"seen": "yes"}) in seen
    assert reconciled == {"default"}


async def test_preflight_reviews_managed_namespace_and_program_permissions() -> None:
    access = Permission(kinds.LEASE, verbs=("get",), namespace="locks")
    async with reviewing({("list", "configmaps")}) as (client, asked):
        options = ManagerOptions(namespace="team", permissions=(access,))
        with pytest.raises(PreflightError) as caught:
            await Manager(client, [maps], options=options).run()
        assert {str(rule) for rule in caught.value.missing} == {
            "watch configmaps in namespace team",
            "get leases.coordination.k8s.io in namespace locks",
        }
        assert len(asked) == 3
        manager = Manager(client, [maps], options=ManagerOptions(preflight=False, sync_timeout=1.0))
        with pytest.raises(CacheSyncError):
            await manager.run()
        assert not [path for path in asked[3:] if "reviews" in path]


# -- sources


async def test_failing_source_is_logged_and_running_source_is_canceled(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    class Fails:
        name = "fails"

        async def run(self, queue: Any, on_trigger: Any) -> None:
            raise ValueError("planted")

    class Runs:
        name = "runs"

        async def run(self, queue: Any, on_trigger: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(self.name)

    @controller("v1/ConfigMap", name="maps", sources=[Fails(), Runs()])
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        async with w.running(reconcile):
            await asyncio.sleep(1.0)
            assert ended == []
            [told] = fields(caplog, "source failed")  # at once: it may be long until the end
        assert ended == ["runs"]
    assert (told["source"], told["levelno"]) == ("source fails", logging.ERROR)
    assert told["controller"] == "maps"
    assert isinstance(told["exc_info"][1], ValueError)


async def test_slow_source_is_canceled_once() -> None:
    ended: list[float] = []

    class Slow:
        name = "slow"

        async def run(self, queue: Any, on_trigger: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(5.0)
                ended.append(now())

    @controller("v1/ConfigMap", name="maps", sources=[Slow()])
    async def reconcile(request: Request, ctx: Context) -> None:
        await asyncio.sleep(1000.0)

    async with world() as w:
        async with w.running(reconcile, drain_timeout=0.5, shutdown_timeout=3.0) as manager:
            await w.put("a")
            await asyncio.sleep(1.0)
            begun = now()
            manager.stop()
        assert [round(at - begun, 1) for at in ended] == [5.5]


async def test_warm_standbys_option_needs_election() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(request.key)

    async with world() as w, w.running(reconcile, warm_standbys=False):
        await w.put("a")
        await asyncio.sleep(1.0)
    assert "default/a" in seen


async def test_slow_source_is_canceled_once_after_second_stop() -> None:
    ended: list[float] = []

    class Slow:
        name = "slow"

        async def run(self, queue: Any, on_trigger: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(5.0)
                ended.append(now())

    idle = controller("v1/ConfigMap", name="maps", sources=[Slow()])(maps.function)
    async with world() as w, w.running(idle) as manager:
        await asyncio.sleep(1.0)
        begun = now()
        manager.stop()
        await asyncio.sleep(1.0)
        manager.stop()
    assert [round(at - begun, 1) for at in ended] == [5.0]


# -- the end


async def test_manager_logs_its_phases(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.runtime")
    async with world() as w, w.running(maps):
        await asyncio.sleep(1.0)
    told = [record.getMessage() for record in caplog.records if record.name == "deltaloop.runtime"]
    assert told == [
        "starting manager",
        "caches are in sync",
        "starting workers",
        "workers stopped",
        "manager stopped",
    ]
    assert fields(caplog, "starting manager")[0]["controllers"] == ["maps"]
    assert fields(caplog, "in sync")[0]["informers"] == 1


async def test_canceled_and_abandoned_reconciles_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    one, two = Stubborn("one"), Stubborn("two")
    async with world() as w:
        manager = w.manager(one.declared, two.declared, drain_timeout=1.0, shutdown_timeout=3.0)
        task = asyncio.create_task(manager.run())
        await w.put("a")
        await until(lambda: len(manager.loops) == 2 and all(len(loop.runs) for loop in manager.loops))
        manager.stop()
        with pytest.raises(ShutdownTimeoutError) as caught:
            await task
        keys = ["one: default/a", "two: default/a"]
        assert [key for key in caught.value.keys if key.endswith("/a")] == keys
        [cancelled] = fields(caplog, "canceling reconciles")
        [left] = fields(caplog, "abandoning reconciles")
        assert (cancelled["keys"], left["keys"]) == (keys, keys)
        assert (cancelled["levelno"], left["levelno"]) == (logging.WARNING, logging.ERROR)
        assert not [loop for loop in manager.loops if not loop.queue.shutting_down]
        for each in (one, two):
            each.free.set()
        await asyncio.sleep(0.1)


async def test_graceful_shutdown_closes_queues_and_ends_tasks() -> None:
    async with world() as w:
        manager = w.manager(maps)
        task = asyncio.create_task(manager.run())
        await until(lambda: manager.loops and checks(manager)["caches-synced"].ok)
        manager.stop()
        assert checks(manager)["running"] == Check(name="running", ok=False, message="the program is ending")
        await task
        assert [loop.queue.shutting_down for loop in manager.loops] == [True]
        ours = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in ours if name.startswith(("manager", "controller", "worker", "reflector"))]
        assert "Manager of maps, " in repr(manager)


async def test_second_cancellation_ends_manager_immediately() -> None:
    work = Stubborn()
    async with world() as w:
        manager = w.manager(work.declared)
        task = asyncio.create_task(manager.run())
        await w.put("a")
        await until(lambda: manager.loops and len(manager.loops[0].runs))
        begun = now()
        task.cancel()
        await asyncio.sleep(5.0)
        assert not task.done()
        task.cancel()
        with pytest.raises(ShutdownTimeoutError):
            await task
        assert now() - begun == pytest.approx(5.0, abs=0.1)
        work.free.set()
        await asyncio.sleep(0.1)


@pytest.mark.real_time
async def test_signals_are_handled_while_running_if_enabled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    loop = asyncio.get_running_loop()
    handled: list[tuple[str, int]] = []
    add, remove = loop.add_signal_handler, loop.remove_signal_handler

    def added(number: int, *arguments: Any) -> None:
        handled.append(("add", number))
        add(number, *arguments)

    def removed(number: int) -> bool:
        handled.append(("remove", number))
        return remove(number)

    monkeypatch.setattr(loop, "add_signal_handler", added)
    monkeypatch.setattr(loop, "remove_signal_handler", removed)
    caplog.set_level(logging.DEBUG, "deltaloop.runtime")
    work = Stubborn()
    async with world() as w:
        async with w.running(maps):
            pass
        assert handled == []
        manager = w.manager(work.declared, duplicate_signal_window=0.0)
        task = asyncio.create_task(manager.run(handle_signals=True))
        await w.put("a")
        await until(lambda: manager.loops and len(manager.loops[0].runs), timeout=5.0)
        assert handled == [("add", signal.SIGINT), ("add", signal.SIGTERM)]
        signal.raise_signal(signal.SIGINT)
        await until(lambda: manager._shutdown.stopping, timeout=5.0)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(ShutdownTimeoutError):
            await task
        assert handled[2:] == [("remove", signal.SIGINT), ("remove", signal.SIGTERM)]
        work.free.set()
        await asyncio.sleep(0.05)
    told = [
        (record.getMessage(), record.levelno, vars(record)["signal"])
        for record in caplog.records
        if "signal" in vars(record)
    ]
    assert told == [
        ("received signal, shutting down gracefully", logging.INFO, "SIGINT"),
        ("received second signal, ending immediately", logging.INFO, "SIGINT"),
        ("ignoring signal during shutdown", logging.DEBUG, "SIGTERM"),
    ]
