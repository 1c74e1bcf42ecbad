"""IngressClass: what makes Ingresses work.

Source: Kubernetes pkg/apis/networking/validation/validation.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core.kinds.cells import NONE, marked_default
from deltaloop.apiserver.core.kinds.field_checks import one_of
from deltaloop.apiserver.core.metadata.rules import label_name_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.faults import FieldError, forbidden_field, required


def _parameters(ingress_class: Mapping[str, object]) -> str:
    parameters = at(ingress_class, "spec", "parameters")
    if parameters is None:
        return NONE
    group = text(at(parameters, "apiGroup"))
    return f"{text(at(parameters, 'kind'))}{group and f'.{group}'}/{text(at(parameters, 'name'))}"


def _reference_errors(place: Place) -> Iterator[FieldError]:
    """Yield what does not go together in the scope and the namespace of parameters."""
    scope, namespace, path = text(place.fields.get("scope")), place.fields.get("namespace"), place.below("namespace")
    if scope == "Namespace" and namespace is None:
        yield required(path, "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from label_name_errors(text(namespace), path)
    elif scope == "Cluster" and namespace is not None:
        yield forbidden_field(path, "`parameters.scope` is set to 'Cluster'")
    elif scope != "Cluster":
        yield from one_of(scope, place.below("scope"), ("Cluster", "Namespace"))


STRATEGY: Final = Strategy(
    checks={"class_parameters": _reference_errors},
    cells={
        "Name": marked_default("ingressclass.kubernetes.io/is-default-class"),
        "Parameters": _parameters,
    },
)
