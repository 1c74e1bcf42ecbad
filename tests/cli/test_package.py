"""``deltaloop package``: a server takes what it makes, the program can do its work by it, files are checked."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import deltaloop as dl
from deltaloop.api.redaction import SecretText
from deltaloop.api.yaml_reader import read_yaml, read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.apiserver import ServerOptions
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import load_program
from deltaloop.cli.packaging.core.chart import definitions_text
from deltaloop.cli.packaging.core.manifests import PackagedProgram, network_policy
from deltaloop.cli.packaging.declared import split_image
from deltaloop.cli.run import program
from deltaloop.errors import InvalidArgumentError, InvalidError, PreflightError
from deltaloop.events import EventApi
from deltaloop.testing import eventually
from tests.cli.commands import command_of
from tests.client.loopback import free_port
from tests.servers import api_server

MODULE = """
from typing import Annotated

import msgspec

import deltaloop as dl
from deltaloop.crds import ValidationRule, class_rules

@class_rules(ValidationRule("self.colour != ''", message="{{ no }} colour"))
class Spec(msgspec.Struct):
    colour: Annotated[str, msgspec.Meta(max_length=20)] = "red"

@dl.custom_resource(group="example.com", version="v1")
class Paint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec
    status: dict[str, int] | None = None

@dl.custom_resource(group="others.example.org", version="v1")
class Canvas(msgspec.Struct):
    spec: Spec

@dl.controller(Paint, children=[dl.kinds.CONFIG_MAP], name="paints")
async def paints(request, ctx):
    paint = await ctx.client.find(Paint, request.name, namespace=request.namespace)
    if paint is not None:
        await ctx.children.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": paint.metadata.name}})
        async with ctx.status(paint) as status:
            status["coats"] = 1
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "paints.py"
    file.write_text(MODULE)
    yield file
    sys.modules.pop(file.stem, None)


def run(*arguments: str) -> Result:
    importlib.invalidate_caches()
    return CliRunner().invoke(app, [*arguments])


def packaged(*arguments: str) -> list[dict[str, Any]]:
    done = run("package", "paints.py", *arguments)
    assert done.exit_code == 0, done.output
    return [*read_yaml_documents(done.stdout)]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [each for each in objects if each["kind"] == kind]
    return found


async def test_package_is_accepted_and_program_runs_under_its_account(module: Path) -> None:
    objects = packaged("--install-namespace", "studio")
    controllers = load_program(module.name)[1]
    paint = dl.ResourceType[dl.Resource]("example.com", "v1", "Paint", "paints")
    options = ServerOptions(authorization_mode="RBAC", controllers=frozenset({"gc", "namespace"}), insecure_http=False)
    async with api_server(options) as server, dl.connect(kubeconfig=server.kubeconfig()) as admin:
        for each in objects:
            await admin.create(f"{each['apiVersion']}/{each['kind']}", each)
        await admin.wait_for(dl.kinds.CUSTOM_RESOURCE_DEFINITION, "paints.example.com", dl.wait.established())
        asked: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await admin.create_subresource("v1/ServiceAccount", "paints", "token", asked, namespace="studio")
        config = server.kubeconfig()
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        async with dl.connect(kubeconfig=config, namespace="studio") as account:
            lock = dl.LeaseLock(account, namespace="studio", name="paints", identity="one")
            elector = dl.LeaderElector(lock, dl.LeaderElectionConfig(renew_in_thread=False))
            async with dl.EventRecorder(account, component="paints") as recorder:
                manager = dl.Manager(account, controllers, elector=elector, recorder=recorder)
                running = asyncio.create_task(manager.run())
                await admin.create(paint, {"metadata": {"name": "a"}, "spec": {}}, namespace="default")

                async def is_painted() -> bool:
                    found = await admin.get(paint, "a", namespace="default")
                    return bool(found.get("status", {}).get("coats") == 1)

                await eventually(is_painted)
                manager.stop()
                await running
            for kind, namespace in ((dl.kinds.SECRET, "studio"), (dl.kinds.LEASE, "default")):
                with pytest.raises(dl.ForbiddenError):
                    await account.list_all(kind, namespace=namespace)
            without = [each for each in objects if each["kind"] != "ClusterRoleBinding"]
            assert len(without) == len(objects) - 1
            await admin.delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "paints")
            with pytest.raises(PreflightError):
                await dl.Manager(account, controllers).run()


