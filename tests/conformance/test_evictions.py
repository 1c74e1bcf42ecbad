"""Evictions: a delete of a pod that a disruption budget may refuse. The cases write the budget's status themselves.

Source: Kubernetes documentation, "API-initiated Eviction".
"""

from __future__ import annotations

from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.target import Api, conformance, pod

MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
LABELS = {"app": "web"}
COUNTED = {"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}


def budgets(api: Api) -> str:
    return f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"


async def running_pod(api: Api, name: str = "p", *, ready: str = "True", phase: str = "Running") -> dict[str, Any]:
    body = pod(name)
    body["metadata"]["labels"] = LABELS
    await api.created(api.pods, body)
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    patched = await api.patch(f"{api.pods}/{name}/status", {"status": status})
    assert patched.status == 200, patched.text
    return patched.json


async def budget(
    api: Api, name: str = "b", *, allowed: int = 0, spec: dict[str, Any] | None = None, **status: Any
) -> None:
    """Make a budget for the pods of this file, with a status as a controller would write it."""
    given = {"minAvailable": 2, "selector": {"matchLabels": LABELS}, **(spec or {})}
    await api.created(budgets(api), {"metadata": {"name": name}, "spec": given})
    patched = await api.patch(
        f"{budgets(api)}/{name}/status", {"status": {**COUNTED, "disruptionsAllowed": allowed, **status}}
    )
    assert patched.status == 200, patched.text


async def evict(api: Api, name: str = "p", query: str = "", **fields: Any) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": api.namespace}}
    return await api.post(f"{api.pods}/{name}/eviction{query}", {**body, **fields})


def check_refused(answer: Answer, why: str, *, wait: int = 0) -> None:
    assert answer.refuses(429, "TooManyRequests") == MESSAGE
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": f"The disruption budget b {why}"}]}
    if wait:
        details["retryAfterSeconds"] = wait
    assert answer.json["details"] == details
    assert answer.headers.get("Retry-After", "") == (str(wait) if wait else "")


@conformance("Eviction: a pod that no budget selects is deleted, and the answer is a Status")
async def test_no_budget(api: Api) -> None:
    await running_pod(api)
    await budget(api, spec={"selector": {"matchLabels": {"app": "other"}}})
    answer = await evict(api)
    assert answer.status == 201
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    assert answer.json == status
    (await api.get(f"{api.pods}/p")).refuses(404, "NotFound")


@conformance(
    "Eviction: a budget with nothing to give is 429, and says why",
    ("too few are healthy", {"currentHealthy": 2}, "needs 2 healthy pods and has 2 currently"),
    ("none is healthy", {"currentHealthy": 0}, "needs 2 healthy pods and has 0 currently"),
    ("enough are healthy", {"currentHealthy": 3}, "does not allow evicting pods currently"),
    (
        "its controller has failed",
        {
            "conditions": [
                {
                    "type": "DisruptionAllowed",
                    "status": "False",
                    "reason": "SyncFailed",
                    "message": "no scale",
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                }
            ]
        },
        "does not allow evicting pods currently because it failed sync: no scale",
    ),
)
async def test_eviction_rejected_by_exhausted_budget(api: Api, status: dict[str, Any], why: str) -> None:
    await running_pod(api)
    await budget(api, **status)
    check_refused(await evict(api), why)
    check_refused(await evict(api, query="?dryRun=All"), why)
    assert (await api.get(f"{api.pods}/p")).status == 200


@conformance("Eviction: a budget that no controller has counted is 429, come back in 10 seconds")
async def test_pods_not_counted_by_budget(api: Api) -> None:
    await running_pod(api)
    await api.created(
        budgets(api), {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}}
    )
    check_refused(await evict(api), "is still being processed by the server.", wait=10)
    await api.patch(f"{budgets(api)}/b/status", {"status": {**COUNTED, "disruptionsAllowed": 1}})
    await api.patch(f"{budgets(api)}/b", {"spec": {"minAvailable": 3}})
    check_refused(await evict(api), "is still being processed by the server.", wait=10)


