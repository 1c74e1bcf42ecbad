"""IngressClass: what makes Ingresses work.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import NONE, marked_default
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, text


def _parameters(ingress_class: Mapping[str, object]) -> str:
    parameters = at(ingress_class, "spec", "parameters")
    if parameters is None:
        return NONE
    group = text(at(parameters, "apiGroup"))
    return f"{text(at(parameters, 'kind'))}{group and f'.{group}'}/{text(at(parameters, 'name'))}"


STRATEGY: Final = Strategy(
    cells={
        "Name": marked_default("ingressclass.kubernetes.io/is-default-class"),
        "Parameters": _parameters,
    }
)
