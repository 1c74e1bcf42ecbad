"""How much of each resource a pod requests, or is limited to: that of its containers, or its own.

    containers                 all together
    init containers            the largest of them, since they run one after the other
    init containers that stay  count as containers, and beside each init container that is started after them
    the pod's own              stand for the sum, of cpu and memory

Source: Kubernetes component-helpers/resource/helpers.go, plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, items, mapping
from deltaloop.schemas.quantity import added, amount

Amounts: TypeAlias = dict[str, str]
OF_PODS: Final = ("cpu", "memory")


def amounts(value: object) -> Amounts:
    """Return a list of resources as texts."""
    return {name: str(quantity) for name, quantity in mapping(value).items()}


def pod_amounts(spec: Mapping[str, object], field: str, *, overhead: bool) -> Amounts:
    """Return a pod's ``requests`` or ``limits``.

    Args:
        spec: The pod's spec.
        field: ``requests`` or ``limits``.
        overhead: Whether what running the pod takes by itself counts; to limits it is added where there is one.
    """
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
    """Return both amounts together, or the first less the second if ``times`` is -1."""
    return first | {name: added(first.get(name, "0"), second[name], times=times) for name in second}


def _largest(first: Amounts, second: Amounts) -> Amounts:
    larger = {name for name in second if name not in first or amount(second[name]) > amount(first[name])}
    return first | {name: second[name] for name in larger}
