"""PodDisruptionBudget: how many pods may be missing, or how many have to be there; not both.

Source: Kubernetes pkg/apis/policy/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import field_checks as check
from deltaloop.apiserver.core.kinds.cells import number_at
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, mapping

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def _errors(budget: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(budget.get("spec"))
    names = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in names):
        in_go = (
            f'{{"MinAvailable":{check.shown(spec["minAvailable"])},"Selector":{check.shown_selector(spec.get("selector"))},'
            f'"MaxUnavailable":{check.shown(spec["maxUnavailable"])},'
            f'"UnhealthyPodEvictionPolicy":{check.shown(spec.get("unhealthyPodEvictionPolicy"))}}}'
        )
        yield invalid_value("spec", in_go, "minAvailable and maxUnavailable cannot be both set")
    for name in names:
        yield from check.share_errors(spec.get(name), f"spec.{name}")
        yield from check.most_percent_errors(spec.get(name), f"spec.{name}")
    yield from check.selector_errors(spec.get("selector"), "spec.selector")
    yield from check.set_to_one_of(spec, "unhealthyPodEvictionPolicy", _EVICTION_POLICIES, "spec")


def _share(name: str) -> Cell:
    def cell(budget: Mapping[str, object]) -> str:
        value = at(budget, "spec", name)
        return "N/A" if value is None else str(value)

    return cell


STRATEGY: Final = Strategy(
    validate=_errors,
    cells={
        "Min Available": _share("minAvailable"),
        "Max Unavailable": _share("maxUnavailable"),
        "Allowed Disruptions": number_at("status.disruptionsAllowed"),
    },
)
