"""What is tried on each version of kube-apiserver. A case raises if something is wrong, and may return a remark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.conformance.target import RealTarget

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, ExpiredError, NotFoundError
from deltaloop.cache import HandlerFuncs, InformerFactory
from deltaloop.client import Client, DeleteOptions, PatchType, connect
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Manager, ManagerOptions
from deltaloop.testing import Relay, eventually
from deltaloop.testing.injected_faults.core.relay import Reset
from deltaloop.testing.servers.control_plane import ControlPlane
from lab.chaos.storm_load import Report, Storm, change, converged, create, for_each
from lab.soak.work import CRD, FINALIZER, PLAN, Work

CM: Final = kinds.CONFIG_MAP
PATIENCE: Final = 30.0


@dataclass(frozen=True)
class Place:
    """Where a case runs: a server, a relay before it, and an administrator's client.

    Attributes:
        plane: The server.
        relay: Before it.
        kubeconfig: By way of the relay.
        client: Directly.
        relaxed: Options of managers.
    """

    plane: ControlPlane
    relay: Relay
    kubeconfig: dict[str, Any]
    client: Client
    relaxed: ManagerOptions = field(default_factory=lambda: ManagerOptions(namespace="default"))

    def through_relay(self) -> Client:
        """Make a client that goes by the relay."""
        return connect(kubeconfig=self.kubeconfig)


@asynccontextmanager
async def place_of(plane: ControlPlane) -> AsyncGenerator[Place]:
    """Make a place on a running server."""
    config = plane.kubeconfig()
    async with Relay(plane.url) as relay, connect(kubeconfig=config, namespace="default") as client:
        yield Place(plane, relay, relay.kubeconfig(config), client)


async def verbs(at: Place) -> str:
    """All verbs of the client on a built-in kind, with each type of patch."""
    client = at.client
    made = await client.create(CM, {"metadata": {"name": "verbs", "labels": {"case": "verbs"}}, "data": {"a": "1"}})
    assert (await client.get(CM, "verbs")).metadata.uid == made.metadata.uid
    fields = made.edit()
    fields["data"] = {"a": "2"}
    updated = await client.update(CM, fields)
    with suppress(ConflictError):
        await client.update(CM, fields)
        raise AssertionError("an update from an old version was taken")
    await client.patch(CM, "verbs", {"data": {"b": "3"}})
    await client.patch(CM, "verbs", {"data": {"c": "4"}}, type=PatchType.STRATEGIC)
    await client.patch(CM, "verbs", [{"op": "remove", "path": "/data/a"}], type=PatchType.JSON)
    applied: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "verbs"},
        "data": {"d": "5"},
    }
    done = await client.apply(CM, applied)
    assert done["data"] == {"b": "3", "c": "4", "d": "5"}, done["data"]
    assert done.resource_version != updated.resource_version
    await client.delete(CM, "verbs", options=DeleteOptions(uid=made.metadata.uid))
    assert await _is_gone(client, CM, "verbs")
    for number in range(5):
        await client.create(CM, {"metadata": {"name": f"verbs-{number}", "labels": {"case": "verbs"}}})
    selected = ListOptions(label_selector="case=verbs", limit=2)
    assert (await client.list(CM, namespace="default", options=selected)).continue_
    assert len((await client.list_all(CM, namespace="default", options=selected)).items) == 5
    await client.delete_collection(CM, namespace="default", selection=ListOptions(label_selector="case=verbs"))
    assert not (await client.list(CM, namespace="default", options=selected)).items
    return ""


async def subresources(at: Place) -> str:
    """Status, scale, tokens, and kinds by their names."""
    client = at.client
    labels = {"matchLabels": {"app": "x"}}
    pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = {"replicas": 1, "selector": labels, "template": pod}
    await client.create("apps/v1/Deployment", {"metadata": {"name": "sub"}, "spec": spec})
    assert (await client.scale("apps/v1/Deployment", "sub", 3))["spec"]["replicas"] == 3
    await client.patch("apps/v1/Deployment", "sub", {"status": {"replicas": 2}}, subresource="status")
    assert (await client.get("apps/v1/Deployment", "sub"))["status"]["replicas"] == 2
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    await client.create("v1/ServiceAccount", {"metadata": {"name": "sub"}})
    token = (await client.create_subresource("v1/ServiceAccount", "sub", "token", asked))["status"]["token"]
    assert token
    await client.delete("apps/v1/Deployment", "sub")
    return ""


async def informers(at: Place) -> str:
    """An informer's first list, and later changes."""
    for number in range(700):
        await at.client.create(CM, {"metadata": {"name": f"many-{number}", "labels": {"case": "many"}}})
    seen: list[str] = []
    async with at.through_relay() as client, InformerFactory(client, namespace="default") as factory:
        informer = factory.informer(CM, label_selector="case=many")
        informer.add_event_handler(HandlerFuncs(on_add=lambda obj: seen.append(obj.name)))
        await factory.wait_for_sync(timeout=PATIENCE)
        assert len(informer.lister().list()) == 700
        await at.client.create(CM, {"metadata": {"name": "later", "labels": {"case": "many"}}})
        await at.client.delete(CM, "many-0")
        await eventually(lambda: "later" in seen and informer.lister().find("default/many-0") is None, within=PATIENCE)
        assert len(seen) == len({*seen}) == 701
        streamed = informer.statistics().streamed_lists
    await at.client.delete_collection(CM, namespace="default", selection=ListOptions(label_selector="case=many"))
    return "streamed" if streamed else "lists in pages"


