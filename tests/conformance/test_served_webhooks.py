"""Webhooks served by this library: the same functions, asked by either API server, have the same effect.

Source: apiserver pkg/admission/plugin/webhook; apiextensions-apiserver pkg/apiserver/conversion.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import deltaloop as dl
from deltaloop.webhooks import (
    StaticCertificate,
    WebhookAddress,
    WebhookServer,
    WebhookServerOptions,
    WebhookSet,
    registrations,
)
from deltaloop.webhooks.answer import Outcome
from deltaloop.webhooks.declaring import Webhook
from tests.conformance.conversions import gadget_crd
from tests.conformance.target import CRDS, Api, config_map, conformance
from tests.conformance.webhook_server import warnings
from tests.webhooks.serving import credentials

_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_NO_DATA: Mapping[str, str] = {}
LOCAL = WebhookServerOptions(host="127.0.0.1", port=0, stop_timeout=0.0)


class Asked:
    """Hooks that count what was asked at each path."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def in_flight(self, path: str, number: int) -> None:
        pass

    def certificate_valid_until(self, seconds: float) -> None:
        pass

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        self.paths.append(path)


@asynccontextmanager
async def asked_by(api: Api, *webhooks: Webhook) -> AsyncGenerator[Asked]:
    """Serve webhooks and register those of admission, for the case's own namespace; wait until they are asked."""
    authority, context = credentials()
    asked, served = Asked(), WebhookSet(webhooks)
    made: list[str] = []
    async with WebhookServer(served, StaticCertificate(context), options=LOCAL, metrics=asked) as server:
        bundle = base64.b64encode(authority.ca_pem).decode()
        address = WebhookAddress(url=server.url, ca_bundle=bundle)
        try:
            for document in registrations(served, address, name=api.name("served"), own_namespace="kube-system"):
                if document["kind"] not in _PLURALS:
                    continue
                for hook in document["webhooks"]:
                    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [api.namespace]}
                    hook["namespaceSelector"]["matchExpressions"].append(own)
                path = f"{_REGISTRATIONS}{_PLURALS[document['kind']]}"
                await api.created(path, document)
                made.append(f"{path}/{document['metadata']['name']}")
            wanted = {each.path for each in served.admission if "CREATE" in each.operations}

            async def all_asked() -> bool:
                await api.post(f"{api.config_maps}?dryRun=All", config_map("probe", {"probe": "yes"}))
                return wanted <= {*asked.paths}

            if wanted:
                await api.eventually(all_asked)
            asked.paths.clear()
            yield asked
        finally:
            for path in made:
                await api.delete(path)


def data_of(obj: dl.Resource) -> Mapping[str, str]:
    return obj.get("data") or _NO_DATA


@dl.validate("v1/ConfigMap")
def no_bad(obj: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> Iterator[dl.FieldError]:
    data = data_of(obj)
    if data.get("bad"):
        yield dl.FieldError("data.bad", "take it out", "FieldValueForbidden")
    if request.old is not None and len(data_of(request.old)) > len(data):
        request.warn("something is gone")
        request.annotate("gone", "yes")
    if request.user.username == "":
        yield dl.FieldError("", "somebody has to ask")


@dl.mutate("v1/ConfigMap")
def stamp(obj: dict[str, Any], request: dl.AdmissionRequest[dl.Resource]) -> None:
    obj.setdefault("data", {})["by"] = request.operation
    obj["metadata"].setdefault("labels", {})["example.com/stamped"] = "yes"


@dl.validate("v1/ConfigMap", operations=["DELETE"])
def keep(obj: dl.Resource) -> dl.FieldError | None:
    return dl.FieldError("", "it is kept") if data_of(obj).get("keep") else None


@conformance("Served webhooks: findings refuse an object by 422, with a cause for each")
async def test_findings(api: Api) -> None:
    async with asked_by(api, no_bad):
        refused = await api.post(api.config_maps, config_map("a", {"bad": "1"}))
        assert refused.status == 422
        assert refused.json["reason"] == "Invalid"
        assert refused.json["message"] == (
            'admission webhook "no-bad.configmaps.core" denied the request: data.bad: take it out'
        )
        assert refused.json["details"] == {
            "name": "a",
            "kind": "ConfigMap",
            "causes": [{"reason": "FieldValueForbidden", "message": "take it out", "field": "data.bad"}],
        }
        assert (await api.post(api.config_maps, config_map("a", {"good": "1"}))).status == 201


@conformance("Served webhooks: a function sees the object before, and its warnings reach the client")
async def test_warnings(api: Api) -> None:
    async with asked_by(api, no_bad):
        await api.created(api.config_maps, config_map("a", {"one": "1", "two": "2"}))
        answer = await api.put(f"{api.config_maps}/a", config_map("a", {"one": "1"}))
        assert (answer.status, warnings(answer)) == (200, ['299 - "something is gone"'])


@conformance("Served webhooks: what a mutation changes is stored, by the patch that it is")
async def test_mutation(api: Api) -> None:
    async with asked_by(api, stamp, no_bad):
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}, labels={"mine": "yes"}))
        assert created.json["data"] == {"k": "v", "by": "CREATE"}
        assert created.json["metadata"]["labels"] == {"mine": "yes", "example.com/stamped": "yes"}
        merged = await api.patch_with(f"{api.config_maps}/a", "merge-patch+json", {"data": {"k": None}})
        assert merged.json["data"] == {"by": "UPDATE"}
        refused = await api.post(api.config_maps, config_map("b", {"bad": "1"}))
        assert refused.status == 422


