"""PodCertificateRequest: whom it is for, and what has become of it.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import condition, labels_at
from deltaloop.apiserver.core.strategy import Strategy


def _state(request: Mapping[str, object]) -> str:
    return next((name for name in ("Issued", "Denied", "Failed") if condition(request, name) == "True"), "Pending")


STRATEGY: Final = Strategy(
    cells={
        "PodName": "spec.podName",
        "ServiceAccountName": "spec.serviceAccountName",
        "NodeName": "spec.nodeName",
        "SignerName": "spec.signerName",
        "State": _state,
        "UnverifiedUserAnnotations": labels_at("spec.unverifiedUserAnnotations"),
    }
)
