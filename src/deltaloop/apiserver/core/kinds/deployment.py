"""Deployment: its strategy of updates, and what it has in common with others that make pods (``pod_owners``).

Source: Kubernetes pkg/apis/apps/validation, pkg/apis/apps/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.api.json_values import at, integer
from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.cells import format_selector
from deltaloop.apiserver.core.kinds.field_checks import most_percent_errors, share_errors
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value


def _deadline_errors(place: Place) -> Iterator[FieldError]:
    if integer(place.value) <= integer(place.beside("minReadySeconds")):
        yield invalid_value(place.path, shown(place.value), "must be greater than minReadySeconds")


def _strategy_errors(place: Place) -> Iterator[FieldError]:
    kind, rolling = place.fields.get("type"), place.fields.get("rollingUpdate")
    path = place.below("rollingUpdate")
    if kind == "RollingUpdate":
        for name in ("maxUnavailable", "maxSurge"):
            yield from share_errors(at(rolling, name), f"{path}.{name}")
        unavailable = at(rolling, "maxUnavailable")
        yield from most_percent_errors(unavailable, f"{path}.maxUnavailable")
        if unavailable in (0, "0%") and at(rolling, "maxSurge") in (0, "0%"):
            yield invalid_value(f"{path}.maxUnavailable", shown(unavailable), "may not be 0 when `maxSurge` is 0")
    elif kind != "Recreate":
        yield pod_owners.no_strategy(place, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield forbidden_field(path, "may not be specified when strategy `type` is 'Recreate'")


STRATEGY: Final = Strategy(
    defaults={"apps.v1.DeploymentStrategy": pod_owners.rolling_update(maxUnavailable="25%", maxSurge="25%")},
    checks={
        "deployment_strategy": _strategy_errors,
        "more_than_ready_seconds": _deadline_errors,
        "replica_set_selector": pod_owners.selector_check("deployment", ": invalid label selector"),
        "replica_set_template": pod_owners.template_check("ReplicaSet"),
    },
    validate_update=pod_owners.selector_update_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={
        "Ready": pod_owners.ready_of_replicas,
        "Selector": lambda owner: format_selector(at(owner, "spec", "selector"), empty="", wrong="<invalid>"),
    },
)
