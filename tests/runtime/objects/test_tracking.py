"""``ctx.track`` on an embedded server: what changes asks for a run, what is released ends its watch."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.cache import InformerOptions, ReflectorOptions
from deltaloop.cache.errors import CacheSyncError
from deltaloop.errors import InvalidArgumentError, InvalidControllerError
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Manager, Request, controller
from deltaloop.runtime.core.access import roles
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.objects.tracking import Tracker
from deltaloop.runtime.program.wiring import wires_of
from deltaloop.sources import Channel
from deltaloop.testing.harness import Harness
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue
from tests.having import having
from tests.runtime.worlds import CM, cm, now, until, world

SECRET = kinds.SECRET
TWO = {"two": "-"}


def secret(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "stringData": data}


def watched(manager: Manager) -> list[str]:
    """Return what the watches of a manager's only controller are called."""
    [loop] = manager.loops
    assert loop.shared.tracker is not None
    return sorted(informer.name for informer in loop.shared.tracker.informers)


def of(name: str) -> str:
    return f"v1/Secret in namespace default where metadata.name={name}"


class Users:
    """ConfigMaps that name Secrets in ``data.secrets``; each run writes down what it saw."""

    def __init__(self, **declared: Any) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.triggers: list[str] = []
        self.fails = False
        declared.setdefault("tracks", ["v1/Secret"])
        self.controller = controller("v1/ConfigMap", **declared)(self.reconcile)

    async def reconcile(self, request: Request, ctx: Context) -> None:
        self.triggers += [f"{trigger.source} {trigger.verb}" for trigger in ctx.triggers]
        obj = await ctx.client.find(CM, request.name, namespace=request.namespace)
        found: dict[str, str] = {}
        data: dict[str, str] = {} if obj is None else obj.to_dict().get("data") or {}
        for name in data.get("secrets", "").split():
            tracked = await ctx.track("v1/Secret", name)
            found[name] = "-" if tracked is None else tracked.resource_version
        self.seen.append((request.name, found))
        if self.fails:
            raise ValueError("not yet")

    async def runs(self, *expected: tuple[str, dict[str, str]]) -> None:
        """Wait until nothing happens any more, and compare the runs since the last time."""
        await asyncio.sleep(2.0)
        assert sorted(self.seen, key=str) == sorted(expected, key=str)
        self.seen.clear()


async def test_changes_of_tracked_object_reconcile_tracking_keys() -> None:
    users = Users()
    async with world() as w, w.running(users.controller) as manager:
        await w.put("a", secrets="one")
        await w.put("b", secrets="one two")
        await w.put("c")
        await users.runs(("a", {"one": "-"}), ("b", {"one": "-", "two": "-"}), ("c", {}))
        assert watched(manager) == [of("one"), of("two")]
        made = await w.client.create(SECRET, secret("one"))
        await w.client.create(SECRET, secret("three"))
        await users.runs(*((name, {"one": made.resource_version} | more) for name, more in (("a", {}), ("b", TWO))))
        changed = await w.client.patch(SECRET, "one", {"stringData": {"x": "y"}})
        assert changed.resource_version != made.resource_version
        await users.runs(*((name, {"one": changed.resource_version} | more) for name, more in (("a", {}), ("b", TWO))))
        await w.client.delete(SECRET, "one")
        await users.runs(("a", {"one": "-"}), ("b", {"one": "-", "two": "-"}))
        assert {trigger for trigger in users.triggers if trigger.startswith("track")} == {
            "track add",
            "track update",
            "track delete",
        }


async def test_existing_tracked_object_causes_no_second_reconcile() -> None:
    users = Users()
    async with world() as w:
        one = await w.client.create(SECRET, secret("one"))
        async with w.running(users.controller):
            await w.put("a", secrets="one")
            await users.runs(("a", {"one": one.resource_version}))


async def test_key_without_object_tracks_for_one_reconcile() -> None:
    channel, found = Channel(), list[object]()

    @controller("v1/ConfigMap", tracks=["v1/Secret"], sources=[channel])
    async def reconcile(request: Request, ctx: Context) -> None:
        found.append(await ctx.track("v1/Secret", "one"))

    async with world() as w, w.running(reconcile) as manager:
        channel.send("default/nothing")
        await until(lambda: found)
        await asyncio.sleep(1.0)
        assert watched(manager) == []