def test_package_has_roles_of_rbac_and_flags_of_run(module: Path) -> None:
    objects = packaged("--namespace", "team", "--install-namespace", "studio", "--event-api", "events.k8s.io/v1")
    command = "generate rbac paints.py --leader-elect --leader-election-namespace studio"
    printed = run(*shlex.split(command), "--namespace", "team", "--event-api", "events.k8s.io/v1")
    wanted = {each["metadata"]["namespace"]: each["rules"] for each in read_yaml_documents(printed.stdout)}
    assert {each["metadata"]["namespace"]: each["rules"] for each in objects if each["kind"] == "Role"} == wanted
    assert {*wanted} == {"team", "studio"}
    assert not [each for each in objects if each["kind"].startswith("ClusterRole")]
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    flags = command_of("run")
    given = flags.make_context("run", ["paints.py", *container["args"]]).params
    assert (given["namespace"], given["event_api"], given["leader_election_namespace"]) == (
        "team",
        "events.k8s.io/v1",
        "studio",
    )
    assert given["shutdown_timeout"] < pod["terminationGracePeriodSeconds"]


def test_package_contains_crds_of_controllers_and_files(module: Path, tmp_path: Path) -> None:
    crd = of_kind(packaged(), "CustomResourceDefinition")
    assert crd["metadata"]["name"] == "paints.example.com"
    other = {**crd, "metadata": {"name": "frames.example.com"}}
    (tmp_path / "frames.yaml").write_text(json.dumps(other))
    both = [each for each in packaged("--crd", "frames.yaml") if each["kind"] == "CustomResourceDefinition"]
    assert [each["metadata"]["name"] for each in both] == ["paints.example.com", "frames.example.com"]


