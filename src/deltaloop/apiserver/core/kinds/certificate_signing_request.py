"""CertificateSigningRequest: ``/approval`` sets its conditions, which a write to ``/status`` leaves to it.

Source: Kubernetes pkg/registry/certificates/certificates/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.kinds.cells import NONE
from deltaloop.apiserver.core.kinds.certificate_checks import bundle_errors, legacy_signer_errors, request_errors
from deltaloop.apiserver.core.kinds.human_duration import human_duration
from deltaloop.apiserver.core.strategy import CLIENTS_METADATA, Strategy


def _approved(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    old, new = mapping(current["metadata"]), mapping(sent.get("metadata"))
    metadata = {name: value for name, value in old.items() if name not in CLIENTS_METADATA}
    metadata |= {name: value for name, value in new.items() if name in CLIENTS_METADATA}
    status = {**mapping(current.get("status")), "conditions": at(sent, "status", "conditions")}
    return {**current, "metadata": metadata, "status": status}


def _keep_spec(before: dict[str, object], after: dict[str, object]) -> None:
    after["spec"] = before.get("spec")


def _duration(request: Mapping[str, object]) -> str:
    seconds = at(request, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(integer(seconds))


def _condition(request: Mapping[str, object]) -> str:
    found = {text(at(item, "type")) for item in items(at(request, "status", "conditions"))}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    state += ",Failed" if "Failed" in found else ""
    return state + (",Issued" if at(request, "status", "certificate") else "")


BUNDLE: Final = Strategy(checks={"trust_bundle": bundle_errors})
STRATEGY: Final = Strategy(
    checks={"certificate_request": request_errors, "no_legacy_signer": legacy_signer_errors},
    prepare_update=_keep_spec,
    parts={"approval": _approved},
    reset_fields={
        "": {"f:spec": {}},
        "status": {"f:status": {"f:conditions": {}}},
        "approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
    },
    cells={
        "RequestedDuration": _duration,
        "Condition": _condition,
    },
)
