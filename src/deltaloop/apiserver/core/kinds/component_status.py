"""ComponentStatus: what the server says of what it runs by.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, items, text


def _cells(component: Mapping[str, object], _now: float) -> dict[str, object]:
    healthy = next((item for item in items(component.get("conditions")) if at(item, "type") == "Healthy"), None)
    status = "Healthy" if at(healthy, "status") == "True" else "Unhealthy"
    return {
        "Status": "Unknown" if healthy is None else status,
        "Message": text(at(healthy, "message")),
        "Error": text(at(healthy, "error")),
    }


STRATEGY: Final = Strategy(timed_cells=_cells)
