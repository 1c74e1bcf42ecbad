"""ResourceQuota: what is used of what there may be.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.json_values import at, mapping


def _used(*, limits: bool) -> Cell:
    def cell(quota: Mapping[str, object]) -> str:
        hard, used = mapping(at(quota, "status", "hard")), mapping(at(quota, "status", "used"))
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


STRATEGY: Final = Strategy(cells={"Request": _used(limits=False), "Limit": _used(limits=True)})
