"""DeviceTaintRule: a taint says since when it is there.

Source: Kubernetes pkg/apis/resource/v1/defaults.go (``SetDefaults_DeviceTaint``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.human_duration import age
from deltaloop.apiserver.core.strategy import Given, Stored, Strategy
from deltaloop.schemas.json_values import at, is_mapping


def _finish_new(rule: dict[str, object], _store: Stored, given: Given) -> tuple[()]:
    taint = at(rule, "spec", "taint")
    if is_mapping(taint):
        taint.setdefault("timeAdded", given.time)
    return ()


def _time_added(rule: Mapping[str, object], now: float) -> dict[str, object]:
    return {"TimeAdded": age(at(rule, "spec", "taint", "timeAdded"), now, missing="")}


STRATEGY: Final = Strategy(
    finish_new=_finish_new,
    finish_update=lambda _before, after, store, given: _finish_new(after, store, given),
    cells={"Key": "spec.taint.key", "Value": "spec.taint.value", "Effect": "spec.taint.effect"},
    timed_cells=_time_added,
)
