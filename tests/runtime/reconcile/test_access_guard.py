"""Reconciles are held to what their controller declares: refused where controllers are developed, told of elsewhere."""

from __future__ import annotations

import asyncio
import logging

import pytest

import deltaloop as dl
from deltaloop.client import Client
from deltaloop.errors import UndeclaredAccessError
from deltaloop.runtime import UndeclaredAccess
from deltaloop.testing import Harness

MAP, SECRET = "v1/ConfigMap", "v1/Secret"


def copier(**declared: object) -> dl.Controller:
    """Return a controller that makes a Secret for each ConfigMap that asks for one."""

    async def copy(request: dl.Request, ctx: dl.Context) -> None:
        asking = await ctx.client.find(MAP, request.name, namespace=request.namespace)
        if asking is not None and await ctx.client.find(SECRET, request.name, namespace=request.namespace) is None:
            await ctx.client.create(SECRET, {"metadata": {"name": request.name, "namespace": request.namespace}})

    labelled = [dl.predicates.HasLabels("copy")]
    return dl.controller(MAP, name="copier", predicates=labelled, **declared)(copy)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def ask(client: Client) -> None:
    await client.create(MAP, {"metadata": {"name": "a", "labels": {"copy": ""}}})


async def test_declared_write_is_allowed(deltaloop_harness: Harness) -> None:
    await deltaloop_harness.start(copier(writes=[SECRET]))
    await ask(deltaloop_harness.client)
    await deltaloop_harness.settled()
    assert await deltaloop_harness.client.find(SECRET, "a") is not None


async def test_undeclared_write_is_rejected_once_with_remedy(
    deltaloop_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    await deltaloop_harness.start(copier(writes=[dl.Permission(SECRET, verbs=("get",))]))
    await ask(deltaloop_harness.client)
    await asyncio.sleep(3600)
    assert await deltaloop_harness.client.find(SECRET, "a") is None
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1
    assert told[0].exc_info is not None
    error = told[0].exc_info[1]
    assert isinstance(error, UndeclaredAccessError)
    where = deltaloop_harness.client.namespace
    assert (error.controller, error.needed.verb, error.needed.kind) == ("copier", "create", SECRET)
    assert str(error) == (
        f"controller 'copier' does not declare this access: create v1/Secret in namespace {where}. "
        "Remedy: add 'v1/Secret' to writes=[...], or, only for this verb, "
        "dl.Permission('v1/Secret', verbs=('create',))"
    )


async def test_live_client_needs_declared_access(deltaloop_harness: Harness) -> None:
    refused: list[str] = []

    async def past(request: dl.Request, ctx: dl.Context) -> None:
        for asked in (ctx.client.live.create(SECRET, {"metadata": {"name": "a"}}), ctx.client.live.list("v1/Pod")):
            with pytest.raises(UndeclaredAccessError) as raised:
                await asked
            refused.append(str(raised.value.needed).partition(" in ")[0])

    labelled = [dl.predicates.HasLabels("copy")]
    await deltaloop_harness.start(dl.controller(MAP, name="past", predicates=labelled)(past))
    await ask(deltaloop_harness.client)
    await deltaloop_harness.settled()
    assert refused == ["create v1/Secret", "list v1/Pod"]


async def test_apply_of_missing_object_needs_create(deltaloop_harness: Harness) -> None:
    ended: list[str] = []

    async def mark(request: dl.Request, ctx: dl.Context) -> None:
        wanted = {"metadata": {"name": request.name, "namespace": request.namespace, "annotations": {"seen": "yes"}}}
        await ctx.client.apply(MAP, wanted, force=True)
        wanted["metadata"]["name"] = "other"
        try:
            await ctx.client.apply(MAP, wanted, force=True)
        except UndeclaredAccessError as error:
            ended.append(error.needed.verb)

    labelled, patches = [dl.predicates.HasLabels("copy")], [dl.Permission(MAP, verbs=("patch",))]
    marks = dl.controller(MAP, name="marks", predicates=labelled, writes=patches)(mark)
    await deltaloop_harness.start(marks)
    await ask(deltaloop_harness.client)
    await deltaloop_harness.settled()
    assert {*ended} == {"create"}


async def test_undeclared_access_to_cluster_is_logged_once_per_kind_and_verb(
    deltaloop_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    client = deltaloop_harness.client
    options = dl.ManagerOptions(preflight=False, namespace=client.namespace)
    assert options.undeclared_access is UndeclaredAccess.WARN
    manager = dl.Manager(client, [copier()], options=options)
    running = asyncio.create_task(manager.run())
    for name in ("a", "b"):
        await client.create(MAP, {"metadata": {"name": name, "labels": {"copy": ""}}})
    await asyncio.sleep(10)
    assert [each.name for each in await client.list(SECRET)] == ["a", "b"]
    manager.stop()
    await running
    told = [vars(record) for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record["access"].partition(" in ")[0] for record in told] == ["get v1/Secret", "create v1/Secret"]
    assert {record["controller"] for record in told} == {"copier"}
    assert "dl.Permission('v1/Secret', verbs=('create',))" in told[1]["remedy"]
