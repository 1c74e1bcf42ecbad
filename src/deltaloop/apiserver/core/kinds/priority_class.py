"""PriorityClass: its number stays; those of the system are there without an object of theirs.

Source: Kubernetes pkg/apis/scheduling/types.go, pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, mapping, text
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.faults import FieldError, forbidden_field

SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_HIGHEST: Final = 1_000_000_000


def _value_errors(place: Place) -> Iterator[FieldError]:
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


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    if integer(before.get("value")) != integer(after.get("value")):
        yield forbidden_field("value", "may not be changed in an update.")


def _prepare_new(priority_class: dict[str, object]) -> None:
    mapping(priority_class["metadata"])["generation"] = 1  # which no update raises


STRATEGY: Final = Strategy(
    prepare_new=_prepare_new,
    checks={"priority": _value_errors},
    validate_update=_update_errors,
)
