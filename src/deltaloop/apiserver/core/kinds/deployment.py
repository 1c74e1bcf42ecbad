"""Deployment: its strategy of updates, and what it has in common with others that make pods (``pod_owners``).

Source: Kubernetes pkg/apis/apps/validation, pkg/apis/apps/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.cells import number_at, selector_at, template_cells
from deltaloop.apiserver.core.kinds.field_checks import most_percent_errors, not_negative, share_errors, shown
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value
from deltaloop.schemas.json_values import at, integer, mapping


def _errors(deployment: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(deployment.get("spec"))
    yield from not_negative(spec, "replicas", path="spec")
    yield from pod_owners.selector_and_template_errors(spec, "deployment", "ReplicaSet")
    yield from _strategy_errors(mapping(spec.get("strategy")))
    yield from not_negative(spec, "minReadySeconds", "revisionHistoryLimit", path="spec")
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int) and deadline <= integer(spec.get("minReadySeconds")):
        yield invalid_value("spec.progressDeadlineSeconds", str(deadline), "must be greater than minReadySeconds")


def _strategy_errors(strategy: Mapping[str, object]) -> Iterator[FieldError]:
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if kind == "RollingUpdate":
        for name in ("maxUnavailable", "maxSurge"):
            yield from share_errors(at(rolling, name), f"{path}.{name}")
        unavailable = at(rolling, "maxUnavailable")
        yield from most_percent_errors(unavailable, f"{path}.maxUnavailable")
        if unavailable in (0, "0%") and at(rolling, "maxSurge") in (0, "0%"):
            yield invalid_value(f"{path}.maxUnavailable", shown(unavailable), "may not be 0 when `maxSurge` is 0")
    elif kind != "Recreate":
        yield pod_owners.no_strategy("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield forbidden_field(path, "may not be specified when strategy `type` is 'Recreate'")


STRATEGY: Final = Strategy(
    defaults={"apps.v1.DeploymentStrategy": pod_owners.rolling_update(maxUnavailable="25%", maxSurge="25%")},
    validate=_errors,
    validate_update=pod_owners.selector_update_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={
        "Ready": pod_owners.ready_of_replicas,
        "Up-to-date": number_at("status.updatedReplicas"),
        "Available": number_at("status.availableReplicas"),
        **template_cells(),
        "Selector": selector_at("spec.selector", empty="", wrong="<invalid>"),
    },
)