async def test_object_not_tracked_again_is_released_after_success() -> None:
    users = Users()
    async with world() as w, w.running(users.controller) as manager:
        await w.put("a", secrets="one two")
        await w.put("b", secrets="two")
        await users.runs(("a", {"one": "-", "two": "-"}), ("b", TWO))
        await w.client.patch(CM, "a", {"data": {"secrets": ""}})
        await users.runs(("a", {}))
        assert watched(manager) == [of("two")]
        two = await w.client.create(SECRET, secret("two"))
        await w.client.create(SECRET, secret("one"))
        await users.runs(("b", {"two": two.resource_version}))


async def test_released_informer_sees_no_writes_and_close_waits_for_it() -> None:
    async with world() as w:
        views = Views()
        tracker = Tracker(
            "maps",
            {"v1/Secret": SECRET},
            client=w.client,
            queue=RateLimitingQueue[str](name="maps"),
            on_trigger=lambda _source, _verb: None,
            views=views,
            namespace=None,
            sync_timeout=5.0,
            options=InformerOptions(),
            transform=None,
            clock=now,
        )
        for name in ("one", "two"):
            await tracker.track("v1/Secret", name, "default", key="a", client=w.client, check=lambda _: None)
        assert [len(views.of(SECRET).written("default", name)) for name in ("one", "two", "three", "")] == [1, 1, 0, 2]
        assert not views.of(SECRET).written("other", "one")
        assert views.of(SECRET).find("default") is None, "they answer no lists"
        tracker.ended("a", succeeded=True, exists=True)
        await tracker.track("v1/Secret", "one", "default", key="a", client=w.client, check=lambda _: None)
        tracker.ended("a", succeeded=True, exists=True)
        assert [len(views.of(SECRET).written("default", name)) for name in ("one", "two")] == [1, 0]
        [informer] = tracker.informers
        await tracker.close()
        assert informer.stopped
        assert not views.of(SECRET).written("default", "")
        assert len(tracker) == 0


async def test_failed_reconcile_releases_no_tracked_objects() -> None:
    users = Users(rate_limiter=lambda: ItemExponentialFailureRateLimiter(1000.0, 1000.0))
    async with world() as w, w.running(users.controller) as manager:
        await w.put("a", secrets="one")
        await users.runs(("a", {"one": "-"}))
        users.fails = True
        await w.client.patch(CM, "a", {"data": {"secrets": "two"}})
        await users.runs(("a", TWO))
        assert watched(manager) == [of("one"), of("two")]
        users.fails = False
        await w.client.create(SECRET, secret("one"))
        await users.runs(("a", TWO))
        assert watched(manager) == [of("two")]


@pytest.mark.parametrize("declared", [{}, {"predicates": [Where(lambda obj: "skip" not in obj.labels)]}])
async def test_all_tracked_objects_are_released_after_deletion(declared: dict[str, Any]) -> None:
    users = Users(**declared)
    async with world() as w, w.running(users.controller) as manager:
        await w.put("a", secrets="one two")
        await asyncio.sleep(2.0)
        assert len(watched(manager)) == 2
        await w.client.patch(CM, "a", {"metadata": {"labels": {"skip": "yes"}}})
        await w.client.delete(CM, "a")
        await asyncio.sleep(2.0)
        assert watched(manager) == []
        users.seen.clear()
        await w.client.create(SECRET, secret("one"))
        await users.runs()


