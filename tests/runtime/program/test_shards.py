"""Several managers that share the objects of one controller, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.cache import HandlerFuncs, InformerFactory
from deltaloop.client import Client
from deltaloop.errors import InvalidControllerError, RangeNotOwnedError
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime import Context, Controller, Manager, ManagerOptions, Request, controller
from deltaloop.sharding import ShardMember, ShardOptions, ShardState
from deltaloop.sharding.core.shard_map import ShardMap
from deltaloop.sources import Periodic
from tests.runtime.worlds import CM, World, now, until, world

ELECTION = LeaderElectionConfig(lease_duration=5.0, renew_deadline=3.5, retry_period=2.0, renew_in_thread=False)
NAMESPACES = [f"team-{place:02}" for place in range(24)]


@dataclass
class Fleet:
    """Members of one program, and the keys that they reconcile."""

    w: World
    managers: dict[str, Manager] = field(default_factory=dict[str, Manager])
    members: dict[str, ShardMember] = field(default_factory=dict[str, ShardMember])
    clients: dict[str, Client] = field(default_factory=dict[str, Client])
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    reconciled: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    running: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    refused: list[str] = field(default_factory=list[str])
    error: Exception | None = None
    tracks: bool = False
    tracked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list[str]))

    def declare(self, name: str) -> Controller:
        async def reconcile(request: Request, ctx: Context) -> None:
            self.running[request.key] += 1
            assert self.running[request.key] == 1
            try:
                found = await ctx.client.find(CM, request.name) if request.name == "a" else None
                if self.tracks and found is not None and (key := await ctx.track(kinds.SECRET, "key")) is not None:
                    self.tracked[f"{request.namespace} {key['data']['key']}"].append(name)
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                if self.error is not None and name == "a":
                    raise self.error
                if found is not None and found["data"].get("seen") != found["data"]["value"]:
                    patch = {"data": {"seen": found["data"]["value"], "by": name}}
                    await ctx.client.patch(CM, request.name, patch)
                self.reconciled[name][request.key] += 1
            except RangeNotOwnedError as error:
                self.refused.append(error.key)
                raise
            finally:
                self.running[request.key] -= 1

        sources = [Periodic(10.0, [Request("", "all")])]
        writes = [dl.Permission("v1/ConfigMap", verbs=("patch",))]
        tracks = ["v1/Secret"] if self.tracks else []
        return controller("v1/ConfigMap", workers=40, sources=sources, writes=writes, tracks=tracks, name="maps")(
            reconcile
        )

    def start(self, name: str, **options: Any) -> Manager:
        client = self.clients[name] = self.w.another_client()
        shards = ShardOptions(name="maps", namespace="default", election=ELECTION, drain_timeout=4.0, **options)
        member = self.members[name] = ShardMember(client, shards, identity=name, clock=now, random=lambda: 0.5)
        manager = Manager(
            client, [self.declare(name)], shards=member, options=ManagerOptions(preflight=False, drain_timeout=8.0)
        )
        self.managers[name] = manager
        self.tasks[name] = asyncio.create_task(manager.run())
        return manager

    async def cut(self, name: str) -> None:
        """Let all further requests of a member fail. It does not notice this in another way."""
        self.managers.pop(name)
        await self.clients[name].close()

    def owners(self) -> dict[str, set[str]]:
        """Return the members that own each range, as they see it."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, manager in self.managers.items():
            state = manager.shard_state
            assert state is not None
            for each in state.own:
                if each.is_working:
                    found[each.name].add(name)
        return found

    def settled(self) -> bool:
        """Return whether all members agree, and each range has one owner that works."""
        for manager in self.managers.values():
            state = manager.shard_state
            if state is None or {each.owner for each in state.ranges} != set(self.managers):
                return False
            if any(each.successor or (each.is_own and not each.is_working) for each in state.ranges):
                return False
            if set(state.members) != set(self.managers) or not all(check.ok for check in manager.readiness()):
                return False
        return True

    async def change_all(self, value: str) -> None:
        for namespace in NAMESPACES:
            await self.w.client.patch(CM, "a", {"data": {"value": value}}, namespace=namespace)

    async def converged(self, value: str) -> dict[str, str]:
        """Wait until each object shows the value, and return the member that wrote it by namespace."""
        by: dict[str, str] = {}
        async with asyncio.timeout(60):
            while len(by) < len(NAMESPACES):
                await asyncio.sleep(0.1)
                objects = await self.w.client.list(CM)
                by = {
                    obj.namespace: obj["data"]["by"]
                    for obj in objects
                    if obj.name == "a" and (obj.get("data") or {}).get("seen") == value
                }
        return by


