"""The status of validating admission policies, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.serving import Caller, serving, widget_crd

CHECKED = frozenset({"policy-status"})
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def policy(name: str, source: str, group: str = "", resource: str = "configmaps") -> dict[str, Any]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": source}]}
    return {"metadata": {"name": name}, "spec": spec}


async def status(call: Caller, name: str) -> Any:
    await asyncio.sleep(0.01)
    return (await call.get(f"{POLICIES}/{name}")).json.get("status")


async def test_policy_is_type_checked_once_per_generation() -> None:
    async with serving(controllers=CHECKED) as on:
        await on.call.created(POLICIES, policy("p", "object.data['a'] == 'b'"))
        assert await status(on.call, "p") == {"observedGeneration": 1, "typeChecking": {}}
        changed = {"spec": {"validations": [{"expression": "object.nope == 1"}]}}
        await on.call.patch(f"{POLICIES}/p", changed)
        wrong = "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope == 1\n | ......^\n"
        warning = {"fieldRef": "spec.validations[0].expression", "warning": wrong}
        assert await status(on.call, "p") == {
            "observedGeneration": 2,
            "typeChecking": {"expressionWarnings": [warning]},
        }
        await on.call.patch(f"{POLICIES}/p", {"spec": {"validations": [{"expression": "true"}]}})
        # What apply takes back of an object takes the object along, as on a real server.
        assert await status(on.call, "p") == {"observedGeneration": 3}
        settled = (await on.call.get(f"{POLICIES}/p")).json["metadata"]
        owners = {entry["manager"]: entry["operation"] for entry in settled["managedFields"]}
        assert owners["validatingadmissionpolicy-status"] == "Apply"
        await on.call.patch(f"{POLICIES}/p", {"metadata": {"labels": {"a": "b"}}})
        before = (await on.call.get(f"{POLICIES}/p")).json["metadata"]["resourceVersion"]
        await status(on.call, "p")
        assert (await on.call.get(f"{POLICIES}/p")).json["metadata"]["resourceVersion"] == before


async def test_controller_overwrites_status_of_other_writers() -> None:
    async with serving(controllers=CHECKED) as on:
        await on.call.created(POLICIES, policy("p", "true"))
        await status(on.call, "p")
        await on.call.patch(f"{POLICIES}/p", {"spec": {"failurePolicy": "Ignore"}})
        assert await status(on.call, "p") == {"observedGeneration": 2, "typeChecking": {}}
        await on.call.patch(f"{POLICIES}/p/status", {"status": {"observedGeneration": 1}})
        assert await status(on.call, "p") == {"observedGeneration": 2, "typeChecking": {}}


async def test_served_custom_resources_are_checked_with_their_schemas() -> None:
    async with serving(controllers=CHECKED) as on:
        await on.call.created(POLICIES, policy("early", "object.spec.nope == 1", "example.com", "widgets"))
        assert await status(on.call, "early") == {"observedGeneration": 1, "typeChecking": {}}
        sized = {"type": "object", "properties": {"size": {"type": "integer"}}}
        crd = widget_crd()
        for version in crd["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": sized}}
        await on.call.created(CRDS, crd)
        assert await status(on.call, "early") == {"observedGeneration": 1, "typeChecking": {}}
        await on.call.created(POLICIES, policy("wrong", "object.spec.nope == 1", "example.com", "widgets"))
        await on.call.created(
            POLICIES, policy("right", "object.spec.size > 0 && 'a' in object.metadata.labels", "example.com", "widgets")
        )
        [warning] = (await status(on.call, "wrong"))["typeChecking"]["expressionWarnings"]
        assert warning["warning"].startswith("example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'nope'")
        assert await status(on.call, "right") == {"observedGeneration": 1, "typeChecking": {}}


async def test_status_is_empty_without_the_controller() -> None:
    async with serving() as on:
        await on.call.created(POLICIES, policy("p", "object.nope == 1"))
        assert not await status(on.call, "p")


async def test_resource_without_group_matches_every_group() -> None:
    async with serving(controllers=CHECKED) as on:
        await on.call.created(POLICIES, policy("p", "object.note == 'x'", resource="events"))
        await on.call.created(POLICIES, policy("q", "object.nope == 'x'", resource="Event"))
        [warning] = (await status(on.call, "p"))["typeChecking"]["expressionWarnings"]
        assert warning["warning"].startswith("/v1, Kind=Event: ")
        assert "events.k8s.io" not in warning["warning"]
        [warning] = (await status(on.call, "q"))["typeChecking"]["expressionWarnings"]
        assert "\nevents.k8s.io/v1, Kind=Event: " in warning["warning"]
