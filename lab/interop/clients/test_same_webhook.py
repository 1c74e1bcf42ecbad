"""The same webhook in kopf, controller-runtime and deltaloop: all three return the same responses.

The programs are in `same_webhook.md`, and run as they are against an embedded server that calls them. kopf's runs with
``make -C lab test-clients``, the one of Go with ``make -C lab test-go``, and ours with both; what is missing is skipped
by name.
"""

from __future__ import annotations

import base64
import importlib.util
import re
import runpy
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

import deltaloop as dl
from deltaloop.testing import eventually
from deltaloop.webhooks import (
    AdmissionWebhook,
    ConversionFunction,
    StaticCertificate,
    WebhookAddress,
    WebhookServer,
    WebhookServerOptions,
    WebhookSet,
    registrations,
)
from deltaloop.webhooks.registering import register
from lab.interop.clients.serving import running
from lab.interop.clients.test_coming_from import CLIENTS, CONTROLLER_RUNTIME, go, started, write_program
from lab.interop.go_client.go_modules import ASKED, GO

pytestmark = [pytest.mark.slow, pytest.mark.real_time, pytest.mark.timeout(900)]
PAGE = "lab/interop/clients/same_webhook.md"
DATABASE = dl.ResourceType[dl.Resource]("example.com", "v1", "Database", "databases")
OLD = dl.ResourceType[dl.Resource]("example.com", "v1beta1", "Database", "databases")
CRD = dl.kinds.CUSTOM_RESOURCE_DEFINITION
MUTATING, VALIDATING = dl.kinds.MUTATING_WEBHOOK_CONFIGURATION, dl.kinds.VALIDATING_WEBHOOK_CONFIGURATION
MARKER = re.compile(r"// \+kubebuilder:webhook:(.*)")


@dataclass(frozen=True)
class Answer:
    """What became of a request.

    Attributes:
        code: 0 if it was allowed.
        spec: What is stored.
        says: Whether the refusal says what is wrong, and where.
        causes: Fields that the refusal's causes name; kopf's has none, and says it in its text.
    """

    code: int
    spec: dict[str, Any] | None = None
    says: bool = False
    causes: tuple[str, ...] = ()


REFUSED = Answer(422, says=True, causes=("spec.replicas",))
EXPECTED: dict[str, Answer] = {
    "create, without an image": Answer(0, {"replicas": 3, "image": "postgres:18"}),
    "create, with an image": Answer(0, {"replicas": 1, "image": "postgres:17"}),
    "create, with an even number": REFUSED,
    "update to an odd number": Answer(0, {"replicas": 5, "image": "postgres:18"}),
    "update to an even number": REFUSED,
    "update without its image": Answer(0, {"replicas": 5, "image": "postgres:18"}),
    "delete": Answer(0),
}
CONVERTED: dict[str, Answer] = {
    "read by the old version": Answer(0, {"servers": 1, "image": "postgres:17"}),
    "create by the old version": Answer(0, {"servers": 3, "image": "postgres:18"}),
    "create by the old version, with an even number": REFUSED,
    "read what was created so": Answer(0, {"replicas": 3, "image": "postgres:18"}),
}


def definition() -> dict[str, Any]:
    def version(name: str, number: str) -> dict[str, Any]:
        fields = {number: {"type": "integer"}, "image": {"type": "string"}}
        spec = {"type": "object", "properties": fields}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": schema}

    names = {"kind": "Database", "plural": "databases"}
    versions = [version("v1", "replicas"), version("v1beta1", "servers")]
    spec: dict[str, Any] = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "databases.example.com"}, "spec": spec}


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


async def answer_of(call: Any) -> Answer:
    try:
        made = await call
    except dl.ApiError as error:
        details = error.status.details
        causes = () if details is None else tuple(each.field for each in details.causes)
        says = all(each in str(error) for each in ("spec.replicas", "an odd number is needed"))
        return Answer(error.status.code, None, says, causes)
    return Answer(0, None if made is None else dict(made.to_dict()["spec"]))


async def answers(client: dl.Client, *, converts: bool) -> dict[str, Answer]:
    """Make the requests, and return what became of each."""
    found = {
        "create, without an image": await answer_of(client.create(DATABASE, named("a", replicas=3))),
        "create, with an image": await answer_of(client.create(DATABASE, named("b", replicas=1, image="postgres:17"))),
        "create, with an even number": await answer_of(client.create(DATABASE, named("c", replicas=2))),
        "update to an odd number": await answer_of(client.patch(DATABASE, "a", {"spec": {"replicas": 5}})),
        "update to an even number": await answer_of(client.patch(DATABASE, "a", {"spec": {"replicas": 4}})),
        "update without its image": await answer_of(client.patch(DATABASE, "a", {"spec": {"image": None}})),
    }
    if converts:
        found |= {
            "read by the old version": await answer_of(client.get(OLD, "b")),
            "create by the old version": await answer_of(client.create(OLD, named("d", servers=3))),
            "create by the old version, with an even number": await answer_of(
                client.create(OLD, named("e", servers=2))
            ),
            "read what was created so": await answer_of(client.get(DATABASE, "d")),
        }
    await client.delete(DATABASE, "a")
    gone = await client.find(DATABASE, "a") is None
    return {**found, "delete": Answer(0 if gone else 1)}


