"""LimitRange: what containers are limited to and request where they say nothing.

Source: Kubernetes pkg/apis/core/v1/defaults.go, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.apiserver.core.kinds.resource_amounts import container_name_errors, may_be_overcommitted, name_errors
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, duplicate, forbidden_field, invalid_value, required
from deltaloop.schemas.quantity import amount

_TYPES: Final = ("Container", "PersistentVolumeClaim", "Pod")
_GROUPS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# The amount of the first group must not be above that of the second; the error is at the third.
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


def _limits_errors(place: Place) -> Iterator[FieldError]:
    kinds = [text(at(item, "type")) for item in items(place.value)]
    for number, item in enumerate(map(mapping, items(place.value))):
        where, kind = f"{place.path}[{number}]", kinds[number]
        wrong = [*qualified_name_errors(kind, f"{where}.type")]
        if not wrong and "/" not in kind and kind not in _TYPES:
            wrong.append(
                invalid_value(f"{where}.type", shown(kind), "must be a standard limit type or fully qualified")
            )
        yield from wrong
        if kind in kinds[:number]:
            yield duplicate(f"{where}.type", shown(kind))
        yield from _item_errors(item, where, kind)


def _item_errors(item: dict[str, object], where: str, kind: str) -> Iterator[FieldError]:
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


def _order_errors(found: dict[str, object], where: str, resource: str) -> Iterator[FieldError]:
    for lower, upper, field in _ORDER:
        if lower in found and upper in found and amount(found[lower]) > amount(found[upper]):
            text_ = f"{lower} value {found[lower]} is greater than {upper} value {found[upper]}"
            yield invalid_value(f"{where}.{field}[{resource}]", shown(found[field]), text_)
    ratio = found.get("maxLimitRequestRatio")
    path = f"{where}.maxLimitRequestRatio[{resource}]"
    if ratio is not None and amount(ratio) < 1:
        yield invalid_value(path, shown(ratio), f"ratio {ratio} is less than 1")
    least = amount(found.get("min"))
    if ratio is not None and "max" in found and least and amount(ratio) > amount(found["max"]) / least:
        yield invalid_value(path, shown(ratio), f"ratio {ratio} is greater than max/min")
    limit, request = found.get("default"), found.get("defaultRequest")
    differ = limit is not None and request is not None and amount(limit) != amount(request)
    if differ and not may_be_overcommitted(resource):
        text_ = "default value must equal to defaultRequest value"
        yield invalid_value(f"{where}.defaultRequest[{resource}]", shown(request), text_)


def _prepare_new(limit_range: dict[str, object]) -> None:
    metadata = mapping(limit_range["metadata"])
    if not metadata.get("name"):
        metadata["name"] = metadata["uid"]


STRATEGY: Final = Strategy(
    prepare_new=_prepare_new,
    defaults={"core.v1.LimitRangeItem": _item_defaults},
    checks={"limits": _limits_errors},
)
