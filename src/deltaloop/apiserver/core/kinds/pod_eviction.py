"""Evictions, which delete a pod unless its PodDisruptionBudget forbids it, and validation of budgets.

    pod finished, pending, or being deleted     deleted, regardless of budgets
    no budget selects the pod                   deleted
    pod not ready, enough healthy pods          deleted (with unhealthyPodEvictionPolicy AlwaysAllow in any case)
    budget with disruptionsAllowed > 0          deleted, and disruptionsAllowed is decremented
    budget with disruptionsAllowed 0            429
    budget that was not processed               429 with a retry after 10 seconds
    several budgets                             500

No controller computes ``disruptionsAllowed`` here, so it comes from writes to the status. A budget is not processed if
its ``observedGeneration`` is less than its generation.

Source: Kubernetes pkg/registry/core/pod/storage/eviction.go; Kubernetes pkg/apis/policy/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, Status, StatusCause, StatusDetails, error_from_status
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.kinds.field_checks import shown_selector
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.apiserver.core.strategy import Asked, Moment, Stored, Strategy, Writes
from deltaloop.apiserver.core.write_options import check_dry_run, parse_delete_options
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, invalid_text, shown

_PDBS: Final = kinds.POD_DISRUPTION_BUDGET.group_resource
_ALLOWED: Final = "DisruptionAllowed"
_MOST_DISRUPTED: Final = 2000
_FREE_PHASES: Final = ("Succeeded", "Failed", "Pending")


def evict(asked: Asked, writes: Writes, moment: Moment) -> None:
    """Delete a pod and update its budget; raises ApiError 400 or 422, 404 for a missing pod, and those above."""
    options = parse_delete_options(check_eviction(asked.fields, namespace=asked.namespace, name=asked.name))
    dry_run = check_dry_run(options.dry_run or ()) or asked.dry_run
    pod = Resource.from_dict(writes.fields_of(kinds.POD, asked.namespace, asked.name))
    after = budget_to_spend(writes.objects, pod, now=moment.now)
    if after is not None and not dry_run:
        writes.update_status(kinds.POD_DISRUPTION_BUDGET, after, moment)
    writes.delete_as(kinds.POD, asked.namespace, asked.name, options, now=moment.now, dry_run=dry_run)


def check_eviction(eviction: dict[str, object], *, namespace: str, name: str) -> dict[str, object]:
    """Return the delete options of an eviction, or raise BadRequestError if it is for another pod."""
    where = text(at(eviction, "metadata", "namespace"))
    if where and where != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if text(at(eviction, "metadata", "name")) != name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    options = mapping(eviction.get("deleteOptions"))
    return {key: value for key, value in options.items() if key not in ("kind", "apiVersion")}


def budget_to_spend(store: Stored, pod: Resource, *, now: float) -> dict[str, object] | None:
    """Return the updated budget of an eviction, or None if no budget applies."""
    fields = pod.to_dict()
    if pod.deletion_timestamp is not None or text(at(fields, "status", "phase")) in _FREE_PHASES:
        return None
    found = [budget for budget in store.list(_PDBS, prefix=f"{pod.namespace}/").items if _selects(budget, pod)]
    if not found:
        return None
    if len(found) > 1:
        raise status_errors.unexplained(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if _is_free(fields, found[0].to_dict()):
        return None
    return _spend(found[0], pod, now=now)


def _selects(budget: Resource, pod: Resource) -> bool:
    selector = at(budget.to_dict(), "spec", "selector")
    return selector is not None and selects(mapping(selector), pod.labels)


def _is_free(pod: dict[str, object], budget: dict[str, object]) -> bool:
    """Return whether the budget's policy allows eviction of this pod because it is not ready."""
    conditions = map(mapping, items(at(pod, "status", "conditions")))
    if any(text(item.get("type")) == "Ready" and text(item.get("status")) == "True" for item in conditions):
        return False
    if text(at(budget, "spec", "unhealthyPodEvictionPolicy")) == "AlwaysAllow":
        return True
    healthy, needed = (integer(at(budget, "status", name)) for name in ("currentHealthy", "desiredHealthy"))
    return healthy >= needed > 0


def _spend(budget: Resource, pod: Resource, *, now: float) -> dict[str, object]:
    fields = budget.to_dict()
    status = mapping(fields.get("status"))
    if integer(status.get("observedGeneration")) < integer(at(fields, "metadata", "generation")):
        raise _refused(f"The disruption budget {budget.name} is still being processed by the server.", wait=10)
    allowed = integer(status.get("disruptionsAllowed"))
    disrupted = mapping(status.get("disruptedPods"))
    if allowed < 0:
        raise status_errors.protected(kinds.POD_DISRUPTION_BUDGET, budget.name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        text_ = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status_errors.protected(kinds.POD_DISRUPTION_BUDGET, budget.name, text_)
    if allowed == 0:
        healthy, needed = integer(status.get("currentHealthy")), integer(status.get("desiredHealthy"))
        why = f"needs {needed} healthy pods and has {healthy} currently"
        if healthy > needed:
            why = "does not allow evicting pods currently"
        failed = next((item for item in _conditions(fields) if item.get("reason") == "SyncFailed"), None)
        if failed is not None:
            why = f"does not allow evicting pods currently because it failed sync: {text(failed.get('message'))}"
        raise _refused(f"The disruption budget {budget.name} {why}")
    time = format_time(from_epoch(now))
    status = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod.name: time}}
    if allowed == 1:
        status["conditions"] = _exhausted(fields, time=time)
    return {**fields, "status": status}


def _conditions(fields: dict[str, object]) -> list[dict[str, object]]:
    return [mapping(item) for item in items(at(fields, "status", "conditions"))]


def _exhausted(budget: dict[str, object], *, time: str) -> list[dict[str, object]]:
    listed = _conditions(budget)
    before = next((item for item in listed if item.get("type") == _ALLOWED), dict[str, object]())
    changed = text(before.get("lastTransitionTime")) if before.get("status") == "False" else time
    condition: dict[str, object] = {
        "type": _ALLOWED,
        "status": "False",
        "observedGeneration": integer(at(budget, "status", "observedGeneration")),
        "lastTransitionTime": changed,
        "reason": "InsufficientPods",
        "message": "",
    }
    return [*(item for item in listed if item.get("type") != _ALLOWED), condition]


def _refused(cause: str, *, wait: int = 0) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details = StatusDetails(causes=(StatusCause("DisruptionBudget", cause),), retry_after_seconds=wait)
    return error_from_status(Status(message=message, reason="TooManyRequests", details=details, code=429))


def _either_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        in_go = (
            f'{{"MinAvailable":{shown(spec["minAvailable"])},"Selector":{shown_selector(spec.get("selector"))},'
            f'"MaxUnavailable":{shown(spec["maxUnavailable"])},'
            f'"UnhealthyPodEvictionPolicy":{shown(spec.get("unhealthyPodEvictionPolicy"))}}}'
        )
        yield invalid_text(place.path, in_go, "minAvailable and maxUnavailable cannot be both set")


STRATEGY: Final = Strategy(
    checks={"one_share": _either_errors},
)
