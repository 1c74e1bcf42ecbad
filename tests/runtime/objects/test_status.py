"""The status of an object, as a reconcile says it and as it is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, InvalidError
from deltaloop.apiserver import Fault
from deltaloop.cache import InformerFactory
from deltaloop.client import Client, ClientConfig, ClientOptions
from deltaloop.errors import NoStatusSubresourceError, TransportError, WaitOnLoopError
from deltaloop.runtime import Context, Controller, ReconcileClient, Request, StatusWriter, controller
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.objects.status import Statuses, status_writer
from deltaloop.wait import established
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from tests.having import having
from tests.runtime.worlds import CM, World, client_of_reconcile, now, until, world

DB = ResourceType[Resource]("example.com", "v1", "Database", "databases")
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CONDITION: dict[str, Any] = {
    "type": "object",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        **dict.fromkeys(("type", "status", "reason", "message"), TEXT),
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": NUMBER,
        "theirs": TEXT,
    },
}
OBSERVED: dict[str, Any] = {"observedGeneration": NUMBER}


def crd(*, subresource: bool = True, map_list: bool = False, observed: Mapping[str, Any] = OBSERVED) -> dict[str, Any]:
    by_type = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]} if map_list else {}
    properties = {
        name: kind for name, kind in CONDITION["properties"].items() if name in observed or name not in OBSERVED
    }
    conditions = {"type": "array", "items": {**CONDITION, "properties": properties}, **by_type}
    url = {"type": "object", "properties": {"host": TEXT, "port": {"type": "integer", "default": 5432}}}
    status = {
        "replicas": {"type": "integer", "minimum": 0},
        "phase": TEXT,
        "url": url,
        "conditions": conditions,
        **observed,
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": status},
        },
    }
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if subresource:
        version["subresources"] = {"status": {}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "databases", "kind": "Database"}}
    return {"metadata": {"name": "databases.example.com"}, "spec": {**spec, "versions": [version]}}


@dataclass
class Desk:
    """A reconcile's client over a cache of databases, and the requests that it sends."""

    w: World
    client: Client
    views: Views
    statuses: Statuses
    sent: list[str] = field(default_factory=list[str])
    wall: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def requests(self) -> list[str]:
        """Return the requests since the last call, without watches."""
        found = [*self.sent]
        self.sent.clear()
        return found

    def reconcile_client(self) -> ReconcileClient:
        return client_of_reconcile(self.client, self.views, "db")

    def status(self, obj: object, *, on_error: str | None = None) -> StatusWriter:
        way = self.reconcile_client()._cached
        return status_writer(obj, way, self.statuses, on_error, lambda work: work.close())

    async def put(self, name: str = "a", **status: Any) -> Resource:
        """Create a database, with a status."""
        made = await self.w.client.create(DB, {"metadata": {"name": name}, "spec": {"size": 1}})
        if status:
            made = await self.w.client.patch(DB, name, {"status": status}, subresource="status")
        await self.caught_up()
        return made

    async def stored(self, name: str = "a") -> dict[str, Any]:
        return cast("dict[str, Any]", (await self.w.client.get(DB, name)).to_dict().get("status", {}))

    async def caught_up(self) -> None:
        await asyncio.sleep(1.0)
        self.sent.clear()

    def run(self, *controllers: Controller, **options: Any) -> Any:
        return self.w.running(*controllers, client=self.client, **options)


@asynccontextmanager
async def desk(
    definition: dict[str, Any] | None = None, *, transform: Callable[[Resource], Resource] | None = None
) -> AsyncGenerator[Desk, None]:
    sent: list[str] = []

    def note(method: str, path: str, query: Mapping[str, str], _: str) -> None:
        if "databases/" in path and "watch" not in query:
            sent.append(f"{method} {path.rpartition('databases/')[2]}")

    async with world() as w:
        await w.client.create(kinds.CUSTOM_RESOURCE_DEFINITION, definition or crd())
        name = "databases.example.com"
        await w.client.wait_for(kinds.CUSTOM_RESOURCE_DEFINITION, name, established(), timeout=10)
        config = ClientConfig(server=w.server.url, namespace="default")
        async with Client(config, options=ClientOptions(on_request=note)) as client, InformerFactory(client) as factory:
            views = Views()
            views.add(DB, CacheView(factory.informer(DB), namespace=None, transform=transform, clock=now))
            await factory.wait_for_sync()
            found = Desk(w, client, views, Statuses(DB, views), sent)
            found.statuses.wall_clock = lambda: found.wall
            sent.clear()
            yield found


