"""Names and amounts of resources, QoS classes, and the total requests and limits of pods.

Init containers run sequentially, so their maximum counts. Sidecars count as containers, and again for each later init
container. The pod's own cpu and memory replace the sum.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/apis/core/helper/{helpers.go,qos};
component-helpers/resource/helpers.go; plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, items, mapping
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required
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
        wrong.append(invalid_value(field, shown(name), "must be a standard resource type or fully qualified"))
    yield from wrong


def container_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    yield from name_errors(name, field)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(_HUGE):
            yield invalid_value(field, shown(name), "must be a standard resource for containers")
    elif not is_native(name) and not _is_extended(name):
        yield invalid_value(field, shown(name), "doesn't follow extended resource name standard")


def quota_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    yield from name_errors(name, field)
    if "/" not in name and name not in OF_QUOTAS and not _is_huge(name):
        yield invalid_value(field, shown(name), "must be a standard resource for quota")


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
    """Return whether limits of a resource can exceed its requests."""
    return is_native(name) and not name.startswith(_HUGE)


def amount_errors(name: str, value: object, field: str) -> Iterator[SchemaError]:
    if amount(value) < 0:
        yield invalid_value(field, shown(value), NOT_NEGATIVE)
    if (name in _COUNTED or _is_extended(name)) and amount(value).denominator != 1:
        yield invalid_value(field, shown(value), "must be an integer")


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
                    yield invalid_value(where, shown(value), "must be a multiple of the page size")
        yield from _overcommit_errors(limits, requests, place.path)
        both = {*limits, *requests}
        if any(name.startswith(_HUGE) for name in both) and not both & {*_COMPUTE}:
            yield forbidden_field(place.path, "HugePages require cpu or memory")

    return check


def overhead_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the overhead of a pod, which is checked like container limits."""
    check = requirements_check(container_name_errors)
    return iter(check(Place({"limits": place.value}, place.path, place.name, place.holder)))


def _overcommit_errors(limits: dict[str, object], requests: dict[str, object], path: str) -> Iterator[SchemaError]:
    for name, value in requests.items():
        if name not in limits:
            if not may_be_overcommitted(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif amount(value) != amount(limits[name]) and not may_be_overcommitted(name):
            yield invalid_value(f"{path}.requests", shown(value), f"must be equal to {name} limit of {limits[name]}")
        elif amount(value) > amount(limits[name]):
            text_ = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", shown(value), text_)


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
