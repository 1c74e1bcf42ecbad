"""Every kubectl found on this machine, from the outside, against an embedded server on its own thread and real clock.

At night the oldest and the newest one do all that people do every day, the others a short round; by day the first one
found does a part of it. ``DELTALOOP_KUBECTLS`` (paths
joined by colons) adds some; ``kubectl`` and ``kubectl.1.N`` are looked for on the PATH and beside what they link to.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import subprocess
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver import ApiServer, ServerOptions
from tests.nightly import NIGHTLY, by_day

pytestmark = [pytest.mark.slow]

_NAME = re.compile(r"kubectl(\.1\.\d+)?")
_COMMAND_SECONDS = 20


def _found() -> list[Path]:
    """Find the kubectls by name, on the PATH and beside what a link there leads to; each file once."""
    candidates = [Path(text) for text in os.environ.get("DELTALOOP_KUBECTLS", "").split(os.pathsep) if text]
    folders = [Path(text) for text in os.environ.get("PATH", "").split(os.pathsep) if text]
    folders += [(folder / "kubectl").resolve().parent for folder in folders if (folder / "kubectl").is_file()]
    for folder in dict.fromkeys(folders):
        if folder.is_dir():
            candidates += sorted(file for file in folder.iterdir() if _NAME.fullmatch(file.name))
    unique: dict[Path, Path] = {}
    for path in candidates:
        if os.access(path, os.X_OK):
            unique.setdefault(path.resolve(), path)
    return list(unique.values())


KUBECTLS = _found()


@dataclass(frozen=True)
class Kubectl:
    """One kubectl, pointed at one server."""

    path: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kubeconfig = str(self.home / "kubeconfig")
        return {"HOME": str(self.home), "KUBECONFIG": kubeconfig, "PATH": os.environ.get("PATH", "")}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.path), *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def attempt(self, *arguments: str, manifest: object = None) -> subprocess.CompletedProcess[str]:
        given = None if manifest is None else json.dumps(manifest)
        files = () if manifest is None else ("-f", "-")
        return subprocess.run(
            [str(self.path), *arguments, *files],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )

    def __call__(self, *arguments: str, manifest: object = None) -> str:
        done = self.attempt(*arguments, manifest=manifest)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, manifest: object = None) -> str:
        done = self.attempt(*arguments, manifest=manifest)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} should have failed: {done.stdout}"
        return done.stderr


def _version(path: Path) -> tuple[int, int]:
    done = subprocess.run(
        [str(path), "version", "--client", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=True,
    )
    client = json.loads(done.stdout)["clientVersion"]
    return int(client["major"]), int(re.sub(r"\D", "", client["minor"]))


@pytest.fixture(scope="module")
def versions() -> dict[Path, tuple[int, int]]:
    return {path: _version(path) for path in KUBECTLS} if NIGHTLY else {}


@contextmanager
def _running(options: ServerOptions) -> Generator[dict[str, Any]]:
    """Run a server on a thread of its own; give its kubeconfig."""
    started: Future[tuple[dict[str, Any], asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with ApiServer(options) as server:
            started.set_result((server.kubeconfig(), asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="apiserver", daemon=True)
    thread.start()
    kubeconfig, loop, stop = started.result(timeout=10)
    try:
        yield kubeconfig
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=15)
    assert not thread.is_alive()


@pytest.fixture
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    with _running(ServerOptions(controllers=frozenset({"gc", "namespace"}))) as kubeconfig:
        file = tmp_path / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(kubeconfig))
        yield Kubectl(request.param, tmp_path)


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.samples.example.com"},
    "spec": {
        "group": "samples.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Foo", "plural": "foos", "shortNames": ["fo"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What is wanted.",
                                "properties": {"size": {"type": "integer"}},
                            },
                        },
                    }
                },
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def foo(name: str, size: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "samples.example.com/v1",
        "kind": "Foo",
        "metadata": {"name": name, "labels": labels},
        "spec": {"size": size},
    }


def deployment(replicas: int, *containers: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def cells(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_kubectl_is_installed() -> None:
    if not KUBECTLS:
        pytest.skip("no kubectl on the PATH, and DELTALOOP_KUBECTLS names none")


@pytest.mark.parametrize("kubectl", by_day(KUBECTLS, KUBECTLS[:1]), indirect=True, ids=lambda path: path.name)
def test_kubectl(kubectl: Kubectl, versions: dict[Path, tuple[int, int]]) -> None:
    if not NIGHTLY:
        _custom_resources(kubectl)
        _watch(kubectl)
        return
    mine = versions[kubectl.path]
    first = next(path for path, version in versions.items() if version == mine)
    if first != kubectl.path:
        pytest.skip(f"it is a kubectl 1.{mine[1]}, like {first}")
    _custom_resources(kubectl)
    if mine in (min(versions.values()), max(versions.values())):
        _more_custom_resources(kubectl)
        _discovery(kubectl, explains=mine >= (1, 27))
        _watch(kubectl)
        _labels_and_patches(kubectl)
        _deployments(kubectl)
        _events(kubectl)
        _namespaces(kubectl)
        _mistakes(kubectl)
    if mine >= (1, 32):
        _made_by_kubectl(kubectl)
    if mine >= (1, 33):  # older ones ask for autoscaling/v1, which is not served
        scaled = kubectl("autoscale", "deployment", "made", "--max=3", "--cpu-percent=80")
        assert scaled == "horizontalpodautoscaler.autoscaling/made autoscaled\n"
    _deletion(kubectl)


def _custom_resources(kubectl: Kubectl) -> None:
    assert kubectl("apply", manifest=CRD).strip().endswith("/foos.samples.example.com created")
    assert kubectl("apply", manifest=foo("one", 1, a="b")) == "foo.samples.example.com/one created\n"
    assert kubectl("apply", manifest=foo("one", 2, a="b")) == "foo.samples.example.com/one configured\n"
    header, row = cells(kubectl("get", "foos"))
    assert header == ["NAME", "SIZE", "AGE"]
    assert row[:2] == ["one", "2"]
    assert re.fullmatch(r"\d+s", row[2])


def _more_custom_resources(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Established", "--timeout=10s", "crd/foos.samples.example.com")
    assert kubectl("apply", manifest=foo("one", 2, a="b")) == "foo.samples.example.com/one unchanged\n"
    stored = read_yaml(kubectl("get", "foo", "one", "-o", "yaml"))
    assert (stored["kind"], stored["spec"], stored["metadata"]["generation"]) == ("Foo", {"size": 2}, 2)


def _discovery(kubectl: Kubectl, *, explains: bool) -> None:
    assert cells(kubectl("get", "fo", "-A"))[1][:3] == ["default", "one", "2"]
    assert "foo.samples.example.com/one" in kubectl("get", "all", "-o", "name")
    resources = {line[0]: line for line in cells(kubectl("api-resources", "--no-headers"))}
    assert resources["foos"][1:] == ["fo", "samples.example.com/v1", "true", "Foo"]
    assert resources["deployments"][1:] == ["deploy", "apps/v1", "true", "Deployment"]
    assert {"v1", "apps/v1", "samples.example.com/v1"} <= set(kubectl("api-versions").split())
    assert kubectl("get", "--raw", "/readyz") == "ok"
    if explains:
        assert "What is wanted." in kubectl("explain", "foo.spec")


def _watch(kubectl: Kubectl) -> None:
    process = kubectl.start("get", "foos", "-w", "--no-headers")
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)

    reader = threading.Thread(target=read, name="watch-reader", daemon=True)
    reader.start()
    try:
        assert lines.get(timeout=_COMMAND_SECONDS).split()[:2] == ["one", "2"]
        kubectl("patch", "foo", "one", "--type=merge", "-p", '{"spec":{"size":3}}')
        assert lines.get(timeout=_COMMAND_SECONDS).split()[:2] == ["one", "3"]
        kubectl("apply", manifest=foo("two", 7))
        assert lines.get(timeout=_COMMAND_SECONDS).split()[:2] == ["two", "7"]
    finally:
        process.terminate()
        process.wait(timeout=5)
        reader.join(timeout=5)
        assert process.stdout is not None
        process.stdout.close()


def _labels_and_patches(kubectl: Kubectl) -> None:
    kubectl("label", "foo", "one", "tier=front")
    kubectl("annotate", "foo", "one", "note=hello")
    assert kubectl("get", "foos", "-l", "tier=front", "-o", "name") == "foo.samples.example.com/one\n"
    assert kubectl("get", "foo", "one", "-o", "jsonpath={.metadata.annotations.note}") == "hello"
    kubectl("patch", "foo", "one", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":9}]')
    assert kubectl("get", "foo", "one", "-o", "jsonpath={.spec.size}") == "9"
    described = kubectl("describe", "foo", "one")
    assert re.search(r"^Name:\s+one$", described, re.MULTILINE)
    assert "tier=front" in described


def _deployments(kubectl: Kubectl) -> None:
    first: dict[str, Any] = {"name": "c", "image": "web:1", "env": [{"name": "A", "value": "1"}]}
    second: dict[str, Any] = {"name": "c", "image": "web:2", "env": [{"name": "B", "value": "2"}]}
    assert kubectl("apply", manifest=deployment(1, first)) == "deployment.apps/web created\n"
    done = kubectl.attempt("apply", manifest=deployment(2, second, {"name": "d", "image": "side:1"}))
    assert (done.stdout, done.stderr) == ("deployment.apps/web configured\n", "")
    containers = json.loads(kubectl("get", "deploy", "web", "-o", "json"))["spec"]["template"]["spec"]["containers"]
    wanted = [second, {"name": "d", "image": "side:1"}]
    assert [{name: item.get(name) for name in had} for item, had in zip(containers, wanted, strict=True)] == wanted
    kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("set", "image", "deployment/web", "d=side:2")
    kubectl("patch", "deployment", "web", "-p", '{"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}')
    header, row = cells(kubectl("get", "deploy", "-o", "wide"))
    assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert (row[:2], row[5:]) == (["web", "0/3"], ["c,d", "web:2,side:2", "app=web"])
    assert re.search(r"^Replicas:\s+3 desired", kubectl("describe", "deploy", "web"), re.MULTILINE)


def _events(kubectl: Kubectl) -> None:
    uid = kubectl("get", "foo", "one", "-o", "jsonpath={.metadata.uid}")
    about = {"apiVersion": "samples.example.com/v1", "kind": "Foo", "name": "one", "namespace": "default", "uid": uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": about,
        "type": "Normal",
        "reason": "Synced",
        "message": "all is well",
        "count": 1,
    }
    kubectl("create", manifest=event)
    header, row = cells(kubectl("get", "events"))
    assert header == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert row[1:] == ["Normal", "Synced", "foo/one", "all", "is", "well"]
    assert "all is well" in kubectl("describe", "foo", "one")


def _namespaces(kubectl: Kubectl) -> None:
    kubectl("apply", manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": "v"}}
    kubectl("-n", "demo", "apply", manifest=settings)
    assert cells(kubectl("-n", "demo", "get", "cm", "settings"))[1][:2] == ["settings", "1"]
    kubectl("delete", "namespace", "demo", "--timeout=15s")
    assert "NotFound" in kubectl.refused("get", "namespace", "demo")


def _made_by_kubectl(kubectl: Kubectl) -> None:
    """Make objects without a manifest: since 1.32 these bodies are protobuf."""
    for made, arguments in (
        ("namespace/made", ("ns", "made")),
        ("configmap/made", ("cm", "made", "--from-literal=a=b", "--from-literal=empty=")),
        ("secret/made", ("secret", "generic", "made", "--from-literal=a=b")),
        ("serviceaccount/made", ("sa", "made")),
        (
            "role.rbac.authorization.k8s.io/made",
            ("role", "made", "--verb=get,list", "--resource=pods,deployments.apps"),
        ),
        (
            "rolebinding.rbac.authorization.k8s.io/made",
            ("rolebinding", "made", "--role=made", "--serviceaccount=default:made"),
        ),
        (
            "clusterrole.rbac.authorization.k8s.io/made",
            ("clusterrole", "made", "--verb=get", "--non-resource-url=/healthz"),
        ),
        (
            "clusterrolebinding.rbac.authorization.k8s.io/made",
            ("clusterrolebinding", "made", "--clusterrole=made", "--user=me"),
        ),
        ("deployment.apps/made", ("deployment", "made", "--image=web:1", "--replicas=2", "--port=80")),
        ("service/made", ("service", "nodeport", "made", "--tcp=80:http", "--node-port=30080")),
        ("job.batch/made", ("job", "made", "--image=web:1", "--", "date", "-u")),
        ("cronjob.batch/made", ("cronjob", "made", "--image=web:1", "--schedule=*/5 * * * *")),
        ("ingress.networking.k8s.io/made", ("ingress", "made", "--rule=example.com/a*=made:80,tls=cert")),
        ("poddisruptionbudget.policy/made", ("pdb", "made", "--selector=app=made", "--min-available=50%")),
        ("priorityclass.scheduling.k8s.io/made", ("priorityclass", "made", "--value=-7")),
        ("resourcequota/made", ("quota", "made", "--hard=cpu=500m,pods=2")),
    ):
        assert kubectl("create", *arguments) == f"{made} created\n"
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"

    def read(kind: str) -> Any:
        return json.loads(kubectl("get", kind, "made", "-o", "json"))

    assert read("cm")["data"] == {"a": "b", "empty": ""}
    assert read("secret")["data"] == {"a": "Yg=="}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    assert read("role")["rules"] == [pods, {**pods, "apiGroups": ["apps"], "resources": ["deployments"]}]
    deployed = read("deploy")["spec"]
    assert (deployed["replicas"], deployed["selector"]) == (2, {"matchLabels": {"app": "made"}})
    container = deployed["template"]["spec"]["containers"][0]
    assert (container["image"], container["ports"]) == ("web:1", [{"containerPort": 80, "protocol": "TCP"}])
    port = {"name": "80-http", "port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": 30080}
    assert read("service")["spec"]["ports"] == [port]
    assert read("job")["spec"]["template"]["spec"]["containers"][0]["command"] == ["date", "-u"]
    assert read("pdb")["spec"]["minAvailable"] == "50%"
    assert read("priorityclass")["value"] == -7
    assert read("quota")["spec"]["hard"] == {"cpu": "500m", "pods": "2"}
    rule = read("ingress")["spec"]["rules"][0]
    backend = {"service": {"name": "made", "port": {"number": 80}}}
    assert rule["http"]["paths"] == [{"backend": backend, "path": "/a", "pathType": "Prefix"}]


def _mistakes(kubectl: Kubectl) -> None:
    assert '(NotFound): foos.samples.example.com "none" not found' in kubectl.refused("get", "foo", "none")
    assert "the server doesn't have a resource type" in kubectl.refused("get", "nonsense")
    wrong = {**CRD, "metadata": {"name": "wrong.samples.example.com"}}
    assert "must be spec.names.plural" in kubectl.refused("create", manifest=wrong)
    refusal = kubectl.refused("patch", "foo", "one", "-p", '{"spec":{"size":1}}')
    assert "the body of the request was in an unknown format - accepted media types include: " in refusal


def _deletion(kubectl: Kubectl) -> None:
    assert kubectl("delete", "foo", "one").startswith('foo.samples.example.com "one" deleted')
    assert "NotFound" in kubectl.refused("get", "foo", "one")
    kubectl("delete", "crd", "foos.samples.example.com")
    assert kubectl.attempt("get", "foos").returncode != 0
