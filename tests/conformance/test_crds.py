"""What a CRD is when it is stored, and how discovery has its resources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.target import CRDS, Api, conformance, widget_crd

APPROVED = "api-approved.kubernetes.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def protected(api: Api, approval: str | None) -> dict[str, Any]:
    crd = widget_crd(f"g{api.number}.k8s.io")
    crd["metadata"]["annotations"] = {} if approval is None else {APPROVED: approval}
    return crd


async def approval_of(api: Api, name: str) -> dict[str, Any]:
    """Return the condition about the approval of a CRD, once there is one."""
    found: list[dict[str, Any]] = []

    async def told() -> bool:
        conditions: list[dict[str, Any]] = (await api.get(f"{CRDS}/{name}")).json["status"]["conditions"] or []
        found[:] = [item for item in conditions if item["type"] == "KubernetesAPIApprovalPolicyConformant"]
        return bool(found)

    await api.eventually(told)
    return {name: value for name, value in found[0].items() if name != "lastTransitionTime"}


@pytest.mark.parametrize(
    ("approval", "status", "reason", "message"),
    [
        ("https://github.com/a/b/pull/1", "True", "ApprovedAnnotation", "approved in https://github.com/a/b/pull/1"),
        ("unapproved, a trial", "False", "UnapprovedAnnotation", 'not approved: "unapproved, a trial"'),
    ],
)
@conformance("CRDs: a group of Kubernetes itself needs an approval, which a condition repeats")
async def test_approval(api: Api, approval: str, status: str, reason: str, message: str) -> None:
    crd = protected(api, approval)
    await api.define(crd)
    wanted = {"type": "KubernetesAPIApprovalPolicyConformant", "status": status, "reason": reason, "message": message}
    assert await approval_of(api, crd["metadata"]["name"]) == wanted


@pytest.mark.parametrize("approval", [None, "", "github.com/a/b", "yes"])
@conformance("CRDs: a group of Kubernetes itself needs an approval, and is refused without")
async def test_no_approval(api: Api, approval: str | None) -> None:
    answer = await api.post(CRDS, protected(api, approval))
    assert answer.status == 422
    (cause,) = answer.json["details"]["causes"]
    assert cause["field"] == f"metadata.annotations[{APPROVED}]"
    assert cause["reason"] == ("FieldValueInvalid" if approval else "FieldValueRequired")


@conformance("CRDs: an approval that is changed changes the condition")
async def test_changed_approval(api: Api) -> None:
    crd = protected(api, "unapproved")
    await api.define(crd)
    name = crd["metadata"]["name"]
    assert (await approval_of(api, name))["status"] == "False"
    patch = {"metadata": {"annotations": {APPROVED: "https://a.b/c"}}}
    assert (await api.patch_with(f"{CRDS}/{name}", "merge-patch+json", patch)).status == 200

    async def approved() -> bool:
        return str((await approval_of(api, name))["status"]) == "True"

    await api.eventually(approved)


@conformance("CRDs: what is empty, false or zero is left out")
async def test_empty_fields(api: Api) -> None:
    empty: dict[str, Any] = {
        **dict.fromkeys(("description", "format", "title", "pattern", "id"), ""),
        **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"), False),
        **dict.fromkeys(("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"), False),
        **{name: [] for name in ("enum", "required", "allOf", "anyOf", "oneOf", "x-kubernetes-list-map-keys")},
        **dict.fromkeys(("default", "example"), None),
        "properties": {},
    }
    kept: dict[str, Any] = {"type": "string", "minLength": 0, "maxLength": 0, "minimum": 0, "minItems": 0}
    column = {"name": "c", "type": "string", "jsonPath": ".a"}
    crd = widget_crd(
        api.group(),
        schema={"type": "object", "properties": {"a": {**empty, **kept}}},
        columns=[{**column, "priority": 0, "format": "", "description": ""}, {**column, "name": "d", "priority": 1}],
        deprecated=False,
        selectableFields=[],
    )
    crd["spec"] |= {"preserveUnknownFields": False}
    answer = await api.created(CRDS, crd)
    (version,) = answer.json["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == {"type": "object", "properties": {"a": kept}}
    assert version["additionalPrinterColumns"] == [column, {**column, "name": "d", "priority": 1}]
    assert set(version) == {"name", "served", "storage", "schema", "subresources", "additionalPrinterColumns"}
    assert set(answer.json["spec"]) == {"group", "scope", "names", "versions", "conversion"}


@conformance("Discovery: verbs and subresources of a CRD are in the real server's order")
async def test_discovery(api: Api) -> None:
    await api.widgets()
    verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    resources = (await api.get(f"/apis/{api.group()}/v1")).json["resources"]
    assert [resource["name"] for resource in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert resources[0]["verbs"] == verbs
    answer = await api.call("GET", "/apis", Accept=AGGREGATED)
    (group,) = (item for item in answer.json["items"] if item["metadata"]["name"] == api.group())
    (resource,) = group["versions"][0]["resources"]
    assert [item["subresource"] for item in resource["subresources"]] == ["status", "scale"]
    assert resource["verbs"] == verbs
