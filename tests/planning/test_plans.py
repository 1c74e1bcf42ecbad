"""Plans of a small program on a snapshot of its own work."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions
from deltaloop.apiserver.embedding import CLUSTER_CONTROLLERS, manifests_of
from deltaloop.client.connecting import load_config
from deltaloop.errors import PlanError
from deltaloop.planning import Plan
from deltaloop.planning.cluster import ListOnlyTransport, cluster_objects, reading_client
from deltaloop.planning.dry_run import dry_runs
from deltaloop.planning.plans import file_snapshot, version_of
from deltaloop.planning.reading import reading_rules
from deltaloop.planning.run import run_plan
from deltaloop.planning.snapshot_file import without_secret_values, write_snapshot
from deltaloop.runtime.program.access import restricted
from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.virtual_loop import run_virtual
from deltaloop.testing.harness import running_harness
from deltaloop.testing.servers.direct_transport import DirectTransport
from tests.planning import shops as running
from tests.planning.shops import PASSWORD, Shop, ShopSpec, deployment, secret, shops

NAMES = ("a", "b")
POLICY: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "no-latest"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
            ]
        },
        "validations": [
            {"expression": "object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))"},
        ],
    },
}
BINDING: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "no-latest"},
    "spec": {"policyName": "no-latest", "validationActions": ["Deny"]},
}


class Taken(msgspec.Struct):
    """Snapshot of a cluster in which the program has run, and the verbs that the cluster saw meanwhile."""

    file: Path
    verbs: set[str]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    file = tmp_path_factory.mktemp("plan") / "snapshot.jsonl"
    lines: list[str] = []

    async def live() -> set[str]:
        options = ServerOptions(insecure_http=True, controllers=CLUSTER_CONTROLLERS, audit=lines.append)
        async with running_harness(ApiServer(options), direct=True) as harness:
            await harness.install(Shop, POLICY, BINDING)
            await harness.environment("deployments")
            await harness.start(running.reconcile)
            for name in NAMES:
                shop = Shop(metadata=dl.ObjectMeta(name=name), spec=ShopSpec(image="web:1", replicas=2))
                await harness.client.create(Shop, shop)
            await harness.settled()
            lines.clear()
            assert harness.server is not None
            config = harness.client.config
            reader = dl.Client(config, transport=ListOnlyTransport(DirectTransport(config, harness.server)))
            await write_snapshot(file, cluster_objects(reader, (running.reconcile,), ()), with_secrets=True)
            return {json.loads(line)["verb"] for line in lines}

    return Taken(file, run_virtual(live(), network=MemoryNetwork()))


def planned(taken: Taken, controller: dl.Controller) -> Plan:
    return run_plan(version_of("shops", None, (controller,)), file_snapshot(taken.file)).plan


def changes(plan: Plan) -> list[tuple[str, str, str]]:
    return [(each.action, each.kind, each.key) for each in plan.changes if each.controller]


async def test_running_version_changes_nothing_and_cluster_sees_only_lists(taken: Taken) -> None:
    plan = await dl.plan(running, taken.file)
    assert (plan.changes, plan.problems, plan.exit_code) == ((), (), 0)
    assert taken.verbs == {"list"}


def test_dependent_of_owner_outside_the_snapshot_stays(taken: Taken) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "elsewhere", "uid": "u1"}
    metadata = {"name": "kept", "namespace": "default", "uid": "u2", "resourceVersion": "9", "ownerReferences": [owner]}
    snapshot = file_snapshot(taken.file)
    snapshot.add(Manifest("test", 1, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
    assert run_plan(version_of("shops", None, (running.reconcile,)), snapshot).plan.changes == ()


def test_changed_label_names_changed_objects_and_restarts(taken: Taken) -> None:
    plan = planned(taken, shops(lambda shop: [deployment(shop, tier="web"), secret(shop)]))
    kind = "apps/v1/Deployment"
    assert changes(plan) == [("update", kind, "default/a"), ("update", kind, "default/b")]
    assert [(each.key, each.pods) for each in plan.restarts] == [("default/a", 2), ("default/b", 2)]
    labels = plan.changes[0].fields[0]
    assert (labels.path, labels.before, labels.after) == ("spec.template.metadata.labels.tier", None, "web")
    assert "Shop default/a" in plan.changes[0].cause
    assert plan.exit_code == 2
    assert {each.kind for each in plan.changes if not each.controller} == {"apps/v1/ReplicaSet", "v1/Pod"}


def test_fixture_reads_a_snapshot_next_to_the_test_and_fails_with_the_plan(
    taken: Taken, deltaloop_plan: Callable[[ModuleType, str], Coroutine[Any, Any, Plan]]
) -> None:
    plan = run_virtual(deltaloop_plan(running, str(taken.file)))
    assert not plan.changes
    with pytest.raises(PlanError) as missing:
        run_virtual(deltaloop_plan(running, "missing.jsonl"))
    assert missing.value.place == str(Path(__file__).parent / "missing.jsonl")
    broken = ModuleType("broken")
    vars(broken).update(Shop=Shop, reconcile=shops(lambda shop: [{"kind": shop.metadata.name}]))
    with pytest.raises(pytest.fail.Exception):
        run_virtual(deltaloop_plan(broken, str(taken.file)))


def test_removed_child_is_deleted(taken: Taken) -> None:
    plan = planned(taken, shops(lambda shop: [deployment(shop)]))
    assert changes(plan) == [("delete", "v1/Secret", f"default/{name}-login") for name in NAMES]


def test_policy_of_cluster_rejects_write(taken: Taken) -> None:
    def latest(shop: Shop) -> list[dict[str, Any]]:
        shop.spec.image = "web:latest"
        return [deployment(shop), secret(shop)]

    plan = planned(taken, shops(latest))
    assert [(each.reason, each.subject) for each in plan.problems] == [
        ("rejected", f"shop default/{name}") for name in NAMES
    ]
    assert plan.exit_code == 1


def test_mutating_policy_changes_the_writes(taken: Taken) -> None:
    group = "admissionregistration.k8s.io/v1"
    expression = "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"
    spec = {
        "matchConstraints": POLICY["spec"]["matchConstraints"],
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        "reinvocationPolicy": "Never",
    }
    policy = {"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "seen"}, "spec": spec}
    binding = {**policy, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "seen"}}
    snapshot = file_snapshot(taken.file).load(manifests_of([policy, binding], source="test"))
    changed = shops(lambda shop: [deployment(shop, tier="web"), secret(shop)])
    plan = run_plan(version_of("shops", None, (changed,)), snapshot).plan
    assert "metadata.labels.seen" in {field.path for field in plan.changes[0].fields}


def test_program_that_never_rests_is_reported_with_its_hot_field(taken: Taken) -> None:
    count = iter(range(10_000))
    plan = planned(taken, shops(lambda shop: [deployment(shop), secret(shop, str(next(count)))]))
    problem = plan.problems[0]
    assert (problem.reason, problem.subject.startswith("shop default/")) == ("hot-loop", True)
    assert "data.password" in problem.message


def test_failing_reconcile_is_reported_with_its_line(taken: Taken) -> None:
    def broken(shop: Shop) -> list[dict[str, Any]]:
        raise LookupError(shop.metadata.name)

    plan = planned(taken, shops(broken))
    assert [(each.reason, each.message) for each in plan.problems] == [
        ("failed", "LookupError: a"),
        ("failed", "LookupError: b"),
    ]
    assert "test_plans.py" in plan.problems[0].place
    assert plan.numbers.retries > 2


def test_values_of_secrets_are_in_no_output(taken: Taken) -> None:
    plan = planned(taken, shops(lambda shop: [deployment(shop, copied="x"), secret(shop, "another secret value")]))
    shown = str(plan) + msgspec.json.encode(plan).decode()
    assert ("update", "v1/Secret", "default/a-login") in changes(plan)
    assert PASSWORD not in shown
    assert "another secret value" not in shown
    assert "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5" not in shown


@dl.lifespan
async def prices() -> AsyncIterator[int]:
    socket.create_connection(("192.0.2.1", 443), timeout=1).close()
    yield 1


def asking(session: Any) -> dl.Controller:
    @dl.controller(Shop, lifespan=session)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        assert ctx.lifespan(session) == 2
        socket.create_connection(("192.0.2.2", 443), timeout=1).close()

    return reconcile


def test_denied_network_is_listed_with_its_line_and_stub_is_used(taken: Taken) -> None:
    denied = planned(taken, asking(prices)).problems
    assert [(each.reason, each.subject) for each in denied] == [("failed", "shops"), ("network", "192.0.2.1:443")]

    @prices.stub
    async def two() -> AsyncIterator[int]:
        yield 2

    plan = planned(taken, asking(prices))
    attempts = [each for each in plan.problems if each.reason == "network"]
    assert [each.subject for each in attempts] == ["192.0.2.2:443"]
    line = asking.__code__.co_firstlineno + 4
    assert attempts[0].place == f"{__file__}:{line}"
    assert two is not None


def test_snapshot_keeps_uids_versions_and_managed_fields_but_no_secret_values(taken: Taken, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in taken.file.read_text().splitlines()]
    kept: list[dict[str, Any]] = [without_secret_values(line) if "kind" in line else line for line in lines]
    file = tmp_path / "snapshot.jsonl"
    file.write_text("\n".join(map(json.dumps, kept)))
    assert "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5" in taken.file.read_text()
    assert "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5" not in file.read_text()
    tables = file_snapshot(file).state.tables
    [sent] = [line for line in kept if line.get("kind") == "Deployment" and line["metadata"]["name"] == "a"]
    stored = tables["deployments.apps"][0]["default/a"].to_dict()
    assert stored == {name: value for name, value in sent.items() if name not in ("apiVersion", "kind")}
    assert {"uid", "resourceVersion", "managedFields"} <= {*sent["metadata"]}


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.yaml", "kind: [", "a.yaml"),
        ("b.jsonl", '{"snapshot":"deltaloop.dev/snapshot/v1"}\n{', "b.jsonl, line 2"),
        ("c.jsonl", '{"snapshot":"deltaloop.dev/snapshot/v1"}\n', "c.jsonl"),
    ],
)
def test_unreadable_file_is_named(tmp_path: Path, name: str, content: str, place: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(dl.errors.DeltaloopError, match=place):
        file_snapshot(file)


def test_object_of_kind_without_definition_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("apiVersion: example.org/v1\nkind: Lost\nmetadata: {name: x}\n")
    with pytest.raises(PlanError, match=r"example\.org/v1/Lost") as raised:
        file_snapshot(tmp_path)
    assert raised.value.place.endswith("x.yaml, document 1")


def test_stored_object_that_a_changed_definition_rejects_is_listed(taken: Taken) -> None:
    version = version_of("shops", None, (running.reconcile,))
    definition = json.loads(msgspec.json.encode(version.definitions[0]))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["replicas"]["maximum"] = 1
    outcome = run_plan(replace(version, definitions=(definition,)), file_snapshot(taken.file))
    unfit = [each.subject for each in outcome.plan.problems if each.reason == "does-not-fit"]
    assert unfit == [f"shops.example.com default/{name}" for name in NAMES]
    assert [each.kind for each in outcome.plan.changes] == ["apiextensions.k8s.io/v1/CustomResourceDefinition"]


async def test_printed_role_suffices_and_missing_permission_names_it() -> None:
    program = ((running.reconcile,), ())
    async with ApiServer(ServerOptions(authorization_mode="RBAC")) as server:
        certificate = server.issue_certificate("nobody")
        async with dl.connect(kubeconfig=server.kubeconfig(certificate=certificate)) as client:
            with pytest.raises(PlanError, match="--plan") as raised:
                async for _ in cluster_objects(client, *program):
                    pass
        async with dl.connect(kubeconfig=server.kubeconfig()) as admin:
            rules = reading_rules(*program, namespace=None)
            config = await restricted(admin, rules, name="plan")
        async with reading_client(config) as client:
            read = {str(fields["kind"]) async for fields in cluster_objects(client, *program)}
            with pytest.raises(PlanError, match="only list"):
                await client.delete(dl.kinds.SECRET, "a")
    assert raised.value.place == "namespaces"
    assert "Namespace" in read


def test_server_dry_run_shows_rejections_and_changes_of_server(taken: Taken) -> None:
    version = version_of("shops", None, (shops(lambda shop: [deployment(shop, tier="web"), secret(shop, "new one")]),))
    outcome = run_plan(version, file_snapshot(taken.file), keep_requests=True)
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}]
    deny = {**POLICY, "metadata": {"name": "no-secrets"}}
    deny["spec"] = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "false"}]}
    binding = {**BINDING, "metadata": {"name": "no-secrets"}}
    binding["spec"] = {"policyName": "no-secrets", "validationActions": ["Deny"]}

    async def live() -> tuple[list[tuple[str, str]], bool]:
        snapshot = file_snapshot(taken.file)
        async with ApiServer(snapshot.options(), begins_with=snapshot.state) as server:
            server.load(manifests_of([deny, binding], source="test"))
            config, before = load_config(kubeconfig=server.kubeconfig()), server.revision
            kinds = ("secrets", "deployments.apps")
            found = [each async for each in dry_runs(config, outcome.first_writes, lambda _, __: None)]
            touched = any(server.has_changed(kind, after=before) for kind in kinds)
            return [(each.reason, each.subject) for each in found], touched

    problems, touched = run_virtual(live(), network=MemoryNetwork())
    assert problems == [("dry-run", f"PATCH secrets default/{name}-login") for name in NAMES]
    assert not touched


def test_own_webhook_runs_and_foreign_webhook_is_listed(taken: Taken) -> None:
    @dl.mutate("apps/v1/Deployment")
    def annotate(fields: dict[str, Any]) -> None:
        fields["metadata"].setdefault("annotations", {})["seen"] = "yes"

    rule = {"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["deployments"]}
    foreign: dict[str, object] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "foreign"},
        "webhooks": [{"name": "a.example.com", "clientConfig": {"url": "https://192.0.2.1"}, "rules": [rule]}],
    }
    snapshot = file_snapshot(taken.file)
    snapshot.add(Manifest("test", 1, foreign))
    changed = shops(lambda shop: [deployment(shop, tier="web"), secret(shop)])
    plan = run_plan(version_of("shops", None, (changed,), (annotate,)), snapshot).plan
    assert plan.webhooks_not_asked == ("MutatingWebhookConfiguration foreign: a.example.com (2 changes)",)
    assert "metadata.annotations.seen" in {field.path for field in plan.changes[0].fields}
    assert (plan.problems, plan.numbers.retries) == ((), 0)