def state_of(manager: Manager) -> ShardState:
    state = manager.shard_state
    assert state is not None
    return state


async def nothing(request: Request, ctx: Context) -> None: ...


@asynccontextmanager
async def fleet(*names: str, tracks: bool = False, **options: Any) -> AsyncGenerator[Fleet, None]:
    async with world() as w:
        for namespace in NAMESPACES:
            await w.client.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
            await w.client.create(CM, {"metadata": {"name": "a", "namespace": namespace}, "data": {"value": "0"}})
        found = Fleet(w, tracks=tracks)
        for name in names:
            found.start(name, **options)
        await until(found.settled)
        yield found
        for name, task in found.tasks.items():
            if name in found.managers:
                found.managers[name].stop()
            else:
                task.cancel()
        await asyncio.gather(*found.tasks.values(), return_exceptions=True)


async def test_members_that_start_together_share_the_objects_from_the_beginning() -> None:
    async with fleet("a") as f:
        await f.converged("0")
        f.managers.pop("a").stop()
        await f.tasks.pop("a")
        first = f.start("b")
        await asyncio.sleep(0.5)
        f.start("c")
        sizes: list[int] = []

        def settled() -> bool:
            sizes.append(len(first.informers[0].indexer) if first.informers else 0)
            return f.settled()

        await until(settled)
        assert max(sizes) <= 0.6 * len(await f.w.client.list(CM))


async def test_a_member_that_restarts_while_it_leaves_receives_ranges() -> None:
    async with fleet("a", "b") as f:
        await f.cut("b")
        lease = ShardOptions(name="maps", namespace="default").lease_name("b")
        labels = {"metadata": {"labels": {"deltaloop.dev/leaving": "true"}}}
        await f.w.client.patch(kinds.LEASE, lease, labels, namespace="default")
        f.tasks["before"] = f.tasks["b"]
        f.start("b")
        await until(f.settled)


async def test_members_share_the_objects_and_new_members_receive_ranges() -> None:
    async with fleet("a") as f, InformerFactory(f.w.client, namespace="default") as factory:
        stored: list[dict[str, str]] = []

        def record(_: dl.Resource, new: dl.Resource) -> None:
            stored.append({**new["data"]})

        factory.informer(CM, field_selector="metadata.name=maps-shards").add_event_handler(
            HandlerFuncs(on_update=record)
        )
        await factory.wait_for_sync()
        assert set((await f.converged("0")).values()) == {"a"}
        f.start("b")
        await until(f.settled)
        f.start("c")
        await until(f.settled)
        await f.change_all("1")
        by = Counter((await f.converged("1")).values())
        assert set(by) == {"a", "b", "c"}
        assert max(by.values()) <= 10
        # While a range waits for its owner, nothing else in the map changes, because the write of the owner would fail.
        for old, new in pairwise(stored):
            ready = [each for each in ShardMap.decode(old["ranges"]).ranges if each.ready]
            assert len({each.owner for each in ready}) <= 1
            assert not ready or {name for name in new if new[name] != old.get(name)} == {"ranges"}
        assert any(each.ready for data in stored for each in ShardMap.decode(data["ranges"]).ranges)
        # Each member caches its share only.
        sizes = [len(manager.informers[0].indexer) for manager in f.managers.values()]
        assert sum(sizes) == len(await f.w.client.list(CM))


async def test_a_leaving_member_gives_its_ranges_away_before_it_stops() -> None:
    async with fleet("a", "b") as f:
        await f.converged("0")
        manager, task = f.managers.pop("b"), f.tasks.pop("b")
        manager.stop()
        began = now()
        await task
        assert now() - began < 2.0
        await until(f.settled, timeout=1.0)
        await f.change_all("1")
        assert set((await f.converged("1")).values()) == {"a"}
        assert [lease.name for lease in await f.w.client.list(kinds.LEASE)] == [
            ShardOptions(name="maps", namespace="default").lease_name("a")
        ]


