"""ResourceQuota: its scopes, and the use of each resource.

Source: Kubernetes pkg/apis/core/validation/validation.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.resource_amounts import (
    COMPUTE_OF_QUOTAS,
    OF_QUOTAS,
    amounts_check,
    quota_name_errors,
)
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value, required
from deltaloop.schemas.quantity import amount

_OF_PODS: Final = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_SCOPES: Final = (*_OF_PODS, "PriorityClass", "VolumeAttributesClass")
_OPPOSITES: Final = (frozenset(_OF_PODS[:2]), frozenset(_OF_PODS[2:4]))


def _suits(scope: str, resource: str) -> bool:
    """Tell whether a scope can limit a resource; names of other resources are not checked."""
    if resource not in OF_QUOTAS and not resource.startswith(("hugepages-", "requests.hugepages-")):
        return True
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or resource == "pods" or resource in COMPUTE_OF_QUOTAS


def _scopes_errors(place: Place) -> Iterator[FieldError]:
    scopes, path = texts(place.fields.get("scopes")), place.below("scopes")
    yield from _scope_errors(scopes, mapping(place.fields.get("hard")), path, path)
    path = place.below("scopeSelector.matchExpressions")
    expressions = items(at(place.fields, "scopeSelector", "matchExpressions"))
    selected = tuple(text(at(expression, "scopeName")) for expression in expressions)
    yield from _scope_errors(selected, mapping(place.fields.get("hard")), path, f"{path}.scopeName")
    for scope, expression in zip(selected, expressions, strict=True):
        operator, values = text(at(expression, "operator")), items(at(expression, "values"))
        if scope in _OF_PODS and operator != "Exists":
            yield invalid_value(f"{path}.operator", shown(operator), f"must be 'Exists' when scope is {scope}")
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn'")
        elif operator not in ("Exists", "DoesNotExist"):
            yield invalid_value(f"{path}.operator", shown(operator), "not a valid selector operator")
        elif values:
            yield invalid_value(f"{path}.values", shown(values), "must be no value when `operator` is 'Exist'")


def _scope_errors(scopes: tuple[str, ...], hard: Mapping[str, object], path: str, named: str) -> Iterator[FieldError]:
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_value(named, shown(scope), "unsupported scope")
        if not all(_suits(scope, resource) for resource in hard):
            yield invalid_value(path, shown(list(scopes)), "unsupported scope applied to resource")
    if any(pair <= {*scopes} for pair in _OPPOSITES):
        yield invalid_value(path, shown(list(scopes)), "conflicting scopes")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    old, new = (texts(at(quota, "spec", "scopes")) for quota in (before, after))
    if {*old} != {*new}:
        yield invalid_value("spec.scopes", shown(list(new)), IMMUTABLE)


def _used(*, limits: bool) -> Cell:
    def cell(quota: Mapping[str, object]) -> str:
        hard, used = mapping(at(quota, "status", "hard")), mapping(at(quota, "status", "used"))
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _warnings(quota: Mapping[str, object]) -> Iterator[str]:
    hard = mapping(at(quota, "spec", "hard"))
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        asked, limit = f"requests.{name}", f"limits.{name}"
        if asked not in hard and name in ("cpu", "memory"):
            asked = name
        if asked in hard and limit in hard and amount(hard[asked]) > amount(hard[limit]):
            yield f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})"


STRATEGY: Final = Strategy(
    checks={"quota_amounts": amounts_check(quota_name_errors), "quota_scopes": _scopes_errors},
    validate_update=_update_errors,
    warn_new=_warnings,
    cells={"Request": _used(limits=False), "Limit": _used(limits=True)},
)
