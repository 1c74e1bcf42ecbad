"""The tutorial's controller and the files that it is deployed with: they apply, and their rights are enough."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from examples.website.website import Website, WebsiteStatus, reconcile
from typer.testing import CliRunner

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cli.app import app
from deltaloop.testing import eventually
from tests.cli.commands import command_of

FOLDER = Path(__file__).parents[2] / "examples" / "website"
MANIFESTS = [FOLDER / "crd.yaml", FOLDER / "deploy" / "controller.yaml", FOLDER / "deploy" / "roles.yaml"]


def documents(path: Path) -> list[dict[str, Any]]:
    return list(dl.read_yaml_documents(path.read_text(), source=path.name))


def deployment() -> dict[str, Any]:
    return next(each for each in documents(FOLDER / "deploy" / "controller.yaml") if each["kind"] == "Deployment")


@asynccontextmanager
async def deployed() -> AsyncGenerator[tuple[dl.Client, dl.Client]]:
    """Apply the manifests to a server that enforces RBAC; give the administrator and the controller's account."""
    async with (
        ApiServer(ServerOptions(authorization_mode="RBAC", controllers=frozenset({"gc", "namespace"}))) as server,
        dl.connect(kubeconfig=server.kubeconfig()) as admin,
    ):
        for document in [each for path in MANIFESTS for each in documents(path)]:
            await admin.create(f"{document['apiVersion']}/{document['kind']}", document)
        answer = await admin.create_subresource(
            "v1/ServiceAccount",
            "website-controller",
            "token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            namespace="websites",
        )
        config = server.kubeconfig()
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        async with dl.connect(kubeconfig=config, namespace="websites") as account:
            yield admin, account


async def test_service_account_has_permissions_of_controller() -> None:
    async with deployed() as (admin, account):
        recorder = dl.EventRecorder(account, component="website-controller")
        lock = dl.LeaseLock(account, namespace="websites", name="website-controller", identity="one")
        elector = dl.LeaderElector(lock, dl.LeaderElectionConfig(renew_in_thread=False))
        async with recorder:
            manager = dl.Manager(account, [reconcile], elector=elector, recorder=recorder)
            running = asyncio.create_task(manager.run())
            website = documents(FOLDER / "website.yaml")[0]
            await admin.create("example.com/v1/Website", website)

            assert await eventually(lambda: status(admin)) == WebsiteStatus(ready_replicas=0)
            await admin.patch(
                dl.kinds.DEPLOYMENT,
                "hello",
                {"status": {"readyReplicas": 1}},
                namespace="default",
                subresource="status",
            )
            await eventually(lambda: ready(admin))
            page = await admin.get(dl.kinds.CONFIG_MAP, "hello", namespace="default")
            assert page["data"]["index.html"] == "<h1>Hello</h1>"
            await admin.delete(Website, "hello", namespace="default")
            await eventually(lambda: gone(admin))
            manager.stop()
            await running
            assert (await admin.get(dl.kinds.LEASE, "website-controller", namespace="websites"))["spec"]


async def status(admin: dl.Client) -> WebsiteStatus | None:
    return (await admin.get(Website, "hello", namespace="default")).status


async def ready(admin: dl.Client) -> bool:
    return await status(admin) == WebsiteStatus(ready_replicas=1)


async def gone(admin: dl.Client) -> bool:
    return not [each for each in await admin.list(dl.kinds.DEPLOYMENT) if each.name == "hello"]


def test_roles_equal_generated_roles() -> None:
    command = "generate rbac examples/website/website.py --name website-controller --leader-elect"
    words = [*shlex.split(command), "--leader-election-namespace", "websites"]
    printed = CliRunner().invoke(app, words, catch_exceptions=False)
    assert printed.stdout == (FOLDER / "deploy" / "roles.yaml").read_text()


def test_crd_equals_generated_crd() -> None:
    printed = CliRunner().invoke(app, ["generate", "crd", "examples/website/website.py"], catch_exceptions=False)
    assert printed.stdout == (FOLDER / "crd.yaml").read_text()


def test_command_line_of_image_is_valid() -> None:
    entry = next(line for line in (FOLDER / "Containerfile").read_text().splitlines() if line.startswith("ENTRYPOINT"))
    command, name, *first = json.loads(entry.removeprefix("ENTRYPOINT "))
    assert (command, name) == ("deltaloop", "run")
    run = command_of(name)
    given: dict[str, Any] = run.make_context(name, [*first, *containers()[0]["args"]]).params
    assert given["leader_elect"]
    assert given["leader_election_id"] == "website-controller"
    assert given["leader_election_namespace"] == deployment()["metadata"]["namespace"]


def containers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deployment()["spec"]["template"]["spec"]["containers"]
    return found


def test_shutdown_timeout_is_below_grace_period() -> None:
    grace = deployment()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    limit = next(word for word in containers()[0]["args"] if word.startswith("--shutdown-timeout="))
    assert float(limit.partition("=")[2]) < grace