async def watches(at: Place) -> str:
    """A watch that continues after a broken connection, without missing or repeated events."""
    seen: list[str] = []
    async with at.through_relay() as client, InformerFactory(client, namespace="default") as factory:
        informer = factory.informer(CM, label_selector="case=watch")
        informer.add_event_handler(HandlerFuncs(on_add=lambda obj: seen.append(obj.name)))
        await factory.wait_for_sync(timeout=PATIENCE)
        for number in range(3):
            at.relay.inject(Reset())
            await at.client.create(CM, {"metadata": {"name": f"watch-{number}", "labels": {"case": "watch"}}})
            await eventually(lambda: len(seen) == number + 1, within=2 * PATIENCE)  # noqa: B023 - it is called here
        report = await informer.check_consistency(timeout=PATIENCE)
        assert report.is_consistent, report
    assert seen == [f"watch-{number}" for number in range(3)]
    return ""


async def forgotten(at: Place) -> str:
    """A watch or list from a version that has expired (410)."""
    await at.client.create(PLAN, {"metadata": {"name": "old"}})
    async with RealTarget(at.plane).open() as api:
        await api.compact()
    try:
        first = ListOptions(resource_version="1")
        async with at.client.watch(PLAN, namespace="default", options=first) as stream:
            async for event in stream:
                raise AssertionError(f"a watch from the first version of all began with {event.type}")
        raise AssertionError("a watch from the first version of all just ended")
    except ExpiredError:
        pass
    try:
        exact = ListOptions(resource_version="1", resource_version_match="Exact")
        await at.client.list(PLAN, namespace="default", options=exact)
    except ExpiredError:
        return ""
    raise AssertionError("a list of the first version of all was answered")


