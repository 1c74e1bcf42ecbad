"""Read and validate the entries of ``status.conditions``.

Source: apimachinery pkg/apis/meta/v1 ``Condition`` and its validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeAlias

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource

Condition: TypeAlias = Mapping[str, object]

STATUSES: Final = ("True", "False", "Unknown")
LONGEST_MESSAGE: Final = 32768
_LONGEST_TYPE: Final = 316
_LONGEST_REASON: Final = 1024

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TYPE: Final = cache(lambda: re.compile(rf"({_LABEL}(\.{_LABEL})*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"))
_REASON: Final = cache(lambda: re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"))
_STATUS: Final = Path("status")


def conditions_of(obj: Resource) -> list[Condition]:
    """Return the entries of ``status.conditions`` that are objects, or raise MalformedObjectError."""
    return [entry for entry in items(mapping(_STATUS.get(obj)).get("conditions")) if is_mapping(entry)]


def is_outdated(obj: Resource, condition: Condition) -> bool:
    """Return whether a condition describes an older generation, given by it or the status."""
    observed = condition.get("observedGeneration")
    if observed is None:
        observed = mapping(_STATUS.get(obj)).get("observedGeneration")
    return isinstance(observed, int) and observed < obj.generation


def is_reason(text: str) -> bool:
    """Return whether a text is a valid reason of a condition, such as ``MinimumReplicasAvailable``."""
    return len(text) <= _LONGEST_REASON and _REASON().fullmatch(text) is not None


def check_condition_type(type_name: str) -> None:
    if len(type_name) > _LONGEST_TYPE or _TYPE().fullmatch(type_name) is None:
        raise InvalidArgumentError(
            f"must be a word such as Ready or example.com/Synced with at most {_LONGEST_TYPE} characters, "
            f"got {type_name[:_LONGEST_TYPE]!r}.",
            argument="condition type",
        )


def check_condition(type_name: str, status: str, *, reason: str, message: str) -> None:
    """Reject a condition that the API server would reject by InvalidArgumentError."""
    check_condition_type(type_name)
    if status not in STATUSES:
        raise InvalidArgumentError(
            f"must be one of {', '.join(STATUSES)}, got {status!r}.", argument=f"status of condition {type_name}"
        )
    if not is_reason(reason):
        raise InvalidArgumentError(
            "must be a word of letters, digits and underscores, such as MinimumReplicasAvailable, with at most "
            f"{_LONGEST_REASON} characters, got {reason[:_LONGEST_REASON]!r}.",
            argument=f"reason of condition {type_name}",
        )
    if len(message) > LONGEST_MESSAGE:
        raise InvalidArgumentError(
            f"must have at most {LONGEST_MESSAGE} characters, got {len(message)}.",
            argument=f"message of condition {type_name}",
        )
