"""Lease: a duration is more than 0, transitions are at least 0.

Source: Kubernetes pkg/apis/coordination/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.apiserver.core.strategy import Fields, Strategy
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at

_LEAST: Final = (
    ("leaseDurationSeconds", 1, "must be greater than 0"),
    ("leaseTransitions", 0, "must be greater than or equal to 0"),
)


def _errors(lease: Fields) -> Iterator[FieldError]:
    for name, least, text in _LEAST:
        value = at(lease, "spec", name)
        if isinstance(value, int) and value < least:
            yield invalid_value(f"spec.{name}", str(value), text)


STRATEGY: Final = Strategy(validate=_errors)