async def test_the_ranges_of_a_killed_member_move_when_its_lease_has_expired() -> None:
    async with fleet("a", "b", "c") as f:
        await f.converged("0")
        await f.cut("b")
        began = now()
        await f.change_all("1")
        by = await f.converged("1")
        assert set(by.values()) == {"a", "c"}
        assert now() - began < 7.0
        await until(f.settled)


async def test_log_records_and_explanations_name_the_range(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop")
    async with fleet("a", "b") as f:
        f.error = ValueError("planted")
        await f.change_all("1")
        await asyncio.sleep(0.5)
        f.error = None
        await f.converged("1")
        await asyncio.sleep(1.0)
        [failed, *_] = [record for record in caplog.records if record.getMessage().startswith("work failed")]
        assert vars(failed)["range"] in {each.name for each in state_of(f.managers["a"]).own}
        for name, manager in f.managers.items():
            member = f.members[name]
            for namespace in NAMESPACES:
                if not member.share.owns(f"{namespace}/a"):
                    continue
                found = member.range_of(f"{namespace}/a")
                explained = manager._shard_of(f"{namespace}/a")
                run = manager._history.latest("maps", f"{namespace}/a")
                assert found is not None
                assert explained is not None
                assert run is not None
                assert (explained["range"], run.range, run.to_dict(0.0)["range"]) == (found.name,) * 3
                [own] = [each.origin for each in run.triggers]
                assert own.startswith("self, reconcile ")
                assert own.endswith(f", range {found.name}")
            [check] = [check for check in manager.readiness() if check.name == "shards"]
            assert all(each.name in check.message for each in state_of(manager).own[:5])
        told = {record.getMessage(): vars(record) for record in caplog.records}
        for message in ("filling caches of ranges", "taking keys of ranges"):
            assert told[message]["ranges"]


@pytest.mark.parametrize("error", [ValueError("planted"), dl.TerminalError("planted")], ids=["failing", "parked"])
async def test_a_member_forgets_the_failures_of_ranges_that_it_gave_up(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deltaloop.sharding")
    async with fleet("a") as f:
        await f.converged("0")
        f.error = error
        await f.change_all("1")
        await asyncio.sleep(1.0)
        manager = f.managers["a"]
        keys = {f"{namespace}/a" for namespace in NAMESPACES}

        async def failing() -> set[str]:
            [seen] = (await manager.doctor.state()).controllers
            return ({each.key for each in seen.failing} | {each.key for each in seen.parked}) & keys

        assert await failing() >= keys
        f.start("b")
        await until(f.settled)
        left = await failing()
        assert left == {key for key in keys if f.members["a"].share.owns(key)}
        assert 0 < len(left) < len(keys)
        [gave, *_] = [record for record in caplog.records if record.getMessage() == "gave up ranges"]
        taken = {
            name
            for each in caplog.records
            if each.getMessage() == "taking keys of ranges"
            for name in vars(each)["ranges"]
        }
        assert {*vars(gave)["ranges"]} <= taken


async def test_the_owner_of_a_range_watches_the_objects_that_its_keys_track() -> None:
    async with fleet("a", tracks=True) as f:

        def watched(name: str) -> int:
            [loop] = f.managers[name].loops
            assert loop.shared.tracker is not None
            return len(loop.shared.tracker.informers)

        async def set_keys(value: str) -> dict[str, str]:
            wanted = {f"{namespace} {value}": namespace for namespace in NAMESPACES}
            for namespace in NAMESPACES:
                await f.w.client.create_or_update(
                    kinds.SECRET, "key", lambda secret: secret.update(data={"key": value}), namespace=namespace
                )
            await until(lambda: f.tracked.keys() >= wanted.keys())
            await asyncio.sleep(1.0)
            return {namespace: "".join(f.tracked[each]) for each, namespace in wanted.items()}

        assert set((await set_keys("Zmlyc3Q=")).values()) == {"a"}
        assert watched("a") == len(NAMESPACES)
        f.start("b")
        await until(f.settled)
        await asyncio.sleep(1.0)
        owners = {namespace: "a" if f.members["a"].share.owns(f"{namespace}/a") else "b" for namespace in NAMESPACES}
        assert {name: watched(name) for name in "ab"} == Counter(owners.values())
        assert await set_keys("c2Vjb25k") == owners


async def test_a_periodic_key_runs_on_one_member() -> None:
    async with fleet("a", "b", "c") as f:
        await asyncio.sleep(40)
        ran = {name: counts["all"] for name, counts in f.reconciled.items() if counts["all"]}
        assert len(ran) == 1
        assert 3 <= sum(ran.values()) <= 5


async def test_a_range_waits_for_a_running_reconcile_and_cancels_it_at_the_deadline() -> None:
    async with fleet("a") as f:
        await f.converged("0")
        f.seconds = 3.0
        await f.change_all("1")
        await asyncio.sleep(0.5)
        f.start("b")
        await asyncio.sleep(1.0)
        assert not any("b" in names for names in f.owners().values())
        await until(f.settled)
        f.seconds = 30.0
        await f.change_all("2")
        await asyncio.sleep(0.5)
        f.start("c")
        await until(lambda: any("c" in names for names in f.owners().values()), timeout=8.0)
        f.seconds = 0.0
        assert set((await f.converged("2")).values()) == {"a", "b", "c"}


async def test_cluster_scoped_objects_and_keys_by_name_have_one_owner_each() -> None:
    async with fleet("a", "b", key="name") as f:
        await f.change_all("1")
        assert len(set((await f.converged("1")).values())) == 2
        sizes = [len(manager.informers[0].indexer) for manager in f.managers.values()]
        assert sum(sizes) == len(await f.w.client.list(CM))


async def test_objects_with_one_label_value_belong_to_one_member_also_after_the_label_changes() -> None:
    async with fleet("a", "b", label="tenant") as f:
        await f.change_all("1")
        by = await f.converged("1")  # without the label, the namespace decides
        assert set(by.values()) == {"a", "b"}
        f.seconds = 1.0  # a running reconcile ends first; ``reconcile`` asserts that no other begins before
        for tenant in ("one", "two", "three"):
            for namespace in NAMESPACES:
                labels = {"metadata": {"labels": {"tenant": tenant}}, "data": {"value": tenant}}
                await f.w.client.patch(CM, "a", labels, namespace=namespace)
            by = await f.converged(tenant)
            assert len(set(by.values())) == 1
        sizes = [len(manager.informers[0].indexer) for manager in f.managers.values()]
        assert sum(sizes) == len(await f.w.client.list(CM))
        # The owner of a new label reconciles a deletion, and not the former owner.
        for counts in f.reconciled.values():
            counts.clear()
        owner = by[NAMESPACES[0]]
        await f.w.client.delete(CM, "a", namespace=NAMESPACES[0])
        await asyncio.sleep(5.0)
        assert {name for name, counts in f.reconciled.items() if counts[f"{NAMESPACES[0]}/a"]} == {owner}
        # Labels change while ranges move.
        await f.w.client.create(CM, {"metadata": {"name": "a", "namespace": NAMESPACES[0]}, "data": {"value": "0"}})
        f.start("c")
        for place, namespace in enumerate(NAMESPACES):
            labels = {"metadata": {"labels": {"tenant": f"{place % 8}"}}, "data": {"value": "4"}}
            await f.w.client.patch(CM, "a", labels, namespace=namespace)
            await asyncio.sleep(0.2)
        by = await f.converged("4")
        assert all(by[namespace] == by[NAMESPACES[place % 8]] for place, namespace in enumerate(NAMESPACES))


async def test_a_member_with_another_key_is_rejected_while_another_member_is_alive() -> None:
    async with fleet("a") as f:
        await f.converged("0")
        for place, options in enumerate(({"key": "name"}, {"label": "example.com/tenant"})):
            f.start(f"b{place}", **options)
            f.managers.pop(f"b{place}")
            with pytest.raises(dl.InvalidArgumentError) as caught:
                await asyncio.wait_for(f.tasks.pop(f"b{place}"), 5.0)
            assert caught.value.argument == "ShardOptions.key"
            assert not f.reconciled[f"b{place}"]
        await until(f.settled)
        await f.cut("a")
        f.start("c", key="name")
        await until(f.settled)
        await f.change_all("1")
        assert set((await f.converged("1")).values()) == {"c"}


async def test_a_member_does_not_start_before_it_has_read_the_keys_of_other_members() -> None:
    async with fleet("a") as f:
        fault = f.w.server.faults.add(
            Fault(do="refuse", verbs=("list",), resources=("leases.coordination.k8s.io",), code=503)
        )
        f.start("b", key="name")
        f.managers.pop("b")
        await asyncio.sleep(3 * ELECTION.lease_duration)
        f.w.server.faults.remove(fault)
        with pytest.raises(dl.InvalidArgumentError) as caught:
            await asyncio.wait_for(f.tasks.pop("b"), 10.0)
        assert caught.value.argument == "ShardOptions.key"
        assert not f.reconciled["b"]


async def test_a_program_with_several_kinds_cannot_be_sharded_by_a_label() -> None:
    async with fleet("a") as f:
        other = controller("v1/Secret", name="secrets")(nothing)
        shards = ShardOptions(name="both", namespace="default", label="tenant", election=ELECTION)
        member = ShardMember(f.w.client, shards, identity="p", clock=now, random=lambda: 0.5)
        manager = Manager(f.w.client, [f.declare("p"), other], shards=member, options=ManagerOptions(preflight=False))
        with pytest.raises(InvalidControllerError) as caught:
            await manager.run()
        assert (caught.value.controller, caught.value.argument) == ("secrets", "resource")


async def test_a_range_without_an_owner_makes_all_members_unready(caplog: pytest.LogCaptureFixture) -> None:
    async with fleet("a", "b") as f:
        await f.converged("0")
        stored = await f.w.client.get(CM, "maps-shards", namespace="default")
        members = [*f.members.values()]
        for member in members:  # no coordinator acts
            member._coordinate = lambda: asyncio.sleep(0, False)  # type: ignore[method-assign]
        text = stored["data"]["ranges"].replace(members[1]._member.uid, "nobody")
        await f.w.client.patch(CM, "maps-shards", {"data": {"ranges": text}}, namespace="default")
        await asyncio.sleep(9.0)
        assert all(all(check.ok for check in manager.readiness()) for manager in f.managers.values())
        await asyncio.sleep(2.0)
        noise = [vars(each) for each in caplog.records if each.getMessage() == "ranges have no owner"]
        assert len(noise) == 2
        for manager in f.managers.values():
            assert [check.name for check in manager.readiness() if not check.ok] == ["shards"]
            state = state_of(manager)
            assert state.unowned
            [named] = await dl.diagnose(manager)
            assert (named.kind, named.stuck) == (dl.runtime.DiagnosisKind.RANGE_WITHOUT_OWNER, True)
            assert named.count == len(state.unowned)
            assert named.subject.startswith(f"maps range {state.unowned[0].name}")
            [check] = [check for check in manager.readiness() if not check.ok]
            assert state.unowned[0].name in check.message
            assert all(each.name in told["ranges"] for told in noise for each in state.unowned[:10])
            explained = [manager._shard_of(f"{name}/a") for name in NAMESPACES]
            assert {"", "a"} == {each["owner"] for each in explained if each is not None}


async def test_children_must_be_in_the_namespace_of_their_owner() -> None:
    async with fleet("a") as f:
        refused: list[dl.InvalidArgumentError] = []

        @controller("v1/ConfigMap", children=["v1/Secret"], finalizer="example.com/parents", name="parents")
        async def reconcile(request: Request, ctx: Context) -> None:
            if request.namespace != "team-01":
                return
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team-02"}}
            try:
                await ctx.children.apply(secret, garbage_collected=False)
            except dl.InvalidArgumentError as error:
                refused.append(error)

        @reconcile.cleanup
        async def cleanup(request: Request, ctx: Context) -> None:
            await ctx.children.apply(prune_all=True)

        shards = ShardOptions(name="parents", namespace="default", election=ELECTION)
        member = ShardMember(f.w.client, shards, identity="p", clock=now, random=lambda: 0.5)
        options = ManagerOptions(preflight=False)
        manager = Manager(f.w.client, [reconcile], shards=member, options=options)
        running = asyncio.create_task(manager.run())
        await until(lambda: refused)
        manager.stop()
        await running
        assert "team-02" in (refused[0].argument or "")
        assert not await f.w.client.list(kinds.SECRET)


def test_an_elector_and_shards_cannot_be_combined() -> None:
    client = Client(dl.ClientConfig(server="http://localhost"))
    member = ShardMember(client, ShardOptions(name="maps", namespace="default"), identity="a")
    with pytest.raises(dl.InvalidArgumentError):
        Manager(client, [], shards=member, elector=member.elector)
