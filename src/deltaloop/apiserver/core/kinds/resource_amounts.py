"""Amounts of resources, and strategies of quotas and limit ranges.

Init containers run sequentially, so their maximum counts. Sidecars count as containers, and again for each later init
container. The pod's own cpu and memory replace the sum.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/apis/core/helper/{helpers.go,qos}; component-
helpers/resource/helpers.go; plugin/pkg/admission/limitranger; Kubernetes pkg/apis/core/validation/validation.go,
pkg/apis/core/v1/defaults.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from deltaloop.schemas.quantity import MalformedQuantityError, added, amount, canonical_quantity

_QUALIFYING: Final = ("cpu", "memory")


def qos_class(spec: Mapping[str, object]) -> str:
    containers = [*items(spec.get("containers")), *items(spec.get("initContainers"))]
    of_pod = mapping(spec.get("resources"))
    if of_pod.get("limits") or of_pod.get("requests"):
        containers = [{"resources": of_pod}]  # resources of the pod override those of its containers
    requested = limited = False
    guaranteed = True
    for container in containers:
        requests = _counted(at(container, "resources", "requests"))
        limits = _counted(at(container, "resources", "limits"))
        requested, limited = requested or bool(requests), limited or bool(limits)
        guaranteed = guaranteed and len(limits) == len(_QUALIFYING) and requests == limits
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(amounts: object) -> dict[str, str]:
    found = {name: canonical_quantity(str(at(amounts, name))) for name in _QUALIFYING if at(amounts, name) is not None}
    return {name: value for name, value in found.items() if value != "0"}


NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_COMPUTE: Final = ("cpu", "memory")
_OF_CONTAINERS: Final = (*_COMPUTE, "ephemeral-storage")
_COUNTED: Final = (
    "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services",
    "services.loadbalancers", "services.nodeports",
)  # fmt: skip
COMPUTE_OF_QUOTAS: Final = frozenset(
    f"{group}{name}" for group in ("", "requests.", "limits.") for name in ("cpu", "memory", "ephemeral-storage")
)
OF_QUOTAS: Final = COMPUTE_OF_QUOTAS | {*_COUNTED, "requests.storage"}
_HUGE: Final = "hugepages-"

NameErrors = Callable[[str, str], Iterator[SchemaError]]


def name_errors(name: str, field: str) -> Iterator[SchemaError]:
    wrong = [*qualified_name_errors(name, field)]
    if not wrong and "/" not in name and name not in OF_QUOTAS and name != "storage" and not _is_huge(name):
        wrong.append(invalid_value(field, name, "must be a standard resource type or fully qualified"))
    yield from wrong


def container_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    yield from name_errors(name, field)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(_HUGE):
            yield invalid_value(field, name, "must be a standard resource for containers")
    elif not is_native(name) and not _is_extended(name):
        yield invalid_value(field, name, "doesn't follow extended resource name standard")


def quota_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    yield from name_errors(name, field)
    if "/" not in name and name not in OF_QUOTAS and not _is_huge(name):
        yield invalid_value(field, name, "must be a standard resource for quota")


def pod_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    wrong = [*name_errors(name, field)]
    if not wrong and name not in _COMPUTE and not name.startswith(_HUGE):
        wrong.append(not_supported(field, name, ("cpu", "hugepages-", "memory")))
    yield from wrong


def _is_huge(name: str) -> bool:
    return name.startswith((_HUGE, f"requests.{_HUGE}"))


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not any(qualified_name_errors(f"requests.{name}", ""))


def may_be_overcommitted(name: str) -> bool:
    return is_native(name) and not name.startswith(_HUGE)


def amount_errors(name: str, value: object, field: str) -> Iterator[SchemaError]:
    if amount(value) < 0:
        yield invalid_value(field, value, NOT_NEGATIVE)
    if (name in _COUNTED or _is_extended(name)) and amount(value).denominator != 1:
        yield invalid_value(field, value, "must be an integer")


def amounts_check(names: NameErrors) -> Callable[[Place], Iterator[SchemaError]]:
    def check(place: Place) -> Iterator[SchemaError]:
        for name, value in mapping(place.value).items():
            yield from names(name, f"{place.path}[{name}]")
            yield from amount_errors(name, value, f"{place.path}[{name}]")

    return check


def requirements_check(names: NameErrors) -> Callable[[Place], Iterator[SchemaError]]:
    """Return a check for the requests and limits of a container or pod."""

    def check(place: Place) -> Iterator[SchemaError]:
        limits, requests = mapping(place.fields.get("limits")), mapping(place.fields.get("requests"))
        for group, amounts in (("limits", limits), ("requests", requests)):
            for name, value in amounts.items():
                where = f"{place.path}.{group}[{name}]"
                yield from names(name, where)
                yield from amount_errors(name, value, where)
                if name.startswith(_HUGE) and not _is_whole(name, value):
                    yield invalid_value(where, value, "must be a multiple of the page size")
        yield from _overcommit_errors(limits, requests, place.path)
        both = {*limits, *requests}
        if any(name.startswith(_HUGE) for name in both) and not both & {*_COMPUTE}:
            yield forbidden_field(place.path, "HugePages require cpu or memory")

    return check


def overhead_errors(place: Place) -> Iterator[SchemaError]:
    check = requirements_check(container_name_errors)
    return iter(check(Place({"limits": place.value}, place.path, place.name, place.holder)))


def _overcommit_errors(limits: dict[str, object], requests: dict[str, object], path: str) -> Iterator[SchemaError]:
    for name, value in requests.items():
        if name not in limits:
            if not may_be_overcommitted(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif amount(value) != amount(limits[name]) and not may_be_overcommitted(name):
            yield invalid_value(f"{path}.requests", value, f"must be equal to {name} limit of {limits[name]}")
        elif amount(value) > amount(limits[name]):
            text_ = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", value, text_)


def _is_whole(name: str, value: object) -> bool:
    try:
        page = amount(name.removeprefix(_HUGE))
    except MalformedQuantityError:
        return False
    return page > 0 and page.denominator == 1 and amount(value) % page == 0


Amounts: TypeAlias = dict[str, str]
OF_PODS: Final = ("cpu", "memory")


def amounts(value: object) -> Amounts:
    return {name: str(quantity) for name, quantity in mapping(value).items()}


def pod_amounts(spec: Mapping[str, object], field: str, *, overhead: bool) -> Amounts:
    """Return the total ``requests`` or ``limits``; the overhead is added to existing limits only."""
    total: Amounts = {}
    for container in items(spec.get("containers")):
        total = plus(total, amounts(at(container, "resources", field)))
    staying: Amounts = {}
    largest: Amounts = {}
    for container in items(spec.get("initContainers")):
        mine = amounts(at(container, "resources", field))
        if at(container, "restartPolicy") == "Always":
            total, staying = plus(total, mine), plus(staying, mine)
            mine = staying
        else:
            mine = plus(mine, staying)
        largest = _largest(largest, mine)
    total = _largest(total, largest)
    own = amounts(at(spec, "resources", field))
    total |= {name: own[name] for name in OF_PODS if name in own}
    if overhead:
        extra = amounts(spec.get("overhead"))
        total = plus(total, {name: extra[name] for name in extra if field == "requests" or amount(total.get(name, 0))})
    return total


def plus(first: Amounts, second: Amounts, *, times: int = 1) -> Amounts:
    """Return the sum of two amounts, or the difference if ``times`` is -1."""
    return first | {name: added(first.get(name, "0"), second[name], times=times) for name in second}


def _largest(first: Amounts, second: Amounts) -> Amounts:
    larger = {name for name in second if name not in first or amount(second[name]) > amount(first[name])}
    return first | {name: second[name] for name in larger}


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


RESOURCE_QUOTA: Final = Strategy(
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