@conformance("Eviction: takes one from the budget and notes the pod; the last one is noted in a condition")
async def test_eviction_decrements_disruptions_allowed(api: Api) -> None:
    await running_pod(api, "p")
    await running_pod(api, "q")
    await budget(api, allowed=2)
    assert (await evict(api, "p")).status == 201
    status = (await api.get(f"{budgets(api)}/b")).json["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (1, ["p"])
    assert "conditions" not in status
    assert (await evict(api, "q")).status == 201
    status = (await api.get(f"{budgets(api)}/b")).json["status"]
    assert (status["disruptionsAllowed"], sorted(status["disruptedPods"])) == (0, ["p", "q"])
    condition = status["conditions"][0]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 1,
        "reason": "InsufficientPods",
        "message": "",
    }
    assert len(status["conditions"]) == 1


@conformance(
    "Eviction: some pods go whatever the budget says",
    ("one that has finished", "True", "Succeeded", {}, {}, True),
    ("one that has failed", "True", "Failed", {}, {}, True),
    ("one that is pending", "False", "Pending", {}, {}, True),
    ("one that is not ready, where enough are healthy", "False", "Running", {}, {}, True),
    ("one that is not ready, where too few are", "False", "Running", {"currentHealthy": 1}, {}, False),
    (
        "one that is not ready, if the policy lets it",
        "False",
        "Running",
        {"currentHealthy": 1},
        {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
        True,
    ),
    (
        "one that is ready, whatever the policy",
        "True",
        "Running",
        {},
        {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
        False,
    ),
)
async def test_free_pods(
    api: Api, ready: str, phase: str, status: dict[str, Any], spec: dict[str, Any], free: bool
) -> None:
    await running_pod(api, ready=ready, phase=phase)
    await budget(api, spec=spec, **status)
    answer = await evict(api)
    assert answer.status == (201 if free else 429), answer.text
    assert (await api.get(f"{budgets(api)}/b")).json["status"]["disruptionsAllowed"] == 0


@conformance("Eviction: two budgets for one pod are more than the server decides about")
async def test_two_budgets(api: Api) -> None:
    await running_pod(api)
    await budget(api, "b", allowed=1)
    await budget(api, "c", allowed=1)
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (await evict(api)).refuses(500, "") == message


@conformance("Eviction: of a pod that is not there is 404")
async def test_eviction_of_missing_pod(api: Api) -> None:
    assert (await evict(api)).refuses(404, "NotFound") == 'pods "p" not found'


@conformance(
    "Eviction: names the pod of the URL",
    ("another", {"metadata": {"name": "q"}}, "name in URL does not match name in Eviction object"),
    ("none", {"metadata": {}}, "name in URL does not match name in Eviction object"),
)
async def test_another_name(api: Api, fields: dict[str, Any], message: str) -> None:
    await running_pod(api)
    assert (await evict(api, **fields)).refuses(400, "BadRequest") == message


@conformance("Eviction: preconditions hold for the pod, and a dry run changes nothing")
async def test_options(api: Api) -> None:
    found = await running_pod(api)
    uid = found["metadata"]["uid"]
    message = (await evict(api, deleteOptions={"preconditions": {"uid": "other"}})).refuses(409, "Conflict")
    assert message.startswith('Operation cannot be fulfilled on Pod "p": the UID in the precondition (other) does not')
    for options, query in (({"dryRun": ["All"]}, ""), ({}, "?dryRun=All")):
        assert (await evict(api, query=query, deleteOptions=options)).status == 201
        assert (await api.get(f"{api.pods}/p")).status == 200
    assert (await evict(api, deleteOptions={"preconditions": {"uid": uid}})).status == 201
    (await api.get(f"{api.pods}/p")).refuses(404, "NotFound")
