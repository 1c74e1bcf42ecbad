"""DeviceTaintRule: a taint says since when it is there.

Source: Kubernetes pkg/apis/resource/v1/defaults.go (``SetDefaults_DeviceTaint``).
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import at, is_mapping
from deltaloop.apiserver.core.strategy import Given, Stored, Strategy


def _finish_new(rule: dict[str, object], _store: Stored, given: Given) -> tuple[()]:
    taint = at(rule, "spec", "taint")
    if is_mapping(taint):
        taint.setdefault("timeAdded", given.time)
    return ()


STRATEGY: Final = Strategy(
    finish_new=_finish_new,
    finish_update=lambda _before, after, store, given: _finish_new(after, store, given),
)