async def fails(status: StatusWriter, **fields: Any) -> None:
    """Say some fields and another condition, and raise."""
    async with status:
        if fields:
            status.set_condition("Synced", True, reason="Yes")
        for name, value in fields.items():
            status[name] = value
        raise ValueError("it is broken: password=hunter2")


def condition(status: Mapping[str, Any], type_name: str = "Ready") -> dict[str, Any]:
    return next(dict(each) for each in status["conditions"] if each["type"] == type_name)


async def test_status_changes_are_one_write_and_unchanged_status_none() -> None:
    async with desk() as d:
        db = await d.put()
        for again in range(3):
            async with d.status(db) as status:
                status["replicas"] = 2
                status["phase"] = "Up"
                status["replicas"] = 3
                status.set_condition("Ready", False, reason="Starting")
                status.set_condition("Ready", True, reason="AllUp", message="3 of 3")
            assert d.requests() == ([] if again else ["PATCH a/status"])
            d.wall += timedelta(days=1)
            await d.caught_up()
            db = await d.w.client.get(DB, "a")
        assert await d.stored() == {
            "replicas": 3,
            "phase": "Up",
            "observedGeneration": 1,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "AllUp",
                    "message": "3 of 3",
                    "observedGeneration": 1,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }


async def test_condition_times_and_generations_follow_changes() -> None:
    async with desk() as d:
        db = await d.put()
        async with d.status(db) as status:
            status.set_condition("Ready", True, reason="AllUp")
        d.wall += timedelta(days=1)
        changed = await d.w.client.patch(DB, "a", {"spec": {"size": 2}})
        await d.caught_up()
        async with d.status(changed) as status:
            status.set_condition("Ready", True, reason="StillUp")
        seen = await d.stored()
        assert seen["observedGeneration"] == condition(seen)["observedGeneration"] == 2
        assert condition(seen)["lastTransitionTime"] == "2026-01-01T00:00:00Z"
        async with d.status(changed) as status:
            status.set_condition("Ready", "Unknown", reason="Lost")
        assert condition(await d.stored())["lastTransitionTime"] == "2026-01-02T00:00:00Z"


async def test_unmentioned_fields_stay_and_removed_fields_are_deleted() -> None:
    theirs = {"type": "Theirs", "status": "True", "reason": "Why", "message": "", "theirs": "x"}
    at = {"lastTransitionTime": "2020-01-01T00:00:00Z"}
    async with desk() as d:
        old = {**theirs, **at, "type": "Old"}
        db = await d.put(replicas=1, phase="Old", url={"host": "h"}, conditions=[old, {**theirs, **at}])
        async with d.status(db) as status:
            status["replicas"] = 2
            status.remove("phase")
            status.remove_condition("Old")
            status.remove("never")
        seen = await d.stored()
        assert seen["conditions"] == [{**theirs, **at}]
        assert (seen["replicas"], seen["url"]["host"], "phase" in seen) == (2, "h", False)


async def test_changed_status_can_be_read() -> None:
    async with desk() as d:
        db = await d.put(phase="Up", url={"host": "h"})
        async with d.status(db) as status:
            status["replicas"] = 3
            assert (status["phase"], status["replicas"], status.get("never"), status.get("never", 1)) == (
                "Up",
                3,
                None,
                1,
            )
            assert status.condition("Ready") is None
            with pytest.raises(TypeError, match="read-only"):
                status["url"]["host"] = "x"
            status.set_condition("Ready", True, reason="AllUp")
            assert cast("Any", status.condition("Ready"))["reason"] == "AllUp"
            with pytest.raises(KeyError):
                status["never"]


