"""What a server warns about in objects that it accepts: deprecated, doubled, hidden or ignored fields.

``object_warnings.json`` has the objects, and what a real server said of each.

Source: Kubernetes pkg/registry (``WarningsOnCreate``, ``WarningsOnUpdate``), pkg/api/pod/warnings.go.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, cast

from multidict import CIMultiDict

from deltaloop.api.kubernetes_version import MINOR
from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, conformance, deployment, widget_crd

TEXT = Path(__file__).with_name("object_warnings.json").read_text()
DEPRECATED_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def said(answer: Answer) -> list[str]:
    headers = cast("CIMultiDict[str]", answer.headers).getall("Warning", [])
    return [header.removeprefix('299 - "')[:-1].replace('\\"', '"').replace("\\\\", "\\") for header in headers]


@conformance(
    "warnings: about new objects",
    *((f"{place} {fact['case']}", place) for place, fact in enumerate(json.loads(TEXT))),
    min_version=MINOR,
)
async def test_new_objects(api: Api, place: int) -> None:
    fact: dict[str, Any] = json.loads(TEXT.replace("$NS", api.namespace))[place]
    answer = await api.post(fact["path"], fact["body"])
    assert answer.status == 201, answer.text
    assert said(answer) == fact["warnings"]


def twice(*values: str) -> dict[str, Any]:
    return {"name": "c", "image": "web:1", "env": [{"name": "A", "value": value} for value in values]}


@conformance("warnings: about a changed template only if it has changed, and never about a pod that has")
async def test_changed_objects(api: Api) -> None:
    made = deployment("a")
    made["spec"]["template"]["spec"]["containers"] = [twice("1", "2")]
    place = "spec.template.spec.containers[0].env[1]"
    hidden = f'{place}: hides previous definition of "A", which may be dropped when using apply'
    assert said(await api.post(api.deployments, made)) == [hidden]
    path = f"{api.deployments}/a"
    assert said(await api.patch(path, {"metadata": {"labels": {"x": "y"}}})) == []
    assert said(await api.patch(path, {"spec": {"replicas": 3}})) == [hidden]
    assert said(await api.patch(f"{path}/scale", {"spec": {"replicas": 4}})) == [hidden]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [twice("1", "2")]}}
    assert len(said(await api.post(api.pods, pod))) == 1
    assert said(await api.patch(f"{api.pods}/p", {"metadata": {"labels": {"x": "y"}}})) == []


@conformance("warnings: about a Service with each write, about an Ingress with the first")
async def test_services_and_ingresses(api: Api) -> None:
    services = f"{api.core}/services"
    close = 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    service = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "trafficDistribution": "PreferClose"}}
    assert said(await api.post(services, service)) == [close]
    assert said(await api.patch(f"{services}/a", {"metadata": {"labels": {"x": "y"}}})) == [close]
    assert said(await api.get(f"{services}/a")) == []
    ingresses = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/ingresses"
    annotated = {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}}
    assert len(said(await api.post(ingresses, {"metadata": annotated, "spec": {"rules": [{"host": "a.b"}]}}))) == 1
    assert said(await api.patch(f"{ingresses}/a", {"metadata": {"labels": {"x": "y"}}})) == []


@conformance("warnings: every answer about Endpoints says that they are deprecated")
async def test_deprecated_kinds(api: Api) -> None:
    endpoints = f"{api.core}/endpoints"
    answers = [
        await api.post(endpoints, {"metadata": {"name": "a"}}),
        await api.get(endpoints),
        await api.get(f"{endpoints}/none"),
        await api.delete(f"{endpoints}/a"),
    ]
    assert [answer.status for answer in answers] == [201, 200, 404, 200]
    assert [said(answer) for answer in answers] == [[DEPRECATED_ENDPOINTS]] * 4
    async with api.stream(f"{endpoints}?watch=1&timeoutSeconds=1") as response:
        assert DEPRECATED_ENDPOINTS in response.headers["Warning"]


def files(*paths: str) -> list[dict[str, str]]:
    return [{"key": f"k{place}", "path": path} for place, path in enumerate(paths)]


VOLUMES = [
    {"name": "a", "configMap": {"name": "m", "items": files("x", "x/y", "x", "xy", "z/")}},
    {"name": "b", "secret": {"secretName": "s", "items": files("x/y", "x")}},
    {
        "name": "c",
        "projected": {
            "sources": [
                {"configMap": {"name": "m", "items": files("x", "y/z")}},
                {"secret": {"name": "n", "items": files("y")}},
                {"serviceAccountToken": {"path": "y/z/t"}},
                {"configMap": {"name": "whole"}},
                {"downwardAPI": {"items": [{"path": "x/w", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        },
    },
]
OVERLAPS = [
    'volume "a" (ConfigMap "m"): overlapping paths: "x/y" with "x"',
    'volume "a" (ConfigMap "m"): overlapping paths: "x" with "x"',
    'volume "a" (ConfigMap "m"): overlapping paths: "x" with "x/y"',
    'volume "b" (Secret "s"): overlapping paths: "x" with "x/y"',
    'volume "c" (Projected): overlapping paths: "y" (Secret "n") with "y/z" (ConfigMap "m")',
    'volume "c" (Projected): overlapping paths: "y/z/t" (ServiceAccountToken) with "y/z" (ConfigMap "m")',
    'volume "c" (Projected): overlapping paths: "y/z/t" (ServiceAccountToken) with "y" (Secret "n")',
    'volume "c" (Projected): overlapping paths: "x/w" (DownwardAPI) with "x" (ConfigMap "m")',
]


@conformance("warnings: about files of a volume that hide each other")
async def test_overlapping_paths(api: Api) -> None:
    made = deployment("a")
    made["spec"]["template"]["spec"]["volumes"] = VOLUMES
    assert said(await api.post(api.deployments, made)) == OVERLAPS


ARMOR = "container.apparmor.security.beta.kubernetes.io/c"


@conformance(
    "warnings: about AppArmor annotations, which become fields of a Pod",
    ("unconfined", "unconfined", None, {"type": "Unconfined"}, 1),
    ("the runtime's", "runtime/default", None, {"type": "RuntimeDefault"}, 1),
    ("a local one", "localhost/x", None, {"type": "Localhost", "localhostProfile": "x"}, 1),
    ("as the Pod", "runtime/default", {"type": "RuntimeDefault"}, None, 0),
    ("another than the Pod", "unconfined", {"type": "RuntimeDefault"}, {"type": "Unconfined"}, 1),
)
async def test_app_armor(api: Api, value: str, whole: Any, profile: Any, warned: int) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "web:1"}, {"name": "d", "image": "web:1"}]}
    if whole:
        spec["securityContext"] = {"appArmorProfile": whole}
    metadata = {"name": "a", "annotations": {ARMOR: value}}
    words = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    answer = await api.post(api.pods, {"metadata": metadata, "spec": spec})
    assert said(answer) == [f"metadata.annotations[{ARMOR}]: {words}"] * warned
    contexts = [container.get("securityContext") for container in answer.json["spec"]["containers"]]
    assert contexts == [{"appArmorProfile": profile} if profile else None, None]
    assert "f:appArmorProfile" not in str(
        answer.json["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"]
    )
    if whole and warned:
        return  # a template must not have both
    made = deployment("a")
    made["spec"]["template"]["metadata"]["annotations"] = {ARMOR: value}
    made["spec"]["template"]["spec"].update(spec)
    answer = await api.post(api.deployments, made)
    assert said(answer) == [f"spec.template.metadata.annotations[{ARMOR}]: {words}"] * warned
    assert "securityContext" not in answer.json["spec"]["template"]["spec"]["containers"][0]


MORE: tuple[tuple[str, str, dict[str, Any], list[str]], ...] = (
    (
        "a quota whose requests are above its limits",
        "/api/v1/namespaces/$NS/resourcequotas",
        {"spec": {"hard": {"cpu": "2", "limits.cpu": "1000m", "requests.memory": "2Gi", "limits.memory": "1Gi"}}},
        [
            "ResourceQuota cpu (2) should be less than limits.cpu (1)",
            "ResourceQuota requests.memory (2Gi) should be less than limits.memory (1Gi)",
        ],
    ),
    (
        "networks",
        "/apis/networking.k8s.io/v1/namespaces/$NS/networkpolicies",
        {"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "2001:DB8::/64"}}]}]}},
        [
            (
                'spec.egress[0].to[0].ipBlock.cidr: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical '
                'format ("2001:db8::/64")'
            )
        ],
    ),
    (
        "addresses of Endpoints",
        "/api/v1/namespaces/$NS/endpoints",
        {"subsets": [{"addresses": [{"ip": "2001:DB8::1"}], "ports": [{"port": 80}]}]},
        [
            DEPRECATED_ENDPOINTS,
            (
                'subsets[0].addresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
                '("2001:db8::1")'
            ),
        ],
    ),
    (
        "deprecated labels of a storage capacity",
        "/apis/storage.k8s.io/v1/namespaces/$NS/csistoragecapacities",
        {"storageClassName": "c", "nodeTopology": {"matchLabels": {"beta.kubernetes.io/os": "linux"}}},
        ['nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead'],
    ),
)


@conformance("warnings: more about new objects", *MORE, min_version=MINOR)
async def test_more_new_objects(api: Api, path: str, body: dict[str, Any], warnings: list[str]) -> None:
    answer = await api.post(path.replace("$NS", api.namespace), {"metadata": {"name": "a"}, **body})
    assert answer.status == 201, answer.text
    assert said(answer) == warnings


@conformance("warnings: about rules of a webhook for kinds that no webhook sees", min_version=MINOR)
async def test_rules_without_effect(api: Api) -> None:
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["subjectaccessreviews"]}
        for group in ("*", "authorization.k8s.io", "example.com")
    ]
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"no": "namespace"}},
        "rules": rules,
    }
    for kind in ("validating", "mutating"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        answer = await api.post(path, {"metadata": {"name": api.name("w")}, "webhooks": [hook]})
        name = "subjectaccessreviews.authorization.k8s.io"
        assert said(answer) == [
            f"webhooks[0].rules[1]: {name} is excluded from admission webhooks; this rule will have no effect"
        ]
        await api.delete(f"{path}/{api.name('w')}")


@conformance("warnings: about a CRD that comes to have an unknown format, or a set of objects, once")
async def test_changed_definitions(api: Api) -> None:
    crd = copy.deepcopy(widget_crd(api.group()))
    await api.define(crd)
    path = f"{CRDS}/{crd['metadata']['name']}"
    text = {"type": "string", "format": "unheard"}
    items = {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-map-type": "atomic"}
    many = {"type": "array", "x-kubernetes-list-type": "set", "items": items}
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {**spec["properties"], "odd": text, "many": many}
    warnings = [
        'unrecognized format "unheard"',
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL '
            "validation rules"
        ),
    ]
    assert said(await api.patch(path, {"spec": crd["spec"]})) == warnings
    assert said(await api.patch(path, {"metadata": {"labels": {"x": "y"}}})) == []


@conformance("warnings: about addresses in a status")
async def test_addresses_in_a_status(api: Api) -> None:
    found = 'IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'
    ingresses = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/ingresses"
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "2001:DB8::1"}]}}}
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    await api.created(ingresses, {"metadata": {"name": "a"}, "spec": {"defaultBackend": backend}})
    assert said(await api.patch(f"{ingresses}/a/status", status)) == [f"status.loadBalancer.ingress[0]: {found}"]
    services = f"{api.core}/services"
    await api.created(services, {"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
    assert said(await api.patch(f"{services}/a/status", status)) == [f"status.loadBalancer.ingress[0]: {found}"]


@conformance("warnings: a DaemonSet warns if its template changes, a StatefulSet names its claims otherwise then")
async def test_changed_sets(api: Api) -> None:
    root = f"/apis/apps/v1/namespaces/{api.namespace}"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [twice("1", "2")]}}
    spec: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    place = "spec.template.spec.containers[0].env[1]"
    hidden = [f'{place}: hides previous definition of "A", which may be dropped when using apply']
    await api.created(f"{root}/daemonsets", {"metadata": {"name": "a"}, "spec": spec})
    assert said(await api.patch(f"{root}/daemonsets/a", {"spec": {"minReadySeconds": 5}})) == []
    label = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}
    assert said(await api.patch(f"{root}/daemonsets/a", label)) == hidden
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5"}}}
    spec["volumeClaimTemplates"] = [{"metadata": {"name": "v"}, "spec": claim}]
    words = 'resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    answer = await api.post(f"{root}/statefulsets", {"metadata": {"name": "a"}, "spec": spec})
    assert said(answer) == [*hidden, f"spec.volumeClaimTemplates[0].{words}"]
    answer = await api.patch(f"{root}/statefulsets/a", {"metadata": {"labels": {"c": "d"}}})
    assert said(answer) == [f"spec.volumeClaimTemplates[0].Spec.{words}"]
