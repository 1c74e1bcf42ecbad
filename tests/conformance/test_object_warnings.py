"""What a server warns about in objects that it accepts: deprecated, doubled, hidden or ignored fields.

``object_warnings.json`` has the objects, and what a real server said of each.

Source: Kubernetes pkg/registry (``WarningsOnCreate``, ``WarningsOnUpdate``), pkg/api/pod/warnings.go.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from multidict import CIMultiDict

from deltaloop.api.kubernetes_version import MINOR
from tests.apiserver.serving import Answer
from tests.conformance.target import Api, conformance, deployment

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
