"""ComponentStatus: etcd is healthy, and the absent controller manager and scheduler are not.

Source: Kubernetes pkg/registry/core/componentstatus, pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, items, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.strategy import Strategy


def _cells(component: Mapping[str, object], _now: float) -> dict[str, object]:
    healthy = next((item for item in items(component.get("conditions")) if at(item, "type") == "Healthy"), None)
    status = "Healthy" if at(healthy, "status") == "True" else "Unhealthy"
    return {
        "Status": "Unknown" if healthy is None else status,
        "Message": text(at(healthy, "message")),
        "Error": text(at(healthy, "error")),
    }


def _reported(name: str, status: str, message: str) -> Resource:
    conditions = [{"type": "Healthy", "status": status, "message": message}]
    return Resource.from_json(msgspec.json.encode({"metadata": {"name": name}, "conditions": conditions}))


def _absent(name: str, port: int) -> Resource:
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    return _reported(name, "False", f'Get "https://127.0.0.1:{port}/healthz": {refused}')


STRATEGY: Final = Strategy(
    reported=(_absent("controller-manager", 10_257), _reported("etcd-0", "True", "ok"), _absent("scheduler", 10_259)),
    timed_cells=_cells,
)
