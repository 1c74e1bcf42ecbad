"""Large custom resource definitions as their projects publish them: they install, default, prune and validate.

They come out of published Go modules; nothing of them is kept here. Labels and annotations are left out, since those of
cert-manager are templates.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.serving import CRDS, Caller, serving

from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.api.yaml_reader import read_yaml_documents
from lab.interop.go_client.go_modules import ASKED, GO, run_go

pytestmark = [pytest.mark.slow, pytest.mark.real_time, pytest.mark.timeout(300), ASKED, GO]

GATEWAY = ("sigs.k8s.io/gateway-api@v1.3.0", "config/crd/standard")
CERT_MANAGER = ("github.com/cert-manager/cert-manager@v1.17.0", "deploy/crds")


def crds_of(module: str, folder: str) -> list[dict[str, Any]]:
    fetched = run_go("mod", "download", "-json", module)
    if fetched.returncode != 0:
        pytest.skip(f"real CRDs: {module} cannot be had: {(fetched.stdout + fetched.stderr).strip()[-300:]}")
    found: list[dict[str, Any]] = []
    for file in sorted((Path(json.loads(fetched.stdout)["Dir"]) / folder).glob("*.yaml")):
        for read in read_yaml_documents(file.read_bytes(), source=file.name):
            document = mapping(read)
            if document.get("kind") == "CustomResourceDefinition":
                metadata = mapping(document["metadata"])
                annotations = mapping(metadata.get("annotations"))
                kept = {name: value for name, value in annotations.items() if name.startswith("api-approved")}
                found.append({**document, "metadata": {"name": metadata["name"], "annotations": kept}})
    return found


Record = Callable[[str, object], None]


def tell(record: Record, module: str, crds: list[dict[str, Any]]) -> None:
    """Have the run's summary say which CRDs are tried."""
    names = " ".join(crd["metadata"]["name"] for crd in crds)
    size = sum(len(json.dumps(crd)) for crd in crds) // 1024
    record("published CRDs", f"{module}: {len(crds)} CRDs, {size} KiB: {names}")


async def install(call: Caller, crds: list[dict[str, Any]]) -> None:
    for crd in crds:
        made = await call.created(CRDS, crd)
        conditions = {each["type"]: each["status"] for each in made.json["status"]["conditions"]}
        assert conditions["Established"] == "True", crd["metadata"]["name"]
        # What was sent comes back: nothing of a schema is lost or changed but for what is defaulted.
        assert contains(made.json["spec"], crd["spec"])


def contains(whole: object, part: object) -> bool:
    if is_mapping(part):
        return is_mapping(whole) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if items(part):
        return len(items(whole)) == len(items(part)) and all(map(contains, items(whole), items(part)))
    return whole == part


async def test_gateway_api(record_property: Record) -> None:
    crds = crds_of(*GATEWAY)
    tell(record_property, GATEWAY[0], crds)
    assert len(crds) >= 5
    routes = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"
    async with serving() as on:
        await install(on.call, crds)
        route: dict[str, Any] = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "web"},
            "spec": {
                "parentRefs": [{"name": "edge", "nonsense": 1}],
                "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
            },
        }
        made = await on.call.created(routes, route)
        assert made.json["spec"] == {
            "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}],
            "rules": [
                {
                    "backendRefs": [{"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 1}],
                    "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                }
            ],
        }
        assert 'unknown field \\"spec.parentRefs[0].nonsense\\"' in made.headers["Warning"]
        route["metadata"]["name"] = "other"
        route["spec"] = {"hostnames": ["NOT A HOST"], "rules": [{"backendRefs": [{"name": "web", "port": 70_000}]}]}
        refused = (await on.call.post(routes, route)).refuses(422, "Invalid")
        assert "spec.hostnames[0]: Invalid value" in refused
        assert "spec.rules[0].backendRefs[0].port: Invalid value: 70000" in refused
        # The older version serves the same object.
        older = await on.call.get(f"{routes.replace('/v1/', '/v1beta1/')}/web")
        assert (older.json["apiVersion"], older.json["spec"]) == (
            "gateway.networking.k8s.io/v1beta1",
            made.json["spec"],
        )


async def test_cert_manager(record_property: Record) -> None:
    crds = crds_of(*CERT_MANAGER)
    tell(record_property, CERT_MANAGER[0], crds)
    assert len(crds) == 6
    certificates = "/apis/cert-manager.io/v1/namespaces/default/certificates"
    issuers = "/apis/cert-manager.io/v1/namespaces/default/issuers"
    async with serving() as on:
        await install(on.call, crds)
        spec = {"secretName": "tls", "dnsNames": ["example.com"], "issuerRef": {"name": "self"}, "nonsense": {"a": 1}}
        body = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "a"}, "spec": spec}
        made = await on.call.created(certificates, body)
        assert made.json["spec"] == {name: value for name, value in spec.items() if name != "nonsense"}
        body = {**body, "metadata": {"name": "b"}, "spec": {"privateKey": {"algorithm": "ROT13"}}}
        refused = (await on.call.post(certificates, body)).refuses(422, "Invalid")
        for part in ("spec.secretName: Required value", "spec.issuerRef: Required value"):
            assert part in refused
        assert 'spec.privateKey.algorithm: Unsupported value: "ROT13": supported values: "RSA", "ECDSA"' in refused
        # A solver has a whole pod template below it: the deepest of all.
        solver = {"http01": {"ingress": {"podTemplate": {"spec": {"affinity": {"nodeAffinity": {"x": 1}}}}}}}
        acme = {"server": "https://acme", "privateKeySecretRef": {"name": "key"}, "solvers": [solver]}
        issuer = {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": "acme"},
            "spec": {"acme": acme},
        }
        made = await on.call.created(issuers, issuer)
        pod = made.json["spec"]["acme"]["solvers"][0]["http01"]["ingress"]["podTemplate"]["spec"]
        assert pod == {"affinity": {"nodeAffinity": {}}}
