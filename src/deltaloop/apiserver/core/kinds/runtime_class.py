"""RuntimeClass: the nodes that run it.

Source: Kubernetes pkg/registry/node/runtimeclass/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS
from deltaloop.apiserver.core.kinds.resource_amounts import overhead_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, duplicate


def _warnings(runtime_class: Mapping[str, object]) -> Iterator[str]:
    for label in mapping(at(runtime_class, "scheduling", "nodeSelector")):
        if label in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}"


def _tolerations_errors(place: Place) -> Iterator[FieldError]:
    seen: list[tuple[object, ...]] = []
    for number, toleration in enumerate(items(place.value)):
        key = tuple(text(at(toleration, name)) for name in ("key", "operator", "value", "effect"))
        if key in seen:
            yield duplicate(f"{place.path}[{number}]", shown(toleration))
        seen.append(key)


def _overhead_errors(place: Place) -> Iterator[FieldError]:
    """Yield what is wrong with the fixed overhead of pods, which is looked at as the limits of a container."""
    return overhead_errors(Place(place.fields.get("podFixed"), place.path, place.name, place.holder))


STRATEGY: Final = Strategy(
    checks={"class_overhead": _overhead_errors, "class_tolerations": _tolerations_errors},
    warn=_warnings,
)