async def test_status_change_outside_block_is_error() -> None:
    async with desk() as d:
        status = d.status(await d.put())
        async with status:
            status["phase"] = "Up"
        changes: list[Callable[[], object]] = [
            lambda: status.__setitem__("phase", "Down"),
            lambda: status.remove("phase"),
            lambda: status.set_condition("Ready", True, reason="AllUp"),
            lambda: status.remove_condition("Ready"),
        ]
        for change in changes:
            with pytest.raises(InvalidArgumentError, match=r"must be used as a block.*Write `async with"):
                change()
        with pytest.raises(InvalidArgumentError, match="must be used as a block"):
            await d.status(await d.put("b")).write()


async def test_exception_changes_only_on_error_condition() -> None:
    async with desk() as d:
        await d.put(replicas=1, observedGeneration=1)
        db = await d.w.client.patch(DB, "a", {"spec": {"size": 2}})
        await d.caught_up()
        for again in range(2):
            with pytest.raises(ValueError, match="broken"):
                await fails(d.status(db, on_error="Ready"), **({"replicas": 7} if again else {}))
            assert d.requests() == ([] if again else ["PATCH a/status"])
        seen = await d.stored()
        assert (seen["replicas"], seen["observedGeneration"]) == (1, 1)
        found = condition(seen)
        assert (found["status"], found["reason"], found["observedGeneration"]) == ("False", "ValueError", 2)
        assert found["message"] == "it is broken: password=<redacted>"
        assert len(seen["conditions"]) == 1


async def test_exception_without_on_error_writes_nothing() -> None:
    async with desk() as d:
        db = await d.put()
        with pytest.raises(ValueError, match="broken"):
            await fails(d.status(db), replicas=7)
        assert d.requests() == []


async def test_canceled_block_writes_nothing() -> None:
    async with desk() as d:
        db = await d.put()

        async def work() -> None:
            async with d.status(db, on_error="Ready") as status:
                status["phase"] = "Up"
                await asyncio.sleep(60.0)

        task = asyncio.create_task(work())
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert d.requests() == []


async def test_failed_error_write_keeps_original_exception(caplog: pytest.LogCaptureFixture) -> None:
    async with desk() as d:
        db = await d.put()
        d.client = d.client.with_write_check(refuse)
        with pytest.raises(ValueError, match="broken"):
            await fails(d.status(db, on_error="Ready"))
        assert [record.message for record in caplog.records] == ["cannot write an error into the status"]


def refuse(action: str) -> None:
    raise InvalidArgumentError("no writes today")


async def test_explicit_write_survives_later_exception() -> None:
    async with desk() as d:
        db = await d.put()

        async def run() -> None:
            async with d.status(db, on_error="Ready") as status:
                status["phase"] = "Creating"
                await status.write()
                await status.write()
                status["phase"] = "Up"
                raise ValueError("it is broken")

        with pytest.raises(ValueError, match="broken"):
            await run()
        assert d.requests() == ["PATCH a/status"] * 2
        seen = await d.stored()
        assert (seen["phase"], condition(seen)["status"]) == ("Creating", "False")


async def test_conflict_is_resolved_with_current_status() -> None:
    async with desk() as d:
        db = await d.put()
        theirs = {"type": "Theirs", "status": "True", "reason": "Why", "message": ""}
        at = {"lastTransitionTime": "2020-01-01T00:00:00Z"}
        async with d.status(db) as status:
            status["replicas"] = 3
            status.set_condition("Ready", True, reason="AllUp")
            # Another controller is faster, and no cache knows.
            await d.w.client.patch(DB, "a", {"status": {"conditions": [{**theirs, **at}]}}, subresource="status")
        assert d.requests() == ["PATCH a/status", "GET a", "PATCH a/status"]
        seen = await d.stored()
        assert [each["type"] for each in seen["conditions"]] == ["Theirs", "Ready"]


