"""CRDs whose versions a webhook of the tests' own converts.

``v1`` has ``spec.size``, a number; ``v1beta1`` has ``spec.length``, a text, and ``v1alpha1`` has ``length`` at its top.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.target import CRDS, Api
from tests.conformance.webhook_server import Review, WebhookServer

Object = dict[str, Any]
_SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
_SCHEMAS: dict[str, Object] = {
    "v1": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "also": {"type": "string"}}}},
    "v1beta1": {"spec": {"type": "object", "properties": {"length": {"type": "string"}, "also": {"type": "string"}}}},
    "v1alpha1": {"length": {"type": "string"}},
}
_STATUS = {"type": "object", "properties": {"size": {"type": "integer"}}}


def version(name: str, **fields: Any) -> Object:
    """Return one of the three versions, as a CRD has it."""
    schema = {"type": "object", "properties": {**copy.deepcopy(_SCHEMAS[name]), "status": _STATUS}}
    subresources: Object = {"status": {}, **({"scale": _SCALE} if name == "v1" else {})}
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema},
        **({"selectableFields": [{"jsonPath": ".spec.length"}]} if name == "v1beta1" else {}),
        "subresources": subresources,
        **fields,
    }


def gadget_crd(
    group: str,
    client: Mapping[str, Any] | None,
    *,
    stored: str = "v1",
    names: Sequence[str] = ("v1", "v1beta1"),
    reviews: Sequence[str] = ("v1",),
) -> Object:
    """Return a CRD of Gadgets, whose versions are converted by a webhook, or by none."""
    conversion: Object = {"strategy": "None"}
    if client is not None:
        conversion = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": dict(client), "conversionReviewVersions": list(reviews)},
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version(name, storage=name == stored) for name in names],
            "conversion": conversion,
        },
    }


def converted(obj: Object, api_version: str) -> Object:
    """Return a Gadget in another version."""
    obj = copy.deepcopy(obj)
    name = obj["apiVersion"].rpartition("/")[2]
    spec = obj.pop("spec", {})
    also = {"also": spec["also"]} if "also" in spec else {}
    length = {"v1": spec.get("size"), "v1beta1": spec.get("length"), "v1alpha1": obj.pop("length", None)}[name]
    wanted = api_version.rpartition("/")[2]
    if wanted == "v1":
        obj["spec"] = {**({"size": int(length)} if length is not None else {}), **also}
    elif wanted == "v1beta1":
        obj["spec"] = {**({"length": str(length)} if length is not None else {}), **also}
    elif length is not None:
        obj["length"] = str(length)
    return {**obj, "apiVersion": api_version}


def answered(review: Review, objects: list[Object] | None = None, **fields: Any) -> Review:
    """Return the review that answers another one: with its objects converted, unless others are given."""
    request = review["request"]
    if objects is None:
        objects = [converted(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects, **fields}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


class Gadgets:
    """A CRD of Gadgets on a server, and its paths."""

    def __init__(self, api: Api, server: WebhookServer, crd: Object) -> None:
        self.api = api
        self.server = server
        self.crd = crd

    def path(self, version: str, name: str = "") -> str:
        group = self.crd["spec"]["group"]
        collection = f"/apis/{group}/{version}/namespaces/{self.api.namespace}/gadgets"
        return f"{collection}/{name}" if name else collection

    def gadget(self, version: str, name: str, length: int = 3, **metadata: Any) -> Object:
        obj: Object = {
            "apiVersion": f"{self.crd['spec']['group']}/v1",
            "kind": "Gadget",
            "metadata": {"name": name, **metadata},
            "spec": {"size": length},
        }
        wanted = f"{self.crd['spec']['group']}/{version}"
        return obj if version == "v1" else converted(obj, wanted)

    async def create(self, version: str, name: str, length: int = 3, **metadata: Any) -> Object:
        answer = await self.api.created(self.path(version), self.gadget(version, name, length, **metadata))
        result: Object = answer.json
        return result

    @property
    def requests(self) -> list[Review]:
        return self.server.requests("/convert")

    async def change(self, change: Callable[[Object], None]) -> None:
        """Change the CRD, and wait until the server does as it says."""
        path = f"{CRDS}/{self.crd['metadata']['name']}"
        crd = (await self.api.get(path)).json
        change(crd["spec"])
        answer = await self.api.put(path, crd)
        assert answer.status == 200, answer.text
        self.crd = answer.json


def with_metadata(obj: Object, api_version: str, **fields: Any) -> Object:
    """Return a Gadget in another version, with other metadata."""
    result = converted(obj, api_version)
    return {**result, "metadata": {**result["metadata"], **fields}}


async def gadgets(
    api: Api,
    server: WebhookServer,
    *,
    crd: Object | None = None,
    strategy_none: bool = False,
    **changes: Any,
) -> Gadgets:
    """Define Gadgets whose webhook is at ``/convert`` of a server, and wait until each version is served."""
    server.on("/convert", answered)
    crd = crd or gadget_crd(api.group(), None if strategy_none else server.client("/convert"), **changes)
    await api.define(crd)
    found = Gadgets(api, server, crd)
    for item in crd["spec"]["versions"]:

        async def listed(path: str = found.path(item["name"])) -> bool:
            return (await api.get(path)).status == 200

        await api.eventually(listed)
    server.asked.clear()
    return found
