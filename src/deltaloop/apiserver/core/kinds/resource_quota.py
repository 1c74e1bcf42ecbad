"""ResourceQuota and LimitRange: validation, defaults and table cells.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/apis/core/v1/defaults.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.resource_amounts import (
    COMPUTE_OF_QUOTAS,
    OF_QUOTAS,
    amounts_check,
    container_name_errors,
    may_be_overcommitted,
    name_errors,
    quota_name_errors,
)
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, required
from deltaloop.schemas.quantity import amount

_OF_PODS: Final = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_SCOPES: Final = (*_OF_PODS, "PriorityClass", "VolumeAttributesClass")
_OPPOSITES: Final = (frozenset(_OF_PODS[:2]), frozenset(_OF_PODS[2:4]))


def _suits(scope: str, resource: str) -> bool:
    """Return whether a scope can apply to a resource. Extended resources are always accepted."""
    if resource not in OF_QUOTAS and not resource.startswith(("hugepages-", "requests.hugepages-")):
        return True
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or resource == "pods" or resource in COMPUTE_OF_QUOTAS


def _scopes_errors(place: Place) -> Iterator[SchemaError]:
    scopes, path = texts(place.fields.get("scopes")), place.below("scopes")
    yield from _scope_errors(scopes, mapping(place.fields.get("hard")), path, path)
    path = place.below("scopeSelector.matchExpressions")
    expressions = items(at(place.fields, "scopeSelector", "matchExpressions"))
    selected = tuple(text(at(expression, "scopeName")) for expression in expressions)
    yield from _scope_errors(selected, mapping(place.fields.get("hard")), path, f"{path}.scopeName")
    for scope, expression in zip(selected, expressions, strict=True):
        operator, values = text(at(expression, "operator")), items(at(expression, "values"))
        if scope in _OF_PODS and operator != "Exists":
            yield invalid_value(f"{path}.operator", operator, f"must be 'Exists' when scope is {scope}")
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn'")
        elif operator not in ("Exists", "DoesNotExist"):
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            yield invalid_value(f"{path}.values", values, "must be no value when `operator` is 'Exist'")


def _scope_errors(scopes: tuple[str, ...], hard: Mapping[str, object], path: str, named: str) -> Iterator[SchemaError]:
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_value(named, scope, "unsupported scope")
        if not all(_suits(scope, resource) for resource in hard):
            yield invalid_value(path, list(scopes), "unsupported scope applied to resource")
    if any(pair <= {*scopes} for pair in _OPPOSITES):
        yield invalid_value(path, list(scopes), "conflicting scopes")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = (texts(at(quota, "spec", "scopes")) for quota in (before, after))
    if {*old} != {*new}:
        yield invalid_value("spec.scopes", list(new), IMMUTABLE)


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


_TYPES: Final = ("Container", "PersistentVolumeClaim", "Pod")
_GROUPS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# The first amount must not exceed the second. The error is reported for the third.
_ORDER: Final = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)


def _item_defaults(item: dict[str, object]) -> None:
    if item.get("type") != "Container":
        return
    limits = {**mapping(item.get("max")), **mapping(item.get("default"))}
    requests = {**mapping(item.get("min")), **limits, **mapping(item.get("defaultRequest"))}
    item.update({name: values for name, values in (("default", limits), ("defaultRequest", requests)) if values})


def _limits_errors(place: Place) -> Iterator[SchemaError]:
    kinds = [text(at(item, "type")) for item in items(place.value)]
    for number, item in enumerate(map(mapping, items(place.value))):
        where, kind = f"{place.path}[{number}]", kinds[number]
        wrong = [*qualified_name_errors(kind, f"{where}.type")]
        if not wrong and "/" not in kind and kind not in _TYPES:
            wrong.append(invalid_value(f"{where}.type", kind, "must be a standard limit type or fully qualified"))
        yield from wrong
        if kind in kinds[:number]:
            yield duplicate(f"{where}.type", kind)
        yield from _item_errors(item, where, kind)


def _item_errors(item: dict[str, object], where: str, kind: str) -> Iterator[SchemaError]:
    groups = {name: mapping(item.get(name)) for name in _GROUPS}
    if kind == "Pod":
        for name in ("default", "defaultRequest"):
            if groups[name]:
                yield forbidden_field(f"{where}.{name}", "may not be specified when `type` is 'Pod'")
            groups[name] = {}
    for name, amounts in groups.items():
        for resource in amounts:
            check = container_name_errors if kind in ("Container", "Pod") else name_errors
            yield from check(resource, f"{where}.{name}[{resource}]")
    if kind == "PersistentVolumeClaim" and not ("storage" in groups["min"] or "storage" in groups["max"]):
        yield required(f"{where}.limits", "either minimum or maximum storage value is required")
    for resource in {resource for amounts in groups.values() for resource in amounts}:
        found = {name: amounts[resource] for name, amounts in groups.items() if resource in amounts}
        yield from _order_errors(found, where, resource)


def _order_errors(found: dict[str, object], where: str, resource: str) -> Iterator[SchemaError]:
    for lower, upper, field in _ORDER:
        if lower in found and upper in found and amount(found[lower]) > amount(found[upper]):
            text_ = f"{lower} value {found[lower]} is greater than {upper} value {found[upper]}"
            yield invalid_value(f"{where}.{field}[{resource}]", found[field], text_)
    ratio = found.get("maxLimitRequestRatio")
    path = f"{where}.maxLimitRequestRatio[{resource}]"
    if ratio is not None and amount(ratio) < 1:
        yield invalid_value(path, ratio, f"ratio {ratio} is less than 1")
    least = amount(found.get("min"))
    if ratio is not None and "max" in found and least and amount(ratio) > amount(found["max"]) / least:
        yield invalid_value(path, ratio, f"ratio {ratio} is greater than max/min")
    limit, request = found.get("default"), found.get("defaultRequest")
    differ = limit is not None and request is not None and amount(limit) != amount(request)
    if differ and not may_be_overcommitted(resource):
        text_ = "default value must equal to defaultRequest value"
        yield invalid_value(f"{where}.defaultRequest[{resource}]", request, text_)


def _prepare_new(limit_range: dict[str, object]) -> None:
    metadata = mapping(limit_range["metadata"])
    if not metadata.get("name"):
        metadata["name"] = metadata["uid"]


LIMIT_RANGE: Final = Strategy(
    prepare_new=_prepare_new,
    defaults={"core.v1.LimitRangeItem": _item_defaults},
    checks={"limits": _limits_errors},
)
