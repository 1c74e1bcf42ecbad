"""A manager serves webhooks from its start on, before its caches, and is not ready before they answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.errors import InvalidArgumentError, InvalidWebhookError
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime.core.readiness import Leadership
from deltaloop.webhooks import StaticCertificate
from tests.having import having
from tests.runtime.worlds import now
from tests.webhooks.kinds import Database, check, database, review
from tests.webhooks.serving import LOCAL, credentials

SERVED = dl.ManagerOptions(webhooks=LOCAL)


@dl.validate("v1/Pod", reads=["v1/Secret"])
def reads_secrets(_: dl.Resource) -> None: ...


@dl.controller("v1/ConfigMap")
async def nothing(request: dl.Request, ctx: dl.Context) -> None: ...


def manager(client: dl.Client, *webhooks: Any, options: dl.ManagerOptions = SERVED) -> dl.Manager:
    certificate = StaticCertificate(credentials()[1])
    return dl.Manager(client, [nothing], webhooks=webhooks, certificates=certificate, options=options)


@asynccontextmanager
async def running(made: dl.Manager) -> AsyncGenerator[None]:
    task = asyncio.create_task(made.run())
    try:
        yield
    finally:
        made.stop()
        await task


async def test_readiness_includes_webhooks_and_their_caches(deltaloop_client: dl.Client) -> None:
    made = manager(deltaloop_client, check, reads_secrets)
    assert {each.name: each.ok for each in made.readiness()}["webhooks"] is False
    async with running(made):
        await asyncio.sleep(3)
        assert all(each.ok for each in made.readiness())
        assert sorted(each.name for each in made.informers) == ["v1/ConfigMap", "v1/Secret"]
        assert made.webhook_server is not None
        assert made.webhook_server.url.startswith("https://127.0.0.1:")


async def test_webhooks_respond_before_cache_sync(deltaloop_client: dl.Client, deltaloop_server: ApiServer) -> None:
    number = deltaloop_server.faults.add(Fault(do="delay", verbs=("list", "watch"), seconds=60.0))
    made = manager(deltaloop_client, check, reads_secrets)
    async with running(made):
        await asyncio.sleep(3)
        checks = {each.name: each.ok for each in made.readiness()}
        assert (checks["webhooks"], checks["caches-synced"]) == (True, False)
        deltaloop_server.faults.remove(number)


async def test_program_can_have_webhooks_only(deltaloop_client: dl.Client) -> None:
    certificate = StaticCertificate(credentials()[1])
    alone = dl.Manager(deltaloop_client, [], webhooks=[check], certificates=certificate, options=SERVED)
    async with running(alone):
        await asyncio.sleep(100)
        assert all(each.ok for each in alone.readiness())
    assert "webhooks" not in {each.name for each in manager(deltaloop_client).readiness()}
    not_served = manager(deltaloop_client, check, options=dl.ManagerOptions())
    async with running(not_served):
        await asyncio.sleep(3)
        assert all(each.ok for each in not_served.readiness())


async def test_invalid_webhook_options_are_rejected(deltaloop_client: dl.Client) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="Manager(certificates=...)")):
        dl.Manager(deltaloop_client, [nothing], webhooks=[check], options=SERVED)
    with pytest.raises(InvalidWebhookError, check=having(argument="name")):
        manager(deltaloop_client, check, dl.validate(Database, name=check.name)(check.function))
    cold = dl.ManagerOptions(webhooks=LOCAL, warm_standbys=False)
    with pytest.raises(InvalidArgumentError, check=having(argument="ManagerOptions.warm_standbys")):
        manager(deltaloop_client, reads_secrets, options=cold)


CHECK = "/validate/check.databases.example.com"


@asynccontextmanager
async def asking(url: str) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
    """Yield a function that sends a review on a new connection, and tells whether it is allowed."""
    trusting = ssl.create_default_context(cadata=credentials()[0].ca_pem.decode())
    connector = aiohttp.TCPConnector(ssl=trusting, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> bool:
            async with session.post(f"{url}{CHECK}", json=review(database(replicas=3))) as answer:
                return bool((await answer.json())["response"]["allowed"])

        yield ask


def graceful(client: dl.Client, **more: Any) -> dl.Manager:
    options = dl.ManagerOptions(webhooks=LOCAL.replace(grace=5.0))
    certificate = StaticCertificate(credentials()[1])
    return dl.Manager(client, [nothing], webhooks=[check], certificates=certificate, options=options, **more)


async def test_webhooks_respond_during_grace_period_after_stop(
    deltaloop_client: dl.Client,
) -> None:
    lock = LeaseLock(deltaloop_client, namespace="default", name="shop", identity="a")
    config = LeaderElectionConfig(renew_in_thread=False)
    made = graceful(deltaloop_client, elector=LeaderElector(lock, config, client=deltaloop_client, clock=now))
    task = asyncio.create_task(made.run())
    await asyncio.sleep(3)
    server = made.webhook_server
    assert server is not None
    assert made.leadership is Leadership.LEADING
    async with asking(server.url) as ask:
        began = asyncio.get_running_loop().time()
        made.stop()
        for _ in range(4):
            await asyncio.sleep(1)
            assert {each.name: each.ok for each in made.readiness()}["running"] is False
            assert await ask() is True
        lease = await deltaloop_client.get("coordination.k8s.io/v1/Lease", "shop", namespace="default")
        assert not lease["spec"].get("holderIdentity"), "others lead already"
        await task
        assert asyncio.get_running_loop().time() - began == pytest.approx(5.0, abs=1.0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask()


async def test_second_stop_ends_grace_period_of_webhooks(deltaloop_client: dl.Client) -> None:
    made = graceful(deltaloop_client)
    task = asyncio.create_task(made.run())
    await asyncio.sleep(3)
    began = asyncio.get_running_loop().time()
    made.stop()
    await asyncio.sleep(1)
    assert not task.done()
    made.stop()
    await task
    assert asyncio.get_running_loop().time() - began == pytest.approx(1.0, abs=0.5)


async def test_grace_period_applies_to_cancellation_but_not_to_unready_program(
    deltaloop_client: dl.Client, deltaloop_server: ApiServer
) -> None:
    made = graceful(deltaloop_client)
    task = asyncio.create_task(made.run())
    await asyncio.sleep(3)
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - began == pytest.approx(5.0, abs=0.5)
    deltaloop_server.faults.add(Fault(do="delay", verbs=("list", "watch"), seconds=60.0))
    made = graceful(deltaloop_client)
    task = asyncio.create_task(made.run())
    await asyncio.sleep(3)
    began = asyncio.get_running_loop().time()
    made.stop()
    await task
    assert asyncio.get_running_loop().time() - began < 1.0