@pytest.mark.parametrize(
    ("observed", "written"),
    [
        pytest.param(2, False, id="another life of this program, or a leader before it, has said more"),
        pytest.param(57, True, id="that generation is of another cluster, from which the object was restored"),
    ],
)
@pytest.mark.parametrize("by_condition", [False, True])
async def test_older_observed_generation_does_not_replace_newer_status(
    observed: int, written: bool, by_condition: bool
) -> None:
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": observed}
    ready = {"type": "Ready", "status": "False", "reason": "Growing", "message": "", **at}
    newer = {"conditions": [ready]} if by_condition else {"observedGeneration": observed}
    async with desk() as d:
        async with d.status(await d.put()) as status:
            status["phase"] = "Up"
            status.set_condition("Ready", True, reason="AllUp")
            await d.w.client.patch(DB, "a", {"spec": {"size": 2}})
            await d.w.client.patch(DB, "a", {"status": newer}, subresource="status")
        assert d.requests() == ["PATCH a/status", "GET a", *(["PATCH a/status"] if written else [])]
        assert (await d.stored() == newer) is not written


async def test_conflict_with_equal_status_needs_no_second_write() -> None:
    async with desk() as d:
        db = await d.put()
        async with d.status(db) as status:
            status["phase"] = "Up"
            await d.w.client.patch(DB, "a", {"status": {"phase": "Up"}}, subresource="status")
        assert d.requests() == ["PATCH a/status", "GET a"]


async def test_persistent_conflicts_raise_error() -> None:
    async with desk() as d:
        db = await d.put()
        d.w.server.faults.add(Fault(do="refuse", code=409, verbs=("patch",), resources=("databases.example.com",)))
        with pytest.raises(ConflictError):
            async with d.status(db) as status:
                status["phase"] = "Up"
        assert d.requests() == ["PATCH a/status", *["GET a", "PATCH a/status"] * 4]


async def test_status_write_without_response_is_not_repeated() -> None:
    async with desk() as d:
        db = await d.put()
        lost = Fault(do="lose", verbs=("patch",), resources=("databases.example.com",), count=1)
        d.w.server.faults.add(lost)
        with pytest.raises(TransportError):
            async with d.status(db) as status:
                status["phase"] = "Up"
        d.requests()
        async with d.status(db) as status:
            status["phase"] = "Up"
        assert [each for each in d.requests() if each.startswith("PATCH")] == []


async def test_own_write_to_object_causes_no_conflict() -> None:
    async with desk() as d:
        db = await d.put()
        status = d.status(db)
        async with status:
            status["phase"] = "Up"
            await d.reconcile_client().patch(DB, "a", {"metadata": {"annotations": {"a": "b"}}})
            assert d.requests() == ["PATCH a"]
        assert d.requests() == ["PATCH a/status"]


@pytest.mark.parametrize("map_list", [False, True])
async def test_two_controllers_preserve_conditions_of_each_other(map_list: bool) -> None:
    async with desk(crd(map_list=map_list)) as d:

        def made(name: str) -> Controller:
            @controller(DB, name=name.lower())
            async def reconcile(request: Request, ctx: Context) -> None:
                db = await ctx.client.get(DB, request.name, namespace=request.namespace)
                async with ctx.status(db) as status:
                    status.set_condition(name, db["spec"]["size"] % 2 == 0, reason=f"Size{db['spec']['size']}")

            return reconcile

        async with d.run(made("First")), d.run(made("Second")):  # two programs: neither sees the other's writes at once
            await d.put()
            for size in (2, 3, 4):
                await d.w.client.patch(DB, "a", {"spec": {"size": size}})
                await asyncio.sleep(1.0)
                seen = await d.stored()
                shown = {each["type"]: (each["status"], each["reason"]) for each in seen["conditions"]}
                said = ("True" if size % 2 == 0 else "False", f"Size{size}")
                assert shown == {"First": said, "Second": said}
            sent = d.requests()
            assert sent.count("PATCH a/status") == 2 * 3 + sent.count("GET a")  # one each, and one after each conflict


