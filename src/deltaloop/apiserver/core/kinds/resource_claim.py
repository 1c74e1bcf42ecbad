"""ResourceClaim: the device that it stands for is allocated, reserved, or not yet.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import at, items
from deltaloop.apiserver.core.kinds.devices import finish_claim
from deltaloop.apiserver.core.strategy import Strategy


def _state(claim: Mapping[str, object]) -> str:
    states = ["deleted"] if at(claim, "metadata", "deletionTimestamp") is not None else []
    if at(claim, "status", "allocation") is not None:
        states += ["allocated", "reserved"] if items(at(claim, "status", "reservedFor")) else ["allocated"]
    return ",".join(states) or "pending"


def _request_defaults(request: dict[str, object]) -> None:
    request["allocationMode"] = request.get("allocationMode") or "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1


STRATEGY: Final = Strategy(
    defaults=dict.fromkeys(("resource.v1.DeviceSubRequest", "resource.v1.ExactDeviceRequest"), _request_defaults),
    finish_new=finish_claim,
    cells={"State": _state},
)
