"""A manager serves webhooks from its start on, before its caches, and is not ready before they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.errors import InvalidArgumentError, InvalidWebhookError
from deltaloop.webhooks import FixedCertificate
from tests.webhooks.kinds import Database, check
from tests.webhooks.serving import LOCAL, credentials

SERVED = dl.ManagerOptions(webhooks=LOCAL)


@dl.validate("v1/Pod", reads=["v1/Secret"])
def reads_secrets(_: dl.Resource) -> None: ...


@dl.controller("v1/ConfigMap")
async def nothing(request: dl.Request, ctx: dl.Context) -> None: ...


def manager(client: dl.Client, *webhooks: Any, options: dl.ManagerOptions = SERVED) -> dl.Manager:
    certificate = FixedCertificate(credentials()[1])
    return dl.Manager(client, [nothing], webhooks=webhooks, certificates=certificate, options=options)


@asynccontextmanager
async def running(made: dl.Manager) -> AsyncGenerator[None]:
    task = asyncio.create_task(made.run())
    try:
        yield
    finally:
        made.stop()
        await task


async def test_ready_means_that_webhooks_answer_and_their_caches_are_full(deltaloop_client: dl.Client) -> None:
    made = manager(deltaloop_client, check, reads_secrets)
    assert {each.name: each.ok for each in made.readiness()}["webhooks"] is False
    async with running(made):
        await asyncio.sleep(3)
        assert all(each.ok for each in made.readiness())
        assert sorted(each.name for each in made.informers) == ["v1/ConfigMap", "v1/Secret"]
        assert made.webhook_server is not None
        assert made.webhook_server.url.startswith("https://127.0.0.1:")


async def test_webhooks_answer_before_the_caches_are_filled(
    deltaloop_client: dl.Client, deltaloop_server: ApiServer
) -> None:
    number = deltaloop_server.faults.add(Fault(do="delay", verbs=("list", "watch"), seconds=60.0))
    made = manager(deltaloop_client, check, reads_secrets)
    async with running(made):
        await asyncio.sleep(3)
        checks = {each.name: each.ok for each in made.readiness()}
        assert (checks["webhooks"], checks["caches-synced"]) == (True, False)
        deltaloop_server.faults.remove(number)


async def test_webhooks_alone_are_a_program_and_without_any_there_is_no_check(deltaloop_client: dl.Client) -> None:
    certificate = FixedCertificate(credentials()[1])
    alone = dl.Manager(deltaloop_client, [], webhooks=[check], certificates=certificate, options=SERVED)
    async with running(alone):
        await asyncio.sleep(100)
        assert all(each.ok for each in alone.readiness())
    assert "webhooks" not in {each.name for each in manager(deltaloop_client).readiness()}
    not_served = manager(deltaloop_client, check, options=dl.ManagerOptions())
    async with running(not_served):
        await asyncio.sleep(3)
        assert all(each.ok for each in not_served.readiness())


async def test_what_cannot_be_served_is_refused(deltaloop_client: dl.Client) -> None:
    with pytest.raises(InvalidArgumentError, match="by HTTPS only"):
        dl.Manager(deltaloop_client, [nothing], webhooks=[check], options=SERVED)
    with pytest.raises(InvalidWebhookError, match="two have this name"):
        manager(deltaloop_client, check, dl.validate(Database, name=check.name)(check.function))
    cold = dl.ManagerOptions(webhooks=LOCAL, warm_standbys=False)
    with pytest.raises(InvalidArgumentError, match="warm_standbys"):
        manager(deltaloop_client, reads_secrets, options=cold)