async def test_status_of_gone_or_replaced_object_is_not_written() -> None:
    async with desk() as d:
        db = await d.put()
        async with d.status(db, on_error="Ready") as status:
            status["phase"] = "Up"
            await d.w.client.delete(DB, "a")
        assert d.requests() == ["PATCH a/status", "GET a"]
        await d.caught_up()
        async with d.status(db) as status:
            status["phase"] = "Up"
        assert d.requests() == ["GET a"]
        async with d.status(db) as status:
            status["phase"] = "Up"
            await d.w.client.create(DB, {"metadata": {"name": "a"}})
        await d.caught_up()
        async with d.status(db) as status:
            status["phase"] = "Up"
        assert d.requests() == []
        assert await d.stored() == {}


@pytest.mark.parametrize("kind", ["example.com/v1/Database", "v1/ConfigMap"])
async def test_kind_without_status_subresource_raises_error(kind: str) -> None:
    async with desk(crd(subresource=False)) as d:
        made = await d.w.client.create(kind, {"metadata": {"name": "a"}})
        await d.caught_up()
        with pytest.raises(NoStatusSubresourceError, match=f"{kind} has no status subresource") as caught:
            async with d.status(made) as status:
                status["phase"] = "Up"
        assert str(caught.value.kind) == kind


async def test_status_field_missing_in_schema_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with desk() as d:
        for name in ("a", "b"):
            await d.put(name)
        for turn, name in enumerate(("a", "a", "b")):
            db = await d.w.client.get(DB, name)
            async with d.status(db) as status:
                status["phase"] = "Up"
                status["fase"] = "Up"
                status["url"] = {"host": "h", "path": "/"}
            await d.caught_up() if turn else None
        assert d.requests() == []
        told = [(record.message, record.__dict__["field"]) for record in caplog.records]
        message = "server dropped a status field that is missing in the schema"
        assert told == [(message, "status.fase"), (message, "status.url.path")]


async def test_dropped_and_defaulted_fields_cause_no_repeated_writes() -> None:
    async with desk(crd(observed={})) as d:
        db = await d.put()
        written: list[int] = []
        for turn in range(4):
            async with d.status(db) as status:
                status["fase"] = "Up"
                status["url"] = {"host": "h"}
                status.set_condition("Ready", True, reason="AllUp")
            written.append(len(d.requests()))
            await d.caught_up()
            if turn == 1:
                db = await d.w.client.patch(DB, "a", {"spec": {"size": 2}})
                await d.caught_up()
        assert written == [1, 1, 0, 0]  # that a default comes back is seen when it was taken away
        assert (await d.stored())["url"] == {"host": "h", "port": 5432}


async def test_rejected_status_raises_error() -> None:
    async with desk() as d:
        db = await d.put()
        with pytest.raises(InvalidError):
            async with d.status(db, on_error="Ready") as status:
                status["replicas"] = -1
        assert d.requests() == ["PATCH a/status"]


