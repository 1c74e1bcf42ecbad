"""Evictions, bindings, and what a server without a kubelet says to log and exec."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.serving import PODS, Serving, serving

PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


async def pod(on: Serving, name: str = "p", status: dict[str, Any] | None = None) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    await on.call.created(PODS, {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})
    changed = await on.call.patch(f"{PODS}/{name}/status", {"status": status or READY})
    assert changed.status == 200, changed.text


async def budget(on: Serving, name: str = "b", allowed: int = 0, *, spec: dict[str, Any] | None = None) -> None:
    wanted = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1, **(spec or {})}
    await on.call.created(PDBS, {"metadata": {"name": name}, "spec": wanted})
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1, "expectedPods": 1}
    await on.call.patch(f"{PDBS}/{name}/status", {"status": {**status, "observedGeneration": 1}})


async def evict(on: Serving, name: str = "p", **fields: Any) -> Any:
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}, **fields}
    return await on.call.post(f"{PODS}/{name}/eviction", body)


async def test_eviction_without_a_budget_deletes_the_pod() -> None:
    async with serving() as on:
        await pod(on)
        assert (await evict(on, deleteOptions={"dryRun": ["All"]})).status == 201
        answer = await evict(on)
        assert (answer.status, answer.json["kind"], answer.json["status"]) == (201, "Status", "Success")
        (await evict(on)).refuses(404, "NotFound")
        other = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "q"}}
        (await on.call.post(f"{PODS}/p/eviction", other)).refuses(400, "BadRequest")


async def test_exhausted_budget_rejects_eviction_with_429() -> None:
    async with serving() as on:
        await pod(on)
        await budget(on)
        answer = await evict(on)
        message = answer.refuses(429, "TooManyRequests")
        assert message == "Cannot evict pod as it would violate the pod's disruption budget."
        cause = {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }
        assert answer.json["details"]["causes"] == [cause]
        assert (await on.call.get(f"{PODS}/p")).status == 200


async def test_eviction_decreases_allowed_disruptions() -> None:
    async with serving() as on:
        await pod(on)
        await budget(on, allowed=1)
        await pod(on, "q")
        assert (await evict(on)).status == 201
        status = (await on.call.get(f"{PDBS}/b")).json["status"]
        assert status["disruptionsAllowed"] == 0
        assert list(status["disruptedPods"]) == ["p"]
        (await evict(on, "q")).refuses(429, "TooManyRequests")


async def test_outdated_budget_status_gives_retry_after() -> None:
    async with serving() as on:
        await pod(on)
        await budget(on, allowed=1)
        await on.call.patch(f"{PDBS}/b", {"spec": {"minAvailable": 2}})
        answer = await evict(on)
        answer.refuses(429, "TooManyRequests")
        assert answer.headers["Retry-After"] == "10"


@pytest.mark.parametrize("status", [{"phase": "Pending"}, {"phase": "Succeeded"}, {"phase": "Failed"}])
async def test_pending_and_finished_pods_are_evicted_despite_the_budget(status: dict[str, Any]) -> None:
    async with serving() as on:
        await pod(on, status=status)
        await budget(on)
        assert (await evict(on)).status == 201


async def test_always_allow_policy_evicts_pod_that_is_not_ready() -> None:
    async with serving() as on:
        await pod(on, status={"phase": "Running"})
        await budget(on, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})
        assert (await evict(on)).status == 201


async def test_eviction_with_two_budgets_fails() -> None:
    async with serving() as on:
        await pod(on)
        await budget(on, "b", 1)
        await budget(on, "c", 1)
        (await evict(on)).refuses(500, "")


async def test_pod_can_be_bound_only_once() -> None:
    async with serving() as on:
        await pod(on)
        body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        assert (await on.call.post(f"{PODS}/p/binding", body)).status == 201
        assert (await on.call.get(f"{PODS}/p")).json["spec"]["nodeName"] == "n"
        message = (await on.call.post(f"{PODS}/p/binding", body)).refuses(409, "Conflict")
        assert message.endswith('pod p is already assigned to node "n"')


async def test_subresources_that_need_a_kubelet_are_rejected() -> None:
    async with serving() as on:
        (await on.call.get(f"{PODS}/p/log")).refuses(404, "NotFound")
        await pod(on)
        assert (await on.call.get(f"{PODS}/p/log")).status == 204
        message = (await on.call.post(f"{PODS}/p/exec", {})).refuses(400, "BadRequest")
        assert message == "pod p does not have a host assigned"
        await on.call.post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
        assert (await on.call.get(f"{PODS}/p/log")).refuses(404, "NotFound") == 'nodes "n" not found'
        await on.call.created("/api/v1/nodes", {"metadata": {"name": "n"}})
        for method, verb in (("GET", "log"), ("POST", "exec"), ("POST", "attach"), ("POST", "portforward")):
            answer = await on.call.call(method, f"{PODS}/p/{verb}")
            assert "runs no containers" in answer.refuses(501, "NotImplemented")
        (await on.call.call("DELETE", f"{PODS}/p/log")).refuses(405, "MethodNotAllowed")