async def test_reconcile_that_outlives_object_leaves_no_watch() -> None:
    go, begun = asyncio.Event(), asyncio.Event()

    @controller("v1/ConfigMap", tracks=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        if not begun.is_set():
            await ctx.track("v1/Secret", "one")
            begun.set()
            await go.wait()
            await ctx.track("v1/Secret", "two")
            raise ValueError("not yet")

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await begun.wait()
        await w.client.delete(CM, "a")
        await asyncio.sleep(1.0)
        assert watched(manager) == [of("one")]
        go.set()
        await asyncio.sleep(1.0)
        assert watched(manager) == []


async def test_many_tracked_objects_share_watch_without_missing_changes() -> None:
    users = Users()
    names = [f"s{number:02}" for number in range(25)]
    async with world() as w, w.running(users.controller) as manager:
        for name in names:
            await w.put(f"of-{name}", secrets=name)
        await users.runs(*((f"of-{name}", {name: "-"}) for name in names))
        assert len(watched(manager)) == 20
        assert "v1/Secret in namespace default" in watched(manager)
        versions = {name: (await w.client.create(SECRET, secret(name))).resource_version for name in names}
        await w.client.create(SECRET, secret("other"))
        await users.runs(*((f"of-{name}", {name: version}) for name, version in versions.items()))
        for name in names[:24]:
            await w.client.patch(CM, f"of-{name}", {"data": {"secrets": ""}})
        await asyncio.sleep(2.0)
        assert len(watched(manager)) <= 2
        await w.client.patch(CM, f"of-{names[24]}", {"data": {"secrets": ""}})
        await asyncio.sleep(2.0)
        assert watched(manager) == []


async def test_own_writes_to_tracked_object_are_visible_before_cache() -> None:
    seen: list[Any] = []

    @controller("v1/ConfigMap", tracks=["v1/Secret"], writes=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        if seen:
            return
        await ctx.client.create(SECRET, secret("one", x="1"))
        for change in (None, {"stringData": {"x": "2"}}):
            if change is not None:
                await ctx.client.patch(SECRET, "one", change)
            found = await ctx.track(SECRET, "one")
            seen.append(None if found is None else found.resource_version)
            seen.append(ctx.client.writes[-1].version)
        await ctx.client.delete(SECRET, "one")
        seen.append(await ctx.track(SECRET, "one"))

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: len(seen) == 5)
        assert seen[0] == seen[1]
        assert seen[2] == seen[3] != seen[0]
        assert seen[4] is None


@pytest.mark.parametrize("write", ["create", "delete"])
async def test_own_write_before_start_of_watch_is_visible(write: str) -> None:
    found: list[tuple[object, object]] = []

    @controller("v1/ConfigMap", tracks=["v1/Secret"], writes=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        if write == "create":
            made = await ctx.client.create(SECRET, secret("one"))
        else:
            made = None
            await ctx.client.delete(SECRET, "one")
        tracked = await ctx.track(SECRET, "one")
        found.append((made and made.uid, tracked and tracked.uid))

    async with world() as w:
        if write == "delete":
            await w.client.create(SECRET, secret("one"))
        w.server.faults.add(Fault(do="stale", verbs=("list",), resources=("secrets",), behind=1))
        w.server.faults.add(Fault(do="delay", verbs=("watch",), resources=("secrets",), seconds=60.0))
        options = InformerOptions(reflector=ReflectorOptions(watch_list=False))
        async with w.running(reconcile, informers=options):
            await w.put("a")
            await until(lambda: found)
            assert found[0][0] == found[0][1]


async def test_failed_start_of_watch_raises_error_with_object_and_is_retried() -> None:
    raised: list[Exception] = []
    found: list[object] = []

    @controller("v1/ConfigMap", tracks=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            found.append(await ctx.track("v1/Secret", "one"))
        except CacheSyncError as error:
            raised.append(error)
            raise

    async with world() as w, w.running(reconcile, sync_timeout=5.0):
        fault = w.server.faults.add(Fault(do="refuse", resources=("secrets",), code=503))
        await w.put("a")
        await until(lambda: raised)
        assert of("one") in str(raised[0])
        w.server.faults.remove(fault)
        await until(lambda: found)


@pytest.mark.parametrize(
    ("asked", "options", "error", "argument"),
    [
        (("v1/Pod", "one", None), {}, InvalidControllerError, "tracks"),
        (("v1/Secret", "one", "other"), {"namespace": "default"}, InvalidControllerError, "namespace"),
        (("v1/Secret", "", None), {}, InvalidArgumentError, "name"),
    ],
)
async def test_invalid_tracking_is_rejected(
    asked: tuple[str, str, str | None], options: dict[str, Any], error: type[Exception], argument: str
) -> None:
    raised: list[Exception] = []

    @controller("v1/ConfigMap", tracks=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        if not raised:
            with pytest.raises(error, check=having(argument=argument)) as caught:
                await ctx.track(asked[0], asked[1], namespace=asked[2])
            raised.append(caught.value)

    async with world() as w, w.running(reconcile, **options):
        await w.put("a")
        await until(lambda: raised)


async def test_undeclared_tracking_error_contains_remedy() -> None:
    raised: list[Exception] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        with pytest.raises(InvalidControllerError, check=having(argument="tracks")) as caught:
            await ctx.track("v1/Secret", "one")
        raised.append(caught.value)

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: raised)


async def test_a_forgotten_await_is_named(caplog: pytest.LogCaptureFixture) -> None:
    @controller("v1/ConfigMap", tracks=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        ctx.track("v1/Secret", "one")  # type: ignore[unused-coroutine]

    async with world() as w, w.running(reconcile):
        with caplog.at_level(logging.ERROR):
            await w.put("a")
            await asyncio.sleep(1.0)
    assert any("ctx.track(...)" in str(vars(record)) for record in caplog.records)


async def test_tracked_name_is_escaped_in_selector() -> None:
    users = Users()
    async with world() as w, w.running(users.controller) as manager:
        await w.put("a", secrets="one,metadata.name!=two")
        await users.runs(("a", {"one,metadata.name!=two": "-"}))
        assert watched(manager) == [of(r"one\,metadata.name!\=two")]
        await w.client.create(SECRET, secret("one"))
        await users.runs()


@pytest.mark.real_time
async def test_plain_function_can_track() -> None:
    seen: list[object] = []

    @controller("v1/ConfigMap", tracks=["v1/Secret"])
    def reconcile(request: Request, ctx: Context) -> None:
        seen.append(ctx.wait(ctx.track("v1/Secret", "one")))

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: seen == [None], timeout=5.0)
        await w.client.create(SECRET, secret("one"))
        await until(lambda: len(seen) == 2, timeout=5.0)
        assert seen[1] is not None


async def test_tracking_watches_end_with_term_and_restart_with_next() -> None:
    users = Users()
    async with world() as w, w.another_client() as client:
        await w.put("a", secrets="one")
        before = asyncio.all_tasks()
        elector = w.elector(client, "one")
        manager = w.manager(users.controller, client=client, elector=elector)
        running = asyncio.create_task(manager.run())
        await until(lambda: users.seen)
        await asyncio.sleep(1.0)
        [loop] = manager.loops
        assert loop.shared.tracker is not None
        [first] = loop.shared.tracker.informers
        fault = w.server.faults.add(Fault(do="refuse", resources=("leases.coordination.k8s.io",), code=503))
        await until(lambda: not elector.is_leader)
        await until(lambda: first.stopped)
        assert watched(manager) == []
        assert len(loop.shared.tracker) == 0
        made = await w.client.create(SECRET, secret("three"))
        w.server.faults.remove(fault)
        await w.client.patch(CM, "a", {"data": {"secrets": "three"}})
        await until(lambda: users.seen[-1] == ("a", {"three": made.resource_version}), timeout=120.0)
        await asyncio.sleep(1.0)
        assert watched(manager) == [of("three")]
        manager.stop()
        await running
        assert watched(manager) == []
        assert [task.get_name() for task in asyncio.all_tasks() - before if "informer" in task.get_name()] == []


async def test_tracking_survives_crashes_and_restarts(deltaloop_harness: Harness) -> None:
    users = Users()
    client = deltaloop_harness.client
    await client.create(CM, cm("a", secrets="one"))
    await deltaloop_harness.start(users.controller)
    await deltaloop_harness.settled()
    assert users.seen[-1] == ("a", {"one": "-"})
    for number, crash in enumerate((True, False)):
        await deltaloop_harness.restart(crash=crash)
        made = await client.apply(SECRET, secret("one", x=str(number)))
        await deltaloop_harness.settled()
        assert users.seen[-1] == ("a", {"one": made.resource_version})


@pytest.mark.parametrize("namespace", [None, "here"])
def test_role_and_declared_access_contain_tracked_kinds(namespace: str | None) -> None:
    plan = wires_of(Users().controller, {"v1/ConfigMap": CM, "v1/Secret": SECRET})
    [role] = roles(plan.rules(namespace), name="x", namespace=namespace)
    assert {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "watch"]} in role[
        "rules"
    ]
    declared = plan.declared(namespace)
    assert declared.undeclared("get", SECRET, "here", "") is None
    assert declared.undeclared("create", SECRET, "here", "") is not None


def test_tracks_must_be_list() -> None:
    with pytest.raises(InvalidControllerError, check=having(argument="tracks")):
        Users(tracks="v1/Secret")
