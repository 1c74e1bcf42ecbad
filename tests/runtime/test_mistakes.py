"""Mistakes of a new user: each is told once, by a message that names who made it and what helps.

The message is the error that ends the program, or one line of the log: nothing else above INFO is logged.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop._internal.tracebacks import error_text, notes_of
from deltaloop.api.redaction import SecretText
from deltaloop.api.status import Status
from deltaloop.apiserver import ApiServer, ServerOptions, StaticUser
from deltaloop.errors import CacheSyncError, PreflightError, UnknownResourceError
from deltaloop.runtime import Context, Controller, Request
from deltaloop.runtime.reconcile.calls import not_begun
from deltaloop.runtime.reconcile.remedies import note_missing_right
from tests.runtime.worlds import CM, World, until, world

READ_ONLY = "cached objects are read-only. Use obj.edit() to get a mutable copy."


async def told(
    caplog: pytest.LogCaptureFixture, *controllers: Controller, w: World | None = None, **options: Any
) -> dict[str, Any]:
    """Run controllers on a server with one ConfigMap until something is told; return what the one line says."""

    async def tell(w: World) -> None:
        await w.put("a", colour="red")
        async with w.running(*controllers, **options):
            await until(lambda: said(caplog))

    if w is not None:
        await tell(w)
    else:
        async with world() as w:
            await tell(w)
    line, *again = said(caplog)
    for each in again:  # what is tried again fails in the same way
        assert (each["message"], each["raised"]) == (line["message"], line["raised"])
    return line


def said(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return what was logged above INFO; asyncio's debug mode says of slow callbacks what we say, once more."""
    return [vars(record) for record in caplog.records if record.levelno > logging.INFO and record.name != "asyncio"]


async def refused(*controllers: Controller, w: World | None = None, **options: Any) -> tuple[Exception, str]:
    """Run controllers that cannot begin; return the error that ends the program, and its text with its notes."""
    if w is None:
        async with world() as w:
            return await refused(*controllers, w=w, **options)
    with pytest.raises(dl.DeltaloopError) as caught:
        async with asyncio.timeout(60.0):
            await w.manager(*controllers, **options).run()
    return caught.value, error_text(caught.value)


# -- wrong kind


@pytest.mark.parametrize("name", ["owns", "watches", "reads", "children"])
async def test_unknown_kind_error_has_suggestion_and_option(name: str) -> None:
    given: dict[str, Any] = {name: ["apps/v1/Deploymnt"]}

    @dl.controller("v1/ConfigMap", name="maps", **given)
    async def reconcile(request: Request, ctx: Context) -> None: ...

    error, text = await refused(reconcile)
    assert isinstance(error, UnknownResourceError)
    assert "has no resource 'apps/v1/Deploymnt'; near matches: apps/v1/Deployment" in text
    assert f"it is named in {name}= of controller 'maps'" in text


