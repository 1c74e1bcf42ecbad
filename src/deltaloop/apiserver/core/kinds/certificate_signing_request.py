"""CertificateSigningRequest: ``/approval`` sets its conditions, which a write to ``/status`` leaves to it.

Source: Kubernetes pkg/registry/certificates/certificates/strategy.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.strategy import Fields, Strategy
from deltaloop.schemas.json_values import at, mapping


def _approved(current: Fields, sent: Fields) -> Fields:
    return {**current, "status": {**mapping(current.get("status")), "conditions": at(sent, "status", "conditions")}}


STRATEGY: Final = Strategy(parts={"approval": _approved}, reset_fields={"status": {"f:status": {"f:conditions": {}}}})