async def election(at: Place) -> str:
    """Two candidates of a leader election, one of which is released or silent."""
    async with AsyncExitStack() as stack:
        electors: list[LeaderElector] = []
        tasks: list[asyncio.Task[None]] = []
        for name in ("one", "two"):
            client = await stack.enter_async_context(at.through_relay() if name == "two" else _direct(at))
            lock = LeaseLock(client, namespace="default", name="versions", identity=name)
            config = LeaderElectionConfig(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
            elector = LeaderElector(lock, config, client=client)

            async def lead(elector: LeaderElector = elector) -> None:
                async for term in elector.terms():
                    async with term:
                        await asyncio.Event().wait()

            electors.append(elector)
            tasks.append(asyncio.create_task(lead()))
            if name == "one":
                await eventually(lambda: electors[0].is_leader, within=PATIENCE)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await eventually(lambda: electors[1].is_leader, within=PATIENCE)
        at.relay.refuse()
        at.relay.inject(Reset())
        await eventually(lambda: not electors[1].is_leader, within=PATIENCE)
        await at.relay.accept()
        await eventually(lambda: electors[1].is_leader, within=PATIENCE)
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
    return ""


def _direct(at: Place) -> Client:
    return connect(kubeconfig=at.plane.kubeconfig())


async def events(at: Place) -> str:
    """Events in both APIs, counted and in series."""
    about = await at.client.create(CM, {"metadata": {"name": "events"}})
    for api in EventApi:
        component = f"example.com/{api.name.lower().replace('_', '-')}"
        options = EventRecorderOptions(api=api)
        async with EventRecorder(at.client, component=component, options=options) as recorder:
            for _ in range(2):
                recorder.event(about, "Normal", "Tried", "twice", action="Try")
            assert await recorder.flush(PATIENCE)
            assert recorder.api is api
    found = await at.client.list(kinds.EVENT, namespace="default")
    assert [each["reason"] for each in found.items].count("Tried") == 2
    return ""


async def managers(at: Place) -> str:
    """A manager with a CRD: preflight, finalizers, owned objects, status, threads."""
    await at.client.create(kinds.CUSTOM_RESOURCE_DEFINITION, CRD)

    async def is_served() -> bool:
        await at.client.list(PLAN)
        return True

    await eventually(is_served, within=PATIENCE)
    async with at.through_relay() as client, EventRecorder(client, component="versions") as recorder:
        manager = Manager(client, Work(period=5.0).controllers(), recorder=recorder, options=at.relaxed)
        running = asyncio.create_task(manager.run())
        for number in range(10):
            spec = {"text": f"text {number}", "maps": 2}
            await at.client.create(PLAN, {"metadata": {"name": f"plan-{number}"}, "spec": spec})
        for number in range(10):
            await eventually(partial(_is_done, at.client, f"plan-{number}"), within=PATIENCE)
            await at.client.delete(PLAN, f"plan-{number}")
            await eventually(partial(_is_gone, at.client, PLAN, f"plan-{number}"), within=PATIENCE)
        manager.stop()
        await running
    return ""


async def _is_done(client: Client, name: str) -> bool:
    plan = await client.get(PLAN, name)
    maps: list[Resource] = [await client.get(CM, f"{name}-{number}") for number in range(2)]
    wanted = plan["spec"]["text"]
    assert FINALIZER in plan["metadata"]["finalizers"]
    assert all(each.annotations.get("size") == str(len(wanted)) for each in maps)
    return bool(plan["status"]["text"] == wanted)


async def _is_gone(client: Client, kind: ResourceType[Resource], name: str) -> bool:
    try:
        await client.get(kind, name)
    except NotFoundError:
        return True
    return False


async def storm(at: Place) -> str:
    """Two replicas, 300 objects, failing reconciles, broken connections, and a lost leader."""
    report, names = Report(300), [f"o-{number}" for number in range(300)]
    works = Storm(report, seed=1)

    @asynccontextmanager
    async def replica(name: str) -> AsyncGenerator[Manager]:
        async with at.through_relay() as client:
            lock = LeaseLock(client, namespace="default", name="storm", identity=name)
            config = LeaderElectionConfig(lease_duration=4.0, renew_deadline=3.0, retry_period=0.2)
            elector = LeaderElector(lock, config, client=client)
            manager = Manager(client, [works.controller()], elector=elector, options=at.relaxed)
            running = asyncio.create_task(manager.run())
            try:
                yield manager
            finally:
                manager.stop()
                await running

    async with AsyncExitStack() as stack, asyncio.timeout(240):
        first = await stack.enter_async_context(AsyncExitStack())
        leader = await first.enter_async_context(replica("one"))
        await eventually(lambda: leader.leadership.value == "leading", within=PATIENCE)
        await stack.enter_async_context(replica("two"))
        await for_each(names, lambda name: create(at.client, name))
        for turn in range(3):
            at.relay.inject(Reset())
            await for_each(names[turn::3], lambda name: change(at.client, name, works.random))
        await first.aclose()
        await for_each(names, lambda name: change(at.client, name, works.random))
        await converged(at.client, report, works)
    assert not works.twice, works.twice
    return ""


Case = Callable[[Place], Awaitable[str]]
CASES: Final[tuple[Case, ...]] = (
    verbs,
    subresources,
    informers,
    watches,
    election,
    events,
    managers,
    forgotten,
    storm,
)
