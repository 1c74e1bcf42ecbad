"""Lease: a duration is more than 0, transitions are at least 0.

Source: Kubernetes pkg/apis/coordination/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import not_negative
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at


def _errors(lease: Mapping[str, object]) -> Iterator[FieldError]:
    seconds = at(lease, "spec", "leaseDurationSeconds")
    if isinstance(seconds, int) and seconds < 1:
        yield invalid_value("spec.leaseDurationSeconds", str(seconds), "must be greater than 0")
    yield from not_negative(lease.get("spec"), "leaseTransitions", path="spec")


STRATEGY: Final = Strategy(validate=_errors, cells={"Holder": "spec.holderIdentity"})