def certificate(folder: Path) -> str:
    """Write a certificate of this machine and its key to the files that the programs read; return its authority."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    made.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    made.private_key_pem.write_to_path(str(folder / "tls.key"))
    return base64.b64encode(authority.cert_pem.bytes()).decode()


def on_free_port(program: Path) -> int:
    """Have a program listen where nobody else does; on the page it is 9443."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    text = program.read_text()
    assert text.count("9443") == 1
    program.write_text(text.replace("9443", str(port)))
    return port


Program = Callable[[Path, dl.Client], AbstractAsyncContextManager[object]]
"""Runs while it is entered; it is given the kubeconfig, and a client."""


async def ask(folder: Path, program: Program, *, converts: bool) -> dict[str, Answer]:
    """Run a program on a server of its own, and ask what the page is about."""
    with running(folder) as kubeconfig:
        async with dl.connect(kubeconfig=kubeconfig, namespace="default") as client:
            await client.create(CRD, definition())
            await client.wait_for(CRD, "databases.example.com", dl.wait.established())

            async def asked() -> bool:
                try:
                    made = await client.create(
                        DATABASE, named("probe", replicas=1), options=dl.WriteOptions(dry_run=True)
                    )
                except dl.ApiError:
                    return False
                return "image" in made.to_dict()["spec"]

            async with program(kubeconfig, client):
                await eventually(asked, within=60, every=0.5)
                return await answers(client, converts=converts)


def kubebuilder_documents(code: str, port: int, authority: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return what the markers in a program register, by URL."""
    found: list[tuple[Any, dict[str, Any]]] = []
    for line in MARKER.findall(code):
        said = dict(part.split("=", 1) for part in line.split(","))
        rule = {
            "apiGroups": [said["groups"]],
            "apiVersions": [said["versions"]],
            "resources": [said["resources"]],
            "operations": said["verbs"].upper().split(";"),
        }
        hook = {
            "name": said["name"],
            "clientConfig": {"url": f"https://127.0.0.1:{port}{said['path']}", "caBundle": authority},
            "rules": [rule],
            "failurePolicy": said["failurePolicy"].capitalize(),
            "sideEffects": said["sideEffects"],
            "admissionReviewVersions": [said["admissionReviewVersions"]],
        }
        kind = MUTATING if said["mutating"] == "true" else VALIDATING
        found.append((kind, {"metadata": {"name": said["name"]}, "webhooks": [hook]}))
    return found


@CLIENTS
async def test_kopf(tmp_path: Path) -> None:
    if importlib.util.find_spec("kopf") is None:
        pytest.skip("kopf is not installed")
    file = write_program(PAGE, "kopf_webhooks.py", tmp_path)
    certificate(tmp_path)
    on_free_port(file)

    @asynccontextmanager
    async def program(kubeconfig: Path, client: dl.Client) -> AsyncGenerator[None]:
        async def registered() -> bool:
            return bool([*await client.list(MUTATING)] and [*await client.list(VALIDATING)])

        async with started(
            [sys.executable, "-m", "kopf", "run", "-A", "--standalone", str(file)], kubeconfig, tmp_path
        ):
            await eventually(registered, within=60)
            yield

    in_its_words = {name: Answer(each.code, each.spec, each.says) for name, each in EXPECTED.items()}
    assert await ask(tmp_path, program, converts=False) == in_its_words


@ASKED
@GO
async def test_controller_runtime(tmp_path: Path) -> None:
    file = write_program(PAGE, "main.go", tmp_path)
    authority, port = certificate(tmp_path), on_free_port(file)
    for words in (["mod", "init", "databases"], ["get", f"sigs.k8s.io/controller-runtime@{CONTROLLER_RUNTIME}"]):
        done = go(words, tmp_path)
        if done.returncode != 0:
            pytest.skip(f"controller-runtime cannot be had: {done.stderr.strip()[-300:]}")
    for words in (["mod", "tidy"], ["vet", "."], ["build", "-o", "databases", "."]):
        done = go(words, tmp_path)
        assert done.returncode == 0, done.stderr

    @asynccontextmanager
    async def program(kubeconfig: Path, client: dl.Client) -> AsyncGenerator[None]:
        async with started([str(tmp_path / "databases")], kubeconfig, tmp_path):
            for kind, made in kubebuilder_documents(file.read_text(), port, authority):
                await client.create(kind, made)
            where = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": authority}
            webhook = {"clientConfig": where, "conversionReviewVersions": ["v1"]}
            conversion = {"strategy": "Webhook", "webhook": webhook}
            await client.patch(CRD, "databases.example.com", {"spec": {"conversion": conversion}})
            yield

    assert await ask(tmp_path, program, converts=True) == EXPECTED | CONVERTED


async def test_deltaloop(tmp_path: Path) -> None:
    file = write_program(PAGE, "webhooks.py", tmp_path)
    names = runpy.run_path(str(file))
    webhooks = WebhookSet(each for each in names.values() if isinstance(each, AdmissionWebhook | ConversionFunction))
    authority = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    @asynccontextmanager
    async def program(kubeconfig: Path, client: dl.Client) -> AsyncGenerator[None]:
        listen = WebhookServerOptions(host="127.0.0.1", port=0)
        async with WebhookServer(webhooks, StaticCertificate(context), options=listen) as server:
            address = WebhookAddress(url=server.url, ca_bundle=authority)
            await register(client, registrations(webhooks, address, name="databases"))
            yield

    assert await ask(tmp_path, program, converts=True) == EXPECTED | CONVERTED
