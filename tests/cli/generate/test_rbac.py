"""``deltaloop generate rbac`` prints what ``dl.run`` needs: an account with exactly those roles can do everything."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

import deltaloop as dl
from deltaloop.api.redaction import SecretText
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.apiserver import ServerOptions, StaticUser, read_manifests
from deltaloop.cli.generate.rbac import print_roles
from deltaloop.errors import PreflightError
from deltaloop.events import EventApi
from deltaloop.runtime import Controller
from deltaloop.runtime.core.access import AccessRule
from deltaloop.runtime.program.access import Program, rules_of
from deltaloop.runtime.program.access_file import read_access
from deltaloop.testing import eventually
from tests.servers import api_server

CRD = Path(__file__).parents[3] / "examples" / "sample_controller" / "crd.yaml"
FOO = dl.ResourceType[dl.Resource]("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")
FINALIZER = "samples.deltaloop.dev/example"
OPERATOR = StaticUser(name="operator", token=SecretText("token-of-the-operator"))
SCRAPER = StaticUser(name="scraper", token=SecretText("token-of-the-scraper"))
SCRAPE = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
PROGRAM = Program(lease_namespace="ops", event_api=EventApi.EVENTS_V1, token_review=True)

ClusterRole = dl.ResourceType[dl.Resource](
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False
)
Role = dl.ResourceType[dl.Resource]("rbac.authorization.k8s.io", "v1", "Role", "roles")
ClusterRoleBinding = dl.ResourceType[dl.Resource](
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
RoleBinding = dl.ResourceType[dl.Resource]("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")


def sample() -> Controller:
    """Own, write, finalize, tell in the status, record: whatever rights a controller may need."""

    @dl.controller(FOO, owns=[dl.kinds.DEPLOYMENT], writes=[FOO, dl.kinds.DEPLOYMENT])
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        foo = await ctx.client.find(FOO, request.name, namespace=request.namespace)
        if foo is None:
            return
        if foo.deletion_timestamp is not None:
            await ctx.client.delete(dl.kinds.DEPLOYMENT, foo.name, namespace=foo.namespace)
            await ctx.client.remove_finalizer(FOO, foo, FINALIZER)
            return
        foo = await ctx.client.add_finalizer(FOO, foo, FINALIZER)

        def wanted(deployment: dict[str, Any]) -> None:
            dl.set_controller_reference(deployment, foo, FOO)
            labels = {"app": foo.name}
            pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            deployment.setdefault("spec", {"selector": {"matchLabels": labels}, "template": pod})["replicas"] = foo[
                "spec"
            ]["replicas"]

        await ctx.client.create_or_update(dl.kinds.DEPLOYMENT, foo.name, wanted, namespace=foo.namespace)
        status = {"status": {"observedGeneration": foo.generation}}
        await ctx.client.patch(FOO, foo.name, status, namespace=foo.namespace, subresource="status")
        ctx.recorder.event(foo, "Normal", "Synced", "all is well")

    return reconcile


async def grant(admin: dl.Client, documents: Iterable[Any]) -> None:
    """Create roles as they were printed, and give them to the operator."""
    subjects = [{"kind": "User", "name": OPERATOR.name, "apiGroup": "rbac.authorization.k8s.io"}]
    for document in documents:
        role = dict(document)
        name, namespace = role["metadata"]["name"], role["metadata"].get("namespace")
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": name}
        binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference}
        kind, of_binding = (Role, RoleBinding) if namespace else (ClusterRole, ClusterRoleBinding)
        await admin.create(kind, role, namespace=namespace)
        await admin.create(of_binding, binding, namespace=namespace)


@asynccontextmanager
async def cluster(folder: Path) -> AsyncGenerator[dl.Client]:
    """Start a server where roles count; the operator's kubeconfig is ``config`` in the folder."""
    options = ServerOptions(authorization_mode="RBAC", users=(OPERATOR, SCRAPER))
    async with api_server(options) as server, dl.connect(kubeconfig=server.kubeconfig()) as admin:
        server.load(read_manifests(CRD))
        await admin.create(dl.kinds.NAMESPACE, {"metadata": {"name": "ops"}})
        (folder / "config").write_text(write_yaml([server.kubeconfig(token=OPERATOR.token)]))
        (folder / "config").chmod(0o600)
        await admin.create(ClusterRole, {"metadata": {"name": "scrape"}, "rules": [SCRAPE]})
        subjects = [{"kind": "User", "name": SCRAPER.name, "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrape"}
        await admin.create(
            ClusterRoleBinding, {"metadata": {"name": "scrape"}, "subjects": subjects, "roleRef": reference}
        )
        yield admin


async def scrape(url: str, authority: Path, token: str) -> int:
    """Ask for the metrics; return the status."""
    context = ssl.create_default_context(cafile=str(authority))
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=context) as answer:
        return answer.status