async def test_unknown_written_kind_is_logged_with_suggestion(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps", writes=["apps/v1/Deploymnt"])
    async def reconcile(request: Request, ctx: Context) -> None: ...

    line = await told(caplog, reconcile)
    assert line["message"] == "kind does not exist yet, or has another name"
    assert line["kind"] == "apps/v1/Deploymnt"
    assert "near matches: apps/v1/Deployment" in line["raised"]
    assert "it is named in writes= of controller 'maps'" in line["raised"]


# -- CRD not installed


async def test_missing_crd_of_kind_by_name_raises_error() -> None:
    @dl.controller("example.com/v1/Database", name="databases")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    error, text = await refused(reconcile)
    assert isinstance(error, UnknownResourceError)
    assert "has no resource 'example.com/v1/Database'; is its CustomResourceDefinition installed?" in text
    assert "it is named in resource= of controller 'databases'" in text


async def test_missing_crd_of_resource_type_raises_error() -> None:
    database = dl.ResourceType[dl.Resource]("example.com", "v1", "Database", "databases")

    @dl.controller(database, name="databases")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    @dl.controller("v1/ConfigMap", name="maps", owns=[database])
    async def reconcile_maps(request: Request, ctx: Context) -> None: ...

    error, text = await refused(reconcile, reconcile_maps)
    assert isinstance(error, CacheSyncError)
    assert (
        "example.com/v1/Database is needed by controller 'databases' and 'maps': install its CustomResourceDefinition, "
        "or correct the name of the kind"
    ) in text


# -- missing right


@asynccontextmanager
async def guarded(*rules: dict[str, Any]) -> AsyncGenerator[World, None]:
    """Start a server where roles count, for an account with some rights."""
    user = StaticUser(name="operator", token=SecretText("operator-token"))
    options = ServerOptions(controllers=frozenset(), authorization_mode="RBAC", users=(user,))
    async with ApiServer(options) as server, dl.connect(kubeconfig=server.kubeconfig()) as admin:
        named = {"metadata": {"name": "operator"}}
        rbac = "rbac.authorization.k8s.io"
        await admin.create(f"{rbac}/v1/ClusterRole", {**named, "rules": [*rules]})
        subjects = [{"kind": "User", "name": "operator", "apiGroup": rbac}]
        reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": "operator"}
        await admin.create(f"{rbac}/v1/ClusterRoleBinding", {**named, "subjects": subjects, "roleRef": reference})
        async with dl.connect(kubeconfig=server.kubeconfig(token=user.token), namespace="default") as client:
            yield World(server, client)


def rule(resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": [*verbs]}


async def test_missing_watch_permission_raises_error_with_remedy() -> None:
    @dl.controller(
        "v1/ConfigMap", name="maps", owns=["v1/Secret"], writes=[dl.Permission("v1/Secret", verbs=("create",))]
    )
    async def reconcile(request: Request, ctx: Context) -> None: ...

    async with guarded(rule("configmaps", "get", "list", "watch")) as w:
        error, text = await refused(reconcile, w=w)
        assert isinstance(error, PreflightError)
        assert "not allowed to list, watch, create secrets in all namespaces" in text
        assert "`deltaloop generate rbac MODULE`" in text
        error, text = await refused(reconcile, w=w, preflight=False)
        assert isinstance(error, CacheSyncError)
        assert ("v1/Secret is needed by controller 'maps': grant the role of `deltaloop generate rbac MODULE`") in text


async def test_missing_write_permission_is_logged_with_remedy(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps", writes=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.client.create("v1/Secret", {"metadata": {"name": request.name}}))

    async with guarded(rule("configmaps", "get", "list", "watch", "create")) as w:
        line = await told(caplog, reconcile, w=w, preflight=False)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert "secrets is forbidden" in line["raised"]
    assert 'cannot create resource "secrets"' in line["raised"]
    assert line["raised"].count("if controller 'maps' lacks a permission, declare the access (writes=[...])") == 1
    assert "grant the role of `deltaloop generate rbac MODULE`" in line["raised"]


def test_error_raised_again_has_one_note() -> None:
    message = 'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"'
    forbidden = dl.ForbiddenError(Status(code=403, reason="Forbidden", message=message))
    for _ in range(2):
        note_missing_right(ExceptionGroup("both", [forbidden, ValueError("x")]), "maps")
    assert len(notes_of(forbidden)) == 1


def test_rejection_by_admission_has_no_note_about_permissions() -> None:
    for message in ('pods "a" is forbidden: exceeded quota: q', 'admission webhook "a.b" denied the request: no'):
        refused = dl.ForbiddenError(Status(code=403, reason="Forbidden", message=message))
        note_missing_right(refused, "maps")
        assert not notes_of(refused)


# -- blocking function


@pytest.mark.real_time
async def test_blocking_reconciler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        threading.Event().wait(0.3)
        seen.append(request.name)

    async with world() as w:
        await w.put("a")
        async with w.running(reconcile, loop_block_threshold=0.1):
            await until(lambda: seen and len(said(caplog)) == 2, timeout=5.0)
    line, again = said(caplog)
    assert line["message"].startswith("event loop is blocked: use asyncio.to_thread")
    assert line["task"] == "reconcile maps default/a"
    assert "threading.Event().wait(0.3)" in line["stack"][-1] or "test_mistakes.py" in str(line["stack"])
    assert again["message"] == "event loop is running again"


# -- writing to a cached object


def set_item(obj: Any) -> None:
    obj["data"]["colour"] = "blue"


def set_metadata(obj: Any) -> None:
    obj.labels["a"] = "b"


def set_attribute(obj: Any) -> None:
    obj.name = "b"


def set_default(obj: Any) -> None:
    obj.setdefault("data", {})


def delete_item(obj: Any) -> None:
    del obj["data"]["colour"]


@pytest.mark.parametrize("change", [set_item, set_metadata, set_attribute, set_default, delete_item])
async def test_change_of_cached_object_raises_error_with_location(
    change: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        change(await ctx.client.find(CM, request.name, namespace=request.namespace))

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert READ_ONLY in line["raised"]
    assert "test_mistakes.py:" in line["where"][-1]
    assert line["where"][-1].endswith(change.__name__)


# -- forgotten await


@pytest.mark.parametrize("keeps", [False, True])
async def test_missing_await_raises_error_with_location(keeps: bool, caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        call: Any = ctx.client.patch(CM, request.name, {"data": {"colour": "blue"}}, namespace=request.namespace)
        if not keeps:
            del call

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert line["message"] == "work failed for good and is parked"
    assert dl.errors.NotAwaitedError.__name__ in line["raised"]
    assert "ctx.client.patch(...) at " in line["raised"]
    assert "test_mistakes.py:" in line["raised"]
    assert "`await ctx.client.patch(...)`" in line["raised"]


async def test_missing_await_with_used_result_has_note(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        found: Any = ctx.client.find(CM, request.name, namespace=request.namespace)
        await ctx.client.patch(CM, request.name, {"data": found["data"]})

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert "is not subscriptable; ctx.client.find(...) at " in line["raised"]
    assert "`await ctx.client.find(...)`" in line["raised"]


async def test_missing_await_of_children_apply_raises_error(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps", children=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        call: Any = ctx.children.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name}})
        del call

    line = await told(caplog, reconcile)
    assert "`await ctx.children.apply(...)`" in line["raised"]


@pytest.mark.filterwarnings("default:coroutine .* was never awaited")
async def test_missing_await_of_own_function_is_warning() -> None:
    async def mend(name: str) -> None: ...

    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        mend(request.name)  # type: ignore[unused-coroutine]

    log = io.StringIO()
    dl.configure_logging(output="json", level="WARNING", stream=log)
    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(log.getvalue)
    line = json.loads(log.getvalue())
    assert line["task"] == "reconcile maps default/a"
    assert "mend' was never awaited" in line["warning"]
    assert "test_mistakes.py:" in line["where"]


@pytest.mark.real_time
async def test_missing_wait_in_plain_function_raises_error(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    def reconcile(request: Request, ctx: Context) -> None:
        call: Any = ctx.client.patch(CM, request.name, {"data": {}}, namespace=request.namespace)
        del call

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert "or `ctx.wait(ctx.client.patch(...))` in a plain function" in line["raised"]


async def test_calls_awaited_in_any_way_are_valid(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []
    kept: list[asyncio.Task[object]] = []

    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        later = ctx.client.get(CM, request.name)
        await asyncio.gather(ctx.client.get(CM, "a"), asyncio.create_task(ctx.client.list(CM)))
        await asyncio.wait_for(ctx.client.find(CM, "b"), 1.0)
        async with asyncio.TaskGroup() as group:
            cancelled = group.create_task(ctx.client.get(CM, "a"))
            begun = group.create_task(ctx.client.get(CM, "a"))
            cancelled.cancel()
        assert (await begun).name == (await later).name
        ctx.client.get(CM, "c").close()
        assert not_begun(ctx.client._not_awaited) == []
        kept.append(asyncio.create_task(ctx.client.find(CM, "c")))  # it begins after this has returned
        ran.append(request.name)

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: ran)
        await asyncio.gather(*kept)
    assert said(caplog) == []


# -- wrong return


@pytest.mark.parametrize(
    ("returned", "name"), [(30, "int"), (dl.Result, "type"), ({"requeue_after": 5}, "dict"), (True, "bool")]
)
async def test_invalid_result_raises_error_with_type(
    returned: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> Any:
        return returned

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert f"type {name}. Return None or a Result" in line["raised"]


@pytest.mark.real_time
async def test_plain_function_that_returns_coroutine_raises_error(caplog: pytest.LogCaptureFixture) -> None:
    async def later(request: Request) -> None: ...

    @dl.controller("v1/ConfigMap", name="maps")
    def reconcile(request: Request, ctx: Context) -> Any:
        return later(request)

    line = await told(caplog, reconcile)
    assert (line["queue"], line["key"]) == ("maps", "default/a")
    assert "type coroutine. Declare it with `async def` and await the call" in line["raised"]


# -- two controllers fighting


async def test_fight_of_two_controllers_is_logged_with_remedy(caplog: pytest.LogCaptureFixture) -> None:
    def declared(name: str, colour: str) -> Controller:
        @dl.controller("v1/ConfigMap", name=name, writes=["v1/ConfigMap"])
        async def reconcile(request: Request, ctx: Context) -> None:
            found = await ctx.client.get(CM, request.name, namespace=request.namespace)
            if found["data"]["colour"] != colour:
                patch = {"data": {"colour": colour}}
                await ctx.client.patch(CM, request.name, patch, namespace=request.namespace)

        return reconcile

    async with world() as w:
        await w.put("a", colour="red")
        async with w.running(declared("blues", "blue"), declared("greens", "green")):
            await asyncio.sleep(60.0)
    lines = sorted(said(caplog), key=lambda line: str(line["controller"]))
    assert [(line["controller"], line["other"], line["key"]) for line in lines] == [
        ("blues", "greens", "default/a"),
        ("greens", "blues", "default/a"),
    ]
    for line in lines:
        assert line["message"].endswith("use one writer for each field")
        assert line["changes"] in (("data.colour: green -> blue",), ("data.colour: blue -> green",))
