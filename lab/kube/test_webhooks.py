"""What programs do for their webhooks, on the real server; ``make -C lab conformance`` runs this where the binaries
are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.apiserver.serving import widget
from tests.webhooks.certificates.test_own import configuration
from tests.webhooks.test_storage_migration import CRD, NAME, WIDGET, definition, store, stored_versions

import deltaloop as dl
from deltaloop.client import Client, load_kubeconfig
from deltaloop.testing import eventually
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from deltaloop.webhooks import (
    ManagedCertificateOptions,
    ManagedCertificates,
    TargetKind,
    WebhookTarget,
    migrate_storage,
)

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("DELTALOOP_CONFORMANCE") != "real", reason="starts the real server: make -C lab conformance"
    ),
    pytest.mark.real_time,
    pytest.mark.timeout(150),
]
VALIDATING = dl.kinds.VALIDATING_WEBHOOK_CONFIGURATION


@pytest.fixture(scope="module")
def kubeconfig() -> Generator[Any]:
    assets = find_assets()
    assert assets is not None
    with ControlPlane(assets, start_timeout=120) as plane:
        yield plane.kubeconfig()


async def test_stored_objects_are_migrated(kubeconfig: Any) -> None:
    async with Client(load_kubeconfig(kubeconfig, namespace="default")) as client:
        await client.create(CRD, definition("v1beta1"))
        await client.wait_for(CRD, NAME, dl.wait.established())
        for number in range(25):
            await client.create(WIDGET, widget(f"w{number:02}"))
        before = {each.resource_version for each in await client.list(WIDGET)}
        await store(client, "v1")
        await asyncio.sleep(2)  # until the server stores it
        ended = await migrate_storage(client, NAME, page_size=10)
        assert (ended.done, ended.written, ended.others) == (True, 25, ("v1beta1",))
        assert not before & {each.resource_version for each in await client.list(WIDGET)}
        assert await stored_versions(client) == ["v1"]
        left = [each for each in definition("v1")["spec"]["versions"] if each["name"] == "v1"]
        await client.patch(CRD, NAME, {"spec": {"versions": left}})


async def test_program_manages_its_certificates(kubeconfig: Any, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    async def review(request: web.BaseRequest) -> web.StreamResponse:
        asked.append((await request.json())["request"]["uid"])
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**answer, "response": {"uid": asked[-1], "allowed": True}})

    async with Client(load_kubeconfig(kubeconfig, namespace="default")) as client:
        target = WebhookTarget(TargetKind.VALIDATING, "widgets", ("a.example.com",))
        options = ManagedCertificateOptions(
            namespace="default", secret="hooks", hosts=("127.0.0.1",), targets=(target,)
        )
        replicas = [ManagedCertificates(client, options), ManagedCertificates(client, replace(options, resync=60.0))]
        runner = web.ServerRunner(web.Server(review), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=replicas[0].context()).start()
        made = configuration(url=f"https://127.0.0.1:{runner.addresses[0][1]}/validate")
        made["webhooks"] = made["webhooks"][:1]
        made["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
        await client.create(VALIDATING, made)
        running = [asyncio.create_task(each.run()) for each in replicas]
        await eventually(lambda: all(each.not_ready() == "" for each in replicas), within=20)

        async def created(name: str) -> bool:
            await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": name}})
            return True

        await eventually(lambda: created("first"), within=20, every=0.5)  # the server sees the change a moment later
        assert asked
        # Nothing fails while the Secret is deleted, made anew, and its authority published beside the one before.
        await client.delete(dl.kinds.SECRET, "hooks", namespace="default")
        for number in range(20):
            assert await created(f"m{number}")
            await asyncio.sleep(0.1)
        assert len(asked) >= 21
        assert all(each.not_ready() == "" for each in replicas)
        assert all(each._secret._server_clock.is_known for each in replicas)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await client.delete(VALIDATING, "widgets")
        await runner.cleanup()
    assert [each.getMessage() for each in caplog.records if "clock differs" in each.getMessage()] == []