def certificate(folder: Path) -> dict[str, Any]:
    """Return options to serve metrics with a certificate, to those whom the API server allows it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return {
        "metrics_bind_address": "127.0.0.1:0",
        "metrics_cert": folder / "cert.pem",
        "metrics_key": folder / "key.pem",
        "metrics_token_review": True,
    }


def options(folder: Path, **more: Any) -> dl.RunOptions:
    given: dict[str, Any] = {
        "kubeconfig": folder / "config",
        "leader_elect": True,
        "leader_election_namespace": "ops",
        "event_api": EventApi.EVENTS_V1,
        "record_access": folder / "access.json",
        "metrics_bind_address": "0",
        "health_probe_bind_address": "0",
        **more,
    }
    return dl.RunOptions(**given)


@pytest.mark.real_time
async def test_program_uses_exactly_generated_roles(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "deltaloop")
    controller = sample()
    task: asyncio.Task[None] | None = None
    async with cluster(tmp_path) as admin:
        await grant(admin, read_yaml_documents(print_roles([controller], name="foos", program=PROGRAM)))
        await admin.create(FOO, {"metadata": {"name": "a"}, "spec": {"deploymentName": "a", "replicas": 2}})

        async def is_observed() -> bool:
            foo, events = await admin.get(FOO, "a"), await admin.list(dl.kinds.EVENTS_V1_EVENT)
            return bool([*events]) and foo.get("status") == {"observedGeneration": foo.generation}

        async def is_scaled() -> bool:
            return bool((await admin.get(dl.kinds.DEPLOYMENT, "a"))["spec"]["replicas"] == 3)

        async def is_gone() -> bool:
            return not [*(await admin.list(FOO))]

        try:
            running = dl.run(controller, options=options(tmp_path, **certificate(tmp_path)))
            task = asyncio.create_task(running)
            await eventually(is_observed, every=0.02)
            await admin.patch(FOO, "a", {"spec": {"replicas": 3}})
            await eventually(is_scaled, every=0.02)
            (url,) = [str(vars(r)["url"]) for r in caplog.records if r.message == "health server is listening"]
            assert url.startswith("https://127.0.0.1:")
            assert await scrape(f"{url}/metrics", tmp_path / "ca.pem", SCRAPER.token.reveal()) == 200
            assert await scrape(f"{url}/metrics", tmp_path / "ca.pem", OPERATOR.token.reveal()) == 403
            await admin.delete(FOO, "a")
            await eventually(is_gone, every=0.02)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
    declared, guessed = rules_of([controller], program=PROGRAM)
    used = set(read_access(tmp_path / "access.json").rules())
    assert guessed == []
    assert used <= set(declared)
    assert used >= {
        AccessRule("apps", "deployments", "create"),
        AccessRule("apps", "deployments", "delete"),
        AccessRule("authentication.k8s.io", "tokenreviews", "create", namespaced=False),
        AccessRule("authorization.k8s.io", "subjectaccessreviews", "create", namespaced=False),
        AccessRule("coordination.k8s.io", "leases", "create", "ops"),
        AccessRule("coordination.k8s.io", "leases", "update", "ops"),
        AccessRule("events.k8s.io", "events", "create"),
        AccessRule("samples.deltaloop.dev", "foos", "patch"),
        AccessRule("samples.deltaloop.dev", "foos/status", "patch"),
    }


@pytest.mark.real_time
async def test_preflight_reports_missing_permissions_of_program(tmp_path: Path) -> None:
    controller = sample()
    async with cluster(tmp_path) as admin:
        await grant(admin, read_yaml_documents(print_roles([controller], name="foos", program=Program())))
        with pytest.raises(PreflightError) as caught:
            await dl.run(controller, options=options(tmp_path))
    assert str(caught.value).startswith(
        "this account is not allowed to get, create, update leases.coordination.k8s.io in namespace ops. Grant the role"
    )


def test_owned_kinds_and_status_need_own_permissions() -> None:
    @dl.controller(FOO, owns=["apps/v1/Deployment"], writes=[dl.Permission("apps/v1/Deployment", verbs=("patch",))])
    def applies(request: dl.Request, ctx: dl.Context) -> None: ...

    @dl.controller(
        FOO, owns=["apps/v1/Deployment"], writes=[dl.Permission(FOO, verbs=("patch",), subresource="status")]
    )
    def only_tells(request: dl.Request, ctx: dl.Context) -> None: ...

    @dl.controller("v1/Namespace", writes=["v1/Namespace", dl.Permission("v1/Secret", verbs=("get",), namespace="ops")])
    def namespaces(request: dl.Request, ctx: dl.Context) -> None: ...

    def written(controller: Controller, program: Program) -> set[str]:
        return {str(rule) for rule in rules_of([controller], program=program)[0] if rule.verb not in ("list", "watch")}

    own = "foos.samples.deltaloop.dev"
    place = " in namespace prod"
    assert written(applies, Program(namespace="prod")) == {
        f"get {own}{place}",
        f"get deployments.apps{place}",
        f"update {own}/status{place}",
        f"patch {own}/status{place}",
        f"patch deployments.apps{place}",
        f"update {own}/finalizers{place}",
        f"create events{place}",
        f"patch events{place}",
    }
    assert f"update {own}/finalizers in all namespaces" not in written(only_tells, Program())
    assert f"patch {own}/status in all namespaces" in written(only_tells, Program())
    assert written(namespaces, Program(namespace="prod")) == {
        *(f"{verb} namespaces" for verb in ("get", "create", "update", "patch", "delete")),
        "get secrets in namespace ops",
        *(f"{verb} events{where}" for verb in ("create", "patch") for where in (place, " in namespace default")),
    }
