"""Controllers under test run with exactly the rights that ``deltaloop generate rbac`` prints for them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ServerOptions
from deltaloop.errors import ForbiddenError, InvalidArgumentError
from deltaloop.runtime import UndeclaredAccess
from deltaloop.testing import Harness, embedded_harness
from tests.having import having

MAP, SECRET = dl.kinds.CONFIG_MAP, dl.kinds.SECRET
RBAC = ServerOptions(authorization_mode="RBAC")


def copier(*writes: dl.Permission | dl.ResourceType[dl.api.Resource]) -> dl.Controller:
    @dl.controller(MAP, name="copier", predicates=[dl.predicates.HasLabels("copy")], writes=writes)
    async def copy(request: dl.Request, ctx: dl.Context) -> None:
        if await ctx.client.find(MAP, request.name, namespace=request.namespace) is not None:
            secret: dict[str, Any] = {"metadata": {"name": request.name, "namespace": request.namespace}}
            await ctx.client.apply(SECRET, secret, force=True)
            ctx.recorder.event(secret | {"apiVersion": "v1", "kind": "Secret"}, "Normal", "Made", "made")

    return copy


async def ask(harness: Harness) -> None:
    await harness.client.create(MAP, {"metadata": {"name": "a", "labels": {"copy": ""}}})


async def test_declared_role_is_sufficient_with_events_and_election() -> None:
    async with embedded_harness(RBAC) as harness:
        one = await harness.start(copier(SECRET), as_role=True, leader_election=True)
        await ask(harness)
        await harness.settled()
        assert [str(write) for write in harness.writes] == ["apply secrets default/a"]
        assert [each["reason"] for each in await harness.client.list_all(dl.kinds.EVENT)] == ["Made"]
        assert one.leads
        await one.restart(crash=True)
        await harness.advance(60)
        await harness.settled()
        assert one.leads


async def test_undeclared_access_is_forbidden_by_server(caplog: pytest.LogCaptureFixture) -> None:
    options = dl.ManagerOptions(preflight=False, undeclared_access=UndeclaredAccess.WARN)
    async with embedded_harness(RBAC) as harness:
        await harness.start(copier(dl.Permission(SECRET, verbs=("create",))), as_role=True, options=options)
        await ask(harness)
        await harness.advance(1)
        raised = [record.exc_info[1] for record in caplog.records if record.exc_info and record.levelno > logging.INFO]
        assert raised
        assert all(isinstance(error, ForbiddenError) for error in raised)
        assert "deltaloop:default-copier" in str(raised[0])
        assert await harness.client.find(SECRET, "a") is None


async def test_as_role_needs_rbac_authorization(deltaloop_harness: Harness) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="ServerOptions.authorization_mode")):
        await deltaloop_harness.start(copier(SECRET), as_role=True)
