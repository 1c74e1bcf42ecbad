"""ResourceQuota: what is used of what there may be.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.json_values import at, mapping
from deltaloop.schemas.quantity import amount


def _used(*, limits: bool) -> Cell:
    def cell(quota: Mapping[str, object]) -> str:
        hard, used = mapping(at(quota, "status", "hard")), mapping(at(quota, "status", "used"))
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _warnings(quota: Mapping[str, object]) -> Iterator[str]:
    hard = mapping(at(quota, "spec", "hard"))
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        asked, limit = f"requests.{name}", f"limits.{name}"
        if asked not in hard and name in ("cpu", "memory"):
            asked = name
        if asked in hard and limit in hard and amount(hard[asked]) > amount(hard[limit]):
            yield f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})"


STRATEGY: Final = Strategy(warn_new=_warnings, cells={"Request": _used(limits=False), "Limit": _used(limits=True)})