class Meta(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0


class Phase(msgspec.Struct, omit_defaults=True):
    phase: str = ""


class Typed(msgspec.Struct):
    metadata: Meta
    status: Phase = msgspec.field(default_factory=Phase)


class ShortMeta(msgspec.Struct):
    name: str
    namespace: str = ""


class Short(msgspec.Struct):
    metadata: ShortMeta


@pytest.mark.parametrize("model", [Typed, Short, dict, bytes])
async def test_status_accepts_objects_of_any_model_without_loss(model: type[Any]) -> None:
    kind = ResourceType[Any]("example.com", "v1", "Database", "databases", model=model)
    async with desk() as d:
        theirs = {"type": "Theirs", "status": "True", "reason": "Why", "message": ""}
        await d.put(phase="Old", conditions=[{**theirs, "lastTransitionTime": "2020-01-01T00:00:00Z"}])
        db = await d.reconcile_client().get(kind, "a")
        assert isinstance(db, model)
        assert d.requests() == []
        async with d.status(db) as status:
            status["phase"] = "Up"
            status.set_condition("Ready", True, reason="AllUp")
        assert d.requests() == ["PATCH a/status"]
        seen = await d.stored()
        assert [each["type"] for each in seen["conditions"]] == ["Theirs", "Ready"]
        assert (seen["phase"], seen["observedGeneration"]) == ("Up", 1)


async def test_status_removed_by_transform_is_read_from_server() -> None:
    def without_status(obj: Resource) -> Resource:
        fields = obj.edit()
        fields.pop("status", None)
        return Resource.from_dict(fields, obj.resource_type)

    async with desk(transform=without_status) as d:
        theirs = {"type": "Theirs", "status": "True", "reason": "Why", "message": ""}
        await d.put(conditions=[{**theirs, "lastTransitionTime": "2020-01-01T00:00:00Z"}])
        db = without_status(await d.w.client.get(DB, "a"))
        for _ in range(2):
            async with d.status(db) as status:
                status.set_condition("Ready", True, reason="AllUp")
        assert d.requests() == ["GET a", "PATCH a/status", "GET a"]
        assert [each["type"] for each in (await d.stored())["conditions"]] == ["Theirs", "Ready"]


async def test_status_of_object_of_other_kind_can_be_written() -> None:
    async with desk() as d:
        service: dict[str, Any] = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        made = await d.w.client.create(kinds.SERVICE, service)
        async with d.status(made.to_dict()) as status:
            status.set_condition("example.com/Checked", True, reason="Yes")
        assert (await d.w.client.get(kinds.SERVICE, "s"))["status"]["conditions"][0]["reason"] == "Yes"
        node = await d.w.client.create(kinds.NODE, {"metadata": {"name": "n"}})
        async with d.status(node) as status:
            status.set_condition("Checked", True, reason="Yes")
        assert (await d.w.client.get(kinds.NODE, "n"))["status"]["conditions"][0]["reason"] == "Yes"


async def test_observed_generation_of_foreign_kind_is_not_written() -> None:
    async with desk() as d:
        deployment: dict[str, Any] = {
            "metadata": {"name": "w"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
        made = await d.w.client.create(kinds.DEPLOYMENT, deployment)
        async with d.status(made) as status:
            status.set_condition("example.com/Checked", True, reason="Yes")
        stored = (await d.w.client.get(kinds.DEPLOYMENT, "w")).to_dict()["status"]
        assert condition(stored, "example.com/Checked")["reason"] == "Yes"
        assert "observedGeneration" not in stored


async def test_invalid_object_for_status_is_rejected() -> None:
    async with desk() as d:
        with pytest.raises(InvalidArgumentError, check=having(argument="ctx.status()")):
            d.status(None)
        with pytest.raises(MalformedObjectError):
            d.status({"spec": {}})
        with pytest.raises(InvalidArgumentError, check=having(argument="condition type")):
            d.status({"metadata": {"name": "a"}}, on_error="not ready")


# -- in a manager


def slow_limiter() -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(base_delay=100.0, max_delay=100.0)


@pytest.mark.parametrize("swallows", [False, True])
async def test_timeout_writes_no_status(swallows: bool) -> None:
    @controller(DB, timeout=5.0, rate_limiter=slow_limiter)
    async def reconcile(request: Request, ctx: Context) -> None:
        db = await ctx.client.get(DB, request.name, namespace=request.namespace)
        async with ctx.status(db, on_error="Ready") as status:
            status["phase"] = "Up"
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                if not swallows:
                    raise

    async with desk() as d, d.run(reconcile):
        await d.put()
        await asyncio.sleep(10.0)
        assert await d.stored() == {}


async def test_shutdown_writes_no_status() -> None:
    began = asyncio.Event()

    @controller(DB)
    async def reconcile(request: Request, ctx: Context) -> None:
        db = await ctx.client.get(DB, request.name, namespace=request.namespace)
        async with ctx.status(db, on_error="Ready") as status:
            status["phase"] = "Up"
            began.set()
            await asyncio.sleep(60.0)

    async with desk() as d:
        async with d.run(reconcile, drain_timeout=1.0):
            await d.put()
            await began.wait()
        assert await d.stored() == {}


async def test_lost_term_writes_no_status(caplog: pytest.LogCaptureFixture) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @controller(DB)
    async def reconcile(request: Request, ctx: Context) -> None:
        db = await ctx.client.get(DB, request.name, namespace=request.namespace)
        try:
            async with ctx.status(db, on_error="Ready") as status:
                status["phase"] = "Up"
                began.set()
                try:
                    await asyncio.sleep(600.0)
                except asyncio.CancelledError:
                    raise ValueError("while it cleaned up") from None
        finally:
            ended.set()

    async with desk() as d:
        elector = d.w.elector(d.client, "first")
        async with d.run(reconcile, elector=elector):
            await d.put()
            await began.wait()
            lease = await d.w.client.get(kinds.LEASE, "test")
            taken = lease.edit()
            taken["spec"]["holderIdentity"] = "second"
            await d.w.client.update(kinds.LEASE, taken)
            await until(ended.is_set)
            await asyncio.sleep(1.0)
            assert await d.stored() == {}
    assert not [record for record in caplog.records if record.name == "deltaloop.runtime.status"]


async def test_condition_follows_failure_and_success_of_reconcile() -> None:
    async with desk() as d:
        tries: list[int] = []

        @controller(DB, rate_limiter=slow_limiter)
        async def reconcile(request: Request, ctx: Context) -> None:
            db = await ctx.client.get(DB, request.name, namespace=request.namespace)
            tries.append(ctx.attempts)
            async with ctx.status(db, on_error="Ready") as status:
                if len(tries) < 4:
                    raise RuntimeError("not yet")
                status.set_condition("Ready", True, reason="AllUp")

        async with d.run(reconcile):
            await d.put()
            assert condition(await d.stored())["reason"] == "RuntimeError"
            assert d.requests() == []
            await asyncio.sleep(400.0)
            assert condition(await d.stored())["reason"] == "AllUp"
            assert d.requests() == ["PATCH a/status"]
            assert tries == [1, 2, 3, 4, 1]


@pytest.mark.real_time
async def test_plain_function_uses_synchronous_status_block() -> None:
    done: list[str] = []

    @controller(CM, reads=[DB])
    def reconcile(request: Request, ctx: Context) -> None:
        db = ctx.wait(ctx.client.find(DB, "a", namespace="default"))
        if db is None or request.name != "go":
            return
        with ctx.status(db, on_error="Ready") as status:
            status["phase"] = "Half"
            ctx.wait(status.write())
            status["phase"] = "Up"
        try:
            with ctx.status(db, on_error="Ready") as status:
                status["phase"] = "Never"
                raise ValueError("broken")
        except ValueError:
            done.append(request.name)

    async with desk() as d, d.run(reconcile):
        await d.w.client.create(DB, {"metadata": {"name": "a"}})
        await until(lambda: d.views.of(DB).views[0].newest_whole("default/a"), timeout=5.0)
        d.sent.clear()
        await d.w.put("go")
        await until(lambda: done, timeout=5.0)
        assert [each for each in d.requests() if each.startswith("PATCH")] == ["PATCH a/status"] * 3
        seen = await d.stored()
        assert (seen["phase"], condition(seen)["reason"]) == ("Up", "ValueError")


async def test_synchronous_status_block_in_coroutine_is_rejected() -> None:
    async with desk() as d:
        refused: list[str] = []

        @controller(DB)
        async def reconcile(request: Request, ctx: Context) -> None:
            db = await ctx.client.get(DB, request.name, namespace=request.namespace)
            try:
                with ctx.status(db):
                    pass
            except WaitOnLoopError as error:
                refused.append(error.call)

        async with d.run(reconcile):
            await d.put()
        assert refused == ["with ctx.status(...)"]
