"""PriorityClass and RuntimeClass: validation and defaults.

Source: Kubernetes pkg/apis/scheduling/types.go, pkg/apis/scheduling/validation; Kubernetes
pkg/registry/node/runtimeclass/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS
from deltaloop.apiserver.core.kinds.resource_amounts import overhead_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field

SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_HIGHEST: Final = 1_000_000_000


def _value_errors(place: Place) -> Iterator[SchemaError]:
    name = text(at(place.fields, "metadata", "name"))
    if name not in SYSTEM_CLASSES:
        if name.startswith("system-"):
            text_ = (
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
            )
            yield forbidden_field("metadata.name", text_)
        elif integer(place.fields.get("value")) > _HIGHEST:
            yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    if integer(before.get("value")) != integer(after.get("value")):
        yield forbidden_field("value", "may not be changed in an update.")


def _prepare_new(priority_class: dict[str, object]) -> None:
    mapping(priority_class["metadata"])["generation"] = 1  # updates do not increment it


STRATEGY: Final = Strategy(
    prepare_new=_prepare_new,
    checks={"priority": _value_errors},
    validate_update=_update_errors,
)


def _warnings(runtime_class: Mapping[str, object]) -> Iterator[str]:
    for label in mapping(at(runtime_class, "scheduling", "nodeSelector")):
        if label in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}"


def _tolerations_errors(place: Place) -> Iterator[SchemaError]:
    seen: list[tuple[object, ...]] = []
    for number, toleration in enumerate(items(place.value)):
        key = tuple(text(at(toleration, name)) for name in ("key", "operator", "value", "effect"))
        if key in seen:
            yield duplicate(f"{place.path}[{number}]", toleration)
        seen.append(key)


def _overhead_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the fixed overhead of pods, which is checked like container limits."""
    return overhead_errors(Place(place.fields.get("podFixed"), place.path, place.name, place.holder))


RUNTIME_CLASS: Final = Strategy(
    checks={"class_overhead": _overhead_errors, "class_tolerations": _tolerations_errors},
    warn=_warnings,
)