@conformance("Served webhooks: a deletion is judged by the object that is there, a dry run as any other request")
async def test_deletion(api: Api) -> None:
    async with asked_by(api, keep) as asked:
        await api.created(api.config_maps, config_map("a", {"keep": "yes"}))

        async def is_asked() -> bool:
            return (await api.delete(f"{api.config_maps}/a?dryRun=All")).status == 403

        await api.eventually(is_asked)
        refused = await api.delete(f"{api.config_maps}/a")
        assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
        assert "it is kept" in refused.json["message"]
        assert {*asked.paths} == {keep.path}


def fails(_: dl.Resource) -> None:
    raise ValueError("hidden")


@conformance(
    "Served webhooks: of a function that fails, the failure policy decides",
    ("Fail", "Fail", 500),
    ("Ignore", "Ignore", 201),
)
async def test_failures(api: Api, policy: Any, status: int) -> None:
    async with asked_by(api, dl.validate("v1/ConfigMap", failure_policy=policy)(fails)):
        answer = await api.post(api.config_maps, config_map("a"))
        assert answer.status == status
        if status == 500:
            assert 'failed calling webhook "fails.configmaps.core"' in answer.json["message"]
            assert "webhook fails.configmaps.core failed: ValueError" in answer.json["message"]
            assert "hidden" not in answer.json["message"]


def conversions(group: str) -> list[Webhook]:
    """Return the conversions of Gadgets, by hub and spokes."""
    kind = dl.ResourceType[Any](group, "v1", "Gadget", "gadgets")

    def from_length(obj: dict[str, Any]) -> None:
        obj.setdefault("spec", {})["size"] = len(obj["spec"].pop("length", ""))
        obj["metadata"].setdefault("annotations", {})["example.com/converted"] = "yes"

    def to_length(obj: dict[str, Any]) -> dict[str, Any]:
        spec = copy.deepcopy(obj.get("spec", {}))
        return {"metadata": obj["metadata"], "spec": {**spec, "length": "x" * spec.pop("size", 0)}}

    made: list[Callable[..., Any]] = [from_length, to_length]
    return [dl.convert(kind, "v1beta1", "v1")(made[0]), dl.convert(kind, "v1", "v1beta1")(made[1])]


@conformance("Served webhooks: objects are shown and stored in other versions by the functions that convert them")
async def test_conversions(api: Api) -> None:
    functions = conversions(api.group())
    authority, context = credentials()
    async with WebhookServer(WebhookSet(functions), StaticCertificate(context), options=LOCAL) as server:
        bundle = base64.b64encode(authority.ca_pem).decode()
        client = WebhookAddress(url=server.url, ca_bundle=bundle).client_config(functions[0].path)
        try:
            gadgets = await api.define(gadget_crd(api.group(), client))
            old = gadgets.replace("/v1/", "/v1beta1/")
            for name, size in (("a", 3), ("b", 1)):
                await api.created(
                    gadgets,
                    {
                        "apiVersion": f"{api.group()}/v1",
                        "kind": "Gadget",
                        "metadata": {"name": name},
                        "spec": {"size": size},
                    },
                )

            async def converted() -> bool:
                return (await api.get(f"{old}/a")).status == 200

            await api.eventually(converted)
            assert (await api.get(f"{old}/a")).json["spec"] == {"length": "xxx"}
            listed = await api.get(old)
            assert [item["spec"]["length"] for item in listed.json["items"]] == ["xxx", "x"]
            made = {"apiVersion": f"{api.group()}/v1beta1", "kind": "Gadget", "metadata": {"name": "c"}}
            await api.created(old, {**made, "spec": {"length": "xxxxx"}})
            stored = (await api.get(f"{gadgets}/c")).json
            assert stored["spec"]["size"] == 5
            assert stored["metadata"]["annotations"]["example.com/converted"] == "yes"
        finally:
            await api.delete(f"{CRDS}/gadgets.{api.group()}")
