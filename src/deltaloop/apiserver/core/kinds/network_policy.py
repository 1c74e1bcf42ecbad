"""NetworkPolicy: its ports and blocks of addresses; its selectors are not looked at.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import port_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import integer, items, texts


def _spec_defaults(spec: dict[str, object]) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _end_port_errors(place: Place) -> Iterator[FieldError]:
    start = place.beside("port")
    if start is None:
        yield invalid_value(place.path, shown(place.value), "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        yield invalid_value(place.path, shown(place.value), "may not be specified when `port` is non-numeric")
    else:
        if integer(place.value) < integer(start):
            yield invalid_value(place.path, shown(place.value), "must be greater than or equal to `port`")
        yield from port_errors(place.value, place.path)


STRATEGY: Final = Strategy(
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    checks={"end_port": _end_port_errors},
)
