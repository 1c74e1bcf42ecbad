"""The first start of a program whose webhooks are asked about what the start itself takes: no deadlock.

In a cluster the program's ConfigMap and Pod are made by others before it runs, and it writes its own Secret before it
has a certificate. All that is in its own namespace, which the registered documents leave out. Without that, nothing of
it would ever be allowed, since the one who has to allow it waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, load_kubeconfig
from deltaloop.errors import InternalServerError
from deltaloop.webhooks import (
    AdmissionWebhook,
    ManagedCertificateOptions,
    ManagedCertificates,
    WebhookAddress,
    WebhookSet,
    registrations,
)
from deltaloop.webhooks.certificates.secret_form import empty_secret
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.registering import register
from tests.webhooks.serving import LOCAL

OWN, SERVICE = "shop", "mine-webhooks"
ADDRESS = WebhookAddress(namespace=OWN, service=SERVICE)
CONFIG_MAP, POD, SECRET = dl.kinds.CONFIG_MAP, dl.kinds.POD, dl.kinds.SECRET
POD_SPEC = {"containers": [{"name": "mine", "image": "mine:1"}]}
OBJECTS: dict[Any, dict[str, Any]] = {
    CONFIG_MAP: {"metadata": {"name": "settings"}, "data": {"a": "b"}},
    POD: {"metadata": {"name": "mine"}, "spec": POD_SPEC},
    SECRET: {"metadata": {"name": "password"}, "data": {}},
}


@dl.controller(CONFIG_MAP)
async def nothing(request: dl.Request, ctx: dl.Context) -> None: ...


def webhook_of(kind: dl.ResourceType[dl.Resource]) -> AdmissionWebhook:
    @dl.validate(kind)
    def named_well(obj: dl.Resource) -> dl.FieldError | None:
        return dl.FieldError("metadata.name", "not this one") if obj.name == "wrong" else None

    return named_well


async def cluster_starts(client: Client) -> None:
    """Do what comes before a container runs, again and again until it is allowed, as controllers do."""
    for kind in (CONFIG_MAP, POD):
        while await client.find(kind, OBJECTS[kind]["metadata"]["name"], namespace=OWN) is None:
            try:
                await client.create(kind, OBJECTS[kind], namespace=OWN)
            except InternalServerError:
                await asyncio.sleep(5)


async def program(server: ApiServer, client: Client, webhook: AdmissionWebhook, documents: Any) -> None:
    await cluster_starts(client)
    options = ManagedCertificateOptions(
        namespace=OWN, secret=SERVICE, hosts=(f"{SERVICE}.{OWN}.svc",), targets=targets_in(documents)
    )
    certificates = ManagedCertificates(client, options)
    served = dl.ManagerOptions(webhooks=LOCAL)
    manager = dl.Manager(client, [nothing], webhooks=[webhook], certificates=certificates, options=served)
    running = asyncio.create_task(manager.run())
    try:
        while True:  # the Service leads to those that are ready
            ready = all(each.ok for each in manager.readiness())
            port = manager.webhook_server.port if ready and manager.webhook_server else 0
            server.route_service(f"{OWN}/{SERVICE}", f"127.0.0.1:{port}" if port else "")
            await asyncio.sleep(1)
    finally:
        manager.stop()
        await running


@asynccontextmanager
async def started(webhook: AdmissionWebhook, *, left_out: str) -> AsyncGenerator[Client]:
    """Have a cluster with the program's documents in it, and the program two minutes after they were applied."""
    documents = registrations(WebhookSet([webhook]), ADDRESS, name="mine", own_namespace=left_out)
    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        Client(load_kubeconfig(server.kubeconfig())) as client,
    ):
        server.route_service(f"{OWN}/{SERVICE}", "")
        await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": OWN}})
        await client.create(SECRET, empty_secret(SERVICE, namespace=OWN), namespace=OWN)
        await register(client, documents)
        task = asyncio.create_task(program(server, client, webhook, documents))
        await asyncio.sleep(120)
        try:
            yield client
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def answers(client: Client, kind: Any, name: str) -> str:
    """Return what becomes of a request in another namespace."""
    try:
        await client.create(kind, {**OBJECTS[kind], "metadata": {"name": name}}, namespace="default")
    except dl.ApiError as error:
        return str(error)
    return "allowed"


KINDS = pytest.mark.parametrize("kind", [CONFIG_MAP, POD, SECRET], ids=str)


@KINDS
async def test_program_starts_in_own_namespace_despite_own_webhooks(kind: Any) -> None:
    async with started(webhook_of(kind), left_out=OWN) as client:
        assert await answers(client, kind, "right") == "allowed"
        assert "not this one" in await answers(client, kind, "wrong")
        # The price: nobody judges what is in the program's own namespace.
        await client.create(kind, {**OBJECTS[kind], "metadata": {"name": "wrong"}}, namespace=OWN)


@pytest.mark.nightly
@KINDS
async def test_program_does_not_start_without_namespace_selector(kind: Any) -> None:
    """Seeded: the documents without the namespace selector."""
    async with started(webhook_of(kind), left_out="") as client:
        assert "no endpoints available" in await answers(client, kind, "right")
