"""The approval that a CRD in a group of Kubernetes itself needs: an annotation, which a condition repeats.

Source: apiextensions-apiserver pkg/apihelpers (``GetAPIApprovalState``), pkg/controller/apiapproval.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from deltaloop.api.json_values import at, text

APPROVED: Final = "api-approved.kubernetes.io"
_RULE: Final = f'protected groups must have approval annotation "{APPROVED}"'
_SOURCE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


class Approval(NamedTuple):
    """What the annotation of a CRD says: ``status`` and ``reason`` of the condition, and its message."""

    status: str
    reason: str
    message: str

    @property
    def is_given(self) -> bool:
        """Whether a CRD may be stored with it: it is approved, or says that it is not."""
        return self.reason in ("ApprovedAnnotation", "UnapprovedAnnotation")


def approval_of(crd: dict[str, Any]) -> Approval | None:
    """Return the approval of a CRD; None if its group needs none."""
    group = f".{text(at(crd, 'spec', 'group'))}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return None
    given = text(at(crd, "metadata", "annotations", APPROVED))
    if not given:
        return Approval("False", "MissingAnnotation", f"{_RULE}, {_SOURCE}")
    if given.startswith("unapproved"):
        return Approval("False", "UnapprovedAnnotation", f"not approved: {msgspec.json.encode(given).decode()}")
    if _is_address(given):
        return Approval("True", "ApprovedAnnotation", f"approved in {given}")
    words = f'{_RULE} with either a URL or a reason starting with "unapproved", {_SOURCE}'
    return Approval("False", "InvalidAnnotation", words)


def _is_address(given: str) -> bool:
    try:
        parts = urlsplit(given)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)