def test_kind_without_crd_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    decorated = '@dl.controller("example.com/v1/Berry", name="berries")\nasync def berries(request, ctx): ...\n'
    (tmp_path / "berries.py").write_text(f"import deltaloop as dl\n\n{decorated}")
    done = run("package", "berries.py", "--image", "example.com/berries@sha256:1234")
    sys.modules.pop("berries", None)
    assert "the module has no class for example.com/v1/Berry" in done.stderr
    assert "the plural of example.com/v1/Berry is a guess" in done.stderr
    deployment = of_kind([*read_yaml_documents(done.stdout)], "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/berries@sha256:1234"


def chart(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def test_chart_has_objects_of_manifest(module: Path, tmp_path: Path) -> None:
    assert run("package", "paints.py", "--helm", "chart", "--service-monitor").exit_code == 0
    files = chart(tmp_path / "chart")
    kinds = {kind for text in files.values() for kind in re.findall(r"^kind: (\w+)$", text, re.MULTILINE)}
    assert kinds == {each["kind"] for each in packaged("--service-monitor")} - {"Namespace"}
    # Helm gives out what looks like its own as it is.
    assert "{{ no }} colour" not in files["templates/definitions.yaml"]
    [there] = read_yaml_documents(definitions_text(files["templates/definitions.yaml"]))
    [wanted] = [each for each in packaged() if each["kind"] == "CustomResourceDefinition"]
    assert there["spec"] == wanted["spec"]
    assert read_yaml(files["Chart.yaml"])["appVersion"] == "0.1.0"


def test_name_of_a_controller_does_not_name_the_objects(module: Path) -> None:
    before = packaged()
    importlib.invalidate_caches()
    sys.modules.pop(module.stem, None)
    module.write_text(MODULE.replace('name="paints"', 'name="painting"'))
    after = packaged()
    assert [each["metadata"]["name"] for each in after] == [each["metadata"]["name"] for each in before]
    assert load_program(module.name)[1][0].name == "painting"


def test_network_policy_admits_only_the_peers_of_the_values() -> None:
    program = PackagedProgram(app="a", name="a", namespace="n", image="i", version="1", authority={})
    peers = [{"namespaceSelector": {"matchLabels": {"team": "metrics"}}}]
    for admitted, wanted in ((None, None), (peers, peers)):
        ingress = network_policy(replace(program, admitted=admitted, authority={"kind": "Secret"}))["spec"]["ingress"]
        assert [rule.get("from") for rule in ingress] == [wanted, None]  # the API server calls webhooks
        assert [port["port"] for rule in ingress for port in rule["ports"]] == ["metrics", "health", "webhooks"]


def test_each_chart_value_is_used_described_and_validated(module: Path, tmp_path: Path) -> None:
    assert run("package", "paints.py", "--helm", "chart", "--image", "example.com/paints:7").exit_code == 0
    files = chart(tmp_path / "chart")
    templates = "".join(text for path, text in files.items() if path.startswith("templates/"))
    used = {*re.findall(r"\.Values\.([\w.]+)", templates)}
    schema = json.loads(files["values.schema.json"])
    allowed = dict[str, Any]()
    for name, value in schema["properties"].items():
        allowed |= {f"{name}.{inner}": each for inner, each in value.get("properties", {}).items()} or {name: value}
        assert name == "global" or "default" in value or all("default" in each for each in value["properties"].values())
    del allowed["global"]
    assert used == {*allowed}
    assert all(each["description"] for each in allowed.values())
    values = read_yaml(files["values.yaml"])
    for path in allowed:
        default: Any = values
        for step in path.split("."):
            default = default[step]
        assert f"| `{path}` | `{json.dumps(default)}` |" in files["README.md"]
    assert values["image"] == {"repository": "example.com/paints", "tag": "7", "pullPolicy": "IfNotPresent"}
    assert not schema["additionalProperties"]


def test_chart_leaves_replicas_to_an_autoscaler_if_the_value_is_null(module: Path, tmp_path: Path) -> None:
    command = ("package", "paints.py", "--helm", "chart", "--shards")
    assert run(*command).exit_code == 0
    values = tmp_path / "chart" / "values.yaml"
    values.write_text(values.read_text().replace("replicas: 2", "replicas: null"))
    assert run(*command, "--check").exit_code == 0
    files = chart(tmp_path / "chart")
    lines = [line.strip() for line in files["templates/deployment.yaml"].splitlines()]
    assert any("--shards" in line for line in lines)
    assert not any("--leader-elect" in line.split() for line in lines)
    place = lines.index("replicas: {{ .Values.replicas }}")
    assert lines[place - 1 : place + 2 : 2] == ['{{- if not (kindIs "invalid" .Values.replicas) }}', "{{- end }}"]


SETTINGS = """
@dl.settings(prefix="PAINT_")
class Settings(msgspec.Struct):
    \"\"\"Settings.

    Attributes:
        bucket: Bucket | of pictures.
    \"\"\"

    bucket: str
    coats: Annotated[int, msgspec.Meta(ge=1)] = 2
    note: str | None = None
"""


def test_settings_are_chart_values(module: Path, tmp_path: Path) -> None:
    module.write_text(MODULE + SETTINGS)
    done = run("package", "paints.py", "--helm", "chart")
    assert done.exit_code == 0, done.output
    assert "PAINT_BUCKET" in done.stderr
    files = chart(tmp_path / "chart")
    settings = json.loads(files["values.schema.json"])["properties"]["settings"]
    assert settings["required"] == ["bucket"]
    assert settings["properties"]["coats"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert read_yaml(files["values.yaml"])["settings"] == {"bucket": None, "coats": 2, "note": None}
    line = 'include "paints.variable" (dict "name" "PAINT_COATS" "value" .Values.settings.coats)'
    assert line in files["templates/deployment.yaml"]
    assert "| Bucket \\| of pictures." in files["README.md"]


def test_edited_chart_values_are_preserved_and_checked(module: Path, tmp_path: Path) -> None:
    command = ("package", "paints.py", "--helm", "chart")
    assert run(*command).exit_code == 0
    values = tmp_path / "chart" / "values.yaml"
    own = values.read_text().replace("replicas: 2", "# three zones\nreplicas: 3")
    own = own.replace("env: []", "env:\n  - name: A\n    value: b").replace(
        "affinity: {}", "affinity: {podAffinity: {}}"
    )
    values.write_text(own)
    assert run(*command, "--check").exit_code == 0
    other = (*command, "--image", "example.com/paints:7")
    assert run(*other, "--check").exit_code == 1
    assert run(*other).exit_code == 0
    kept = read_yaml(values.read_text())
    assert (kept["replicas"], kept["env"], kept["image"]["tag"]) == (3, [{"name": "A", "value": "b"}], "7")
    assert run(*other, "--check").exit_code == 0
    for wrong in ("replicas: -1", "replicas: many", "env: {}", "networkPolicy: {from: x}", "podLabels: {a: 1}"):
        values.write_text(f"{own}\n{wrong}\n" if wrong.partition(":")[0] not in own else wrong)
        failed = run(*command, "--check")
        assert isinstance(failed.exception, InvalidArgumentError), wrong


@pytest.mark.parametrize("where", [("--helm", "chart"), ("--output", "deploy.yaml")])
def test_package_check_reports_differences_and_breaking_changes(module: Path, where: tuple[str, str]) -> None:
    command = ("package", "paints.py", *where)
    missing = run(*command, "--check")
    assert missing.exit_code == 1
    assert "does not exist" in missing.stderr
    assert run(*command).exit_code == 0
    assert (same := run(*command, "--check")).exit_code == 0
    assert not same.output
    module.write_text(
        MODULE.replace("max_length=20", "max_length=10").replace("children=[", "reads=[dl.kinds.SECRET], children=[")
    )
    other = run(*command, "--check")
    assert other.exit_code == 1
    lines = [line.strip() for line in other.stderr.splitlines()]
    assert (
        "paints.example.com: the change breaks stored objects: v1: spec.colour: range narrowed: maxLength was 20, is 10"
        in lines
    )
    assert "+      - secrets" in lines
    assert any(re.fullmatch(r"-\s+maxLength: 20", line) for line in lines)
    assert run(*command).exit_code == 0
    assert run(*command, "--check").exit_code == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--version new", "--version .* got 'new'"),
        ("--version 1.2", "--version .* got '1.2'"),
        ("--name 7up", "--name .*'7up'"),
        ("--install-namespace A", "--install-namespace .* got 'A'"),
        ("--helm chart --image a@sha256:1", "must not have a digest"),
        ("--image {{a}}", "--image must be the name of an image"),
        ("--crd missing.yaml", "missing.yaml cannot be read"),
        ("--crd paints.py", "paints.py is not valid YAML"),
        ("--crd empty.yaml", "CustomResourceDefinitions, got empty.yaml"),
    ],
)
def test_invalid_package_arguments_are_rejected(module: Path, flags: str, words: str) -> None:
    module.with_name("empty.yaml").touch()
    done = run("package", "paints.py", *shlex.split(flags))
    assert isinstance(done.exception, InvalidArgumentError), done.output
    assert re.search(words, str(done.exception))


@pytest.mark.parametrize("flags", ["--check", "--helm a -o b", "--helm a --install-namespace b"])
def test_conflicting_flags_are_rejected(module: Path, flags: str) -> None:
    assert run("package", "paints.py", *shlex.split(flags)).exit_code == 2


def test_image_is_split_at_tag() -> None:
    split = {
        "a": ("a", ""),
        "a:1": ("a", "1"),
        "example.com:5000/a": ("example.com:5000/a", ""),
        "example.com:5000/a:1": ("example.com:5000/a", "1"),
    }
    assert {image: split_image(image) for image in split} == split


WEBHOOKS = """

@dl.validate(Paint)
def check(paint):
    if paint.spec.colour == "mud":
        yield dl.FieldError("spec.colour", "no mud")

@dl.custom_resource(group="example.com", version="v2", storage=True, kind="Paint")
class NewPaint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec
    status: dict[str, int] | None = None

@dl.convert(Paint, NewPaint)
def newer(paint):
    return NewPaint(metadata=paint.metadata, spec=paint.spec, status=paint.status)

@dl.convert(NewPaint, Paint)
def older(paint):
    return Paint(metadata=paint.metadata, spec=paint.spec, status=paint.status)
"""


def test_package_contains_webhook_configurations(module: Path) -> None:
    module.write_text(MODULE + WEBHOOKS)
    objects = packaged("--install-namespace", "studio")
    kinds = [each["kind"] for each in objects]
    assert kinds.index("Secret") < kinds.index("Deployment") < kinds.index("ValidatingWebhookConfiguration")
    assert "data" not in of_kind(objects, "Secret")  # applied again, it leaves what is in it
    [hook] = of_kind(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert hook["clientConfig"]["service"] == {
        "namespace": "studio",
        "name": "paints",
        "path": "/validate/check.paints.example.com",
        "port": 443,
    }
    conversion = of_kind(objects, "CustomResourceDefinition")["spec"]["conversion"]
    assert (conversion["strategy"], conversion["webhook"]["clientConfig"]["service"]["name"]) == ("Webhook", "paints")
    ports = {port["name"]: port["port"] for port in of_kind(objects, "Service")["spec"]["ports"]}
    assert ports == {"metrics": 8080, "webhooks": 443}
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert {"name": "webhooks", "containerPort": 9443} in container["ports"]
    assert {"ports": [{"port": "webhooks", "protocol": "TCP"}]} in of_kind(objects, "NetworkPolicy")["spec"]["ingress"]
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert of_kind(objects, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 45
    flags = command_of("run")
    given = flags.make_context("run", ["paints.py", *container["args"]]).params
    assert (given["webhook_service"], given["webhook_bind_address"]) == ("paints", ":9443")
    assert not given["webhook_name"]  # the module has that name already
    [other] = of_kind(packaged("--name", "others"), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--webhook-name=others" in other["args"]
    named = {
        (rule["resources"][0], *rule["resourceNames"]): rule["verbs"][-1]
        for each in objects
        if each["kind"] in ("Role", "ClusterRole")
        for rule in each["rules"]
        if "resourceNames" in rule
    }
    assert named == {
        ("secrets", "paints-webhooks"): "update",
        ("validatingwebhookconfigurations", "paints"): "patch",
        ("customresourcedefinitions", "paints.example.com"): "patch",
    }


@pytest.fixture
def converting(module: Path) -> Path:
    module.write_text(MODULE + WEBHOOKS)
    return module


@pytest.mark.real_time
async def test_packaged_program_manages_certificates_and_serves_webhooks(converting: Path, tmp_path: Path) -> None:
    objects = packaged("--install-namespace", "studio")
    [container] = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    port = free_port()
    options = ServerOptions(
        authorization_mode="RBAC",
        controllers=frozenset({"gc", "namespace"}),
        webhook_services={"studio/paints": f"127.0.0.1:{port}"},
    )
    async with api_server(options) as server, dl.connect(kubeconfig=server.kubeconfig()) as admin:
        for each in objects:
            await admin.create(f"{each['apiVersion']}/{each['kind']}", each)
        asked: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await admin.create_subresource("v1/ServiceAccount", "paints", "token", asked, namespace="studio")
        config = server.kubeconfig(token=SecretText(answer["status"]["token"]))
        config["contexts"][0]["context"]["namespace"] = "studio"
        (tmp_path / "config").write_text(write_yaml([config]))
        (tmp_path / "config").chmod(0o600)
        given = command_of("run").make_context("run", [converting.name, *container["args"]])
        here: dict[str, Any] = {
            "kubeconfig": tmp_path / "config",
            "webhook_bind_address": f"127.0.0.1:{port}",
            "health_probe_bind_address": "0",
            "metrics_bind_address": "0",
        }
        flags = {
            name: each
            for name, each in given.params.items()
            if name not in ("target", "log_format", "log_level", "reload")
        }
        flags["event_api"] = EventApi(flags["event_api"])
        running = asyncio.create_task(program(converting.name, {**flags, **here}))

        async def is_painted() -> bool:
            try:
                await admin.apply("example.com/v1/Paint", {"metadata": {"name": "a"}, "spec": {}}, namespace="default")
            except dl.ApiError:
                assert not running.done(), running.result()
                return False
            found = await admin.get("example.com/v2/Paint", "a", namespace="default")
            return bool(found.get("status", {}).get("coats") == 1)

        try:
            await eventually(is_painted, every=0.02)
            with pytest.raises(InvalidError, match="no mud"):
                await admin.patch("example.com/v1/Paint", "a", {"spec": {"colour": "mud"}}, namespace="default")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_package_of_webhooks_only_has_own_role(module: Path) -> None:
    head, _, _ = MODULE.partition("@dl.controller")
    module.write_text(head + WEBHOOKS)
    objects = packaged("--install-namespace", "studio")
    assert {each["metadata"]["name"] for each in objects if each["kind"] in ("Deployment", "Service")} == {"paints"}
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"] == [
        "paints.example.com"
    ]
    printed = run("generate", "rbac", "paints.py", "--leader-elect", "--leader-election-namespace", "studio",
                  "--webhooks-namespace", "studio")  # fmt: skip
    wanted = [rule for each in read_yaml_documents(printed.stdout) for rule in each["rules"]]
    assert [rule for each in objects if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]] == wanted
    # There is no kind that it watches, and nothing of its kind's that it writes.
    assert not [rule for rule in wanted if rule["resources"][0].startswith("paints")]


def test_chart_contains_webhooks(module: Path, tmp_path: Path) -> None:
    module.write_text(MODULE + WEBHOOKS)
    assert run("package", "paints.py", "--helm", "chart").exit_code == 0
    templates = tmp_path / "chart" / "templates"
    hooks = (templates / "webhooks.yaml").read_text()
    assert 'name: {{ include "paints.name" . | quote }}' in hooks
    assert "namespace: {{ .Release.Namespace | quote }}" in hooks
    assert "- {{ .Release.Namespace | quote }}" in hooks  # where it runs nobody asks
    assert "kind: Secret" in (templates / "authority.yaml").read_text()
    assert 'name: {{ include "paints.name" . | quote }}' in (templates / "definitions.yaml").read_text()
