"""PodDisruptionBudget: how many pods may be missing, or how many have to be there; not both.

Source: Kubernetes pkg/apis/policy/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import shown_selector
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value


def _either_errors(place: Place) -> Iterator[FieldError]:
    spec = place.fields
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        in_go = (
            f'{{"MinAvailable":{shown(spec["minAvailable"])},"Selector":{shown_selector(spec.get("selector"))},'
            f'"MaxUnavailable":{shown(spec["maxUnavailable"])},'
            f'"UnhealthyPodEvictionPolicy":{shown(spec.get("unhealthyPodEvictionPolicy"))}}}'
        )
        yield invalid_value(place.path, in_go, "minAvailable and maxUnavailable cannot be both set")


STRATEGY: Final = Strategy(
    checks={"one_share": _either_errors},
)
