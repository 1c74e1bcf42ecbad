"""APIService: where a version of a group is served.

Source: kube-aggregator pkg/registry/apiservice/etcd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, items, text


def _service(api_service: Mapping[str, object]) -> str:
    service = at(api_service, "spec", "service")
    return "Local" if service is None else f"{text(at(service, 'namespace'))}/{text(at(service, 'name'))}"


def _available(api_service: Mapping[str, object]) -> str:
    conditions = items(at(api_service, "status", "conditions"))
    available = next((item for item in conditions if at(item, "type") == "Available"), None)
    status, reason = text(at(available, "status")), text(at(available, "reason"))
    if available is None:
        return "Unknown"
    return f"{status} ({reason})" if reason and status != "True" else status


STRATEGY: Final = Strategy(cells={"Service": _service, "Available": _available})
