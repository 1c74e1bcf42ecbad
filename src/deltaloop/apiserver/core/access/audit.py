"""Audit log lines: ``audit.k8s.io/v1`` Events at the level Metadata, which contain neither bodies nor secrets.

A watch is logged when it starts, other requests when they end.

Source: apiserver pkg/audit; pkg/apis/audit/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from deltaloop.api.redaction import redact
from deltaloop.api.times import format_micro_time, from_epoch
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import RequestInfo

_LONGEST_ANNOTATION: Final = 10 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """Facts about one request for the audit log; times are in seconds since 1970."""

    identity: str
    info: RequestInfo
    user: User | None
    uri: str
    source: str
    user_agent: str
    code: int
    began: float
    ended: float
    fault: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])


def audit_event(seen: Audited) -> dict[str, object]:
    """Return the audit event. Text that the client chose is redacted and truncated."""
    event: dict[str, object] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": seen.identity,
        "stage": "ResponseStarted" if seen.info.verb == "watch" and seen.code == 200 else "ResponseComplete",
        "requestURI": _text(seen.uri, 2048),
        "verb": seen.info.verb,
        "user": {"username": seen.user.name, "groups": list(seen.user.groups)} if seen.user is not None else {},
        "sourceIPs": [seen.source] if seen.source else [],
        "userAgent": _text(seen.user_agent, 256),
    }
    path = seen.info.resource
    if path is not None:
        reference = {
            "resource": path.plural,
            "namespace": path.namespace,
            "name": path.name,
            "apiGroup": path.group,
            "apiVersion": path.version,
            "subresource": path.subresource,
        }
        event["objectRef"] = {name: _text(value, 253) for name, value in reference.items() if value}
    event["responseStatus"] = {"metadata": {}, "code": seen.code}
    event["requestReceivedTimestamp"] = format_micro_time(from_epoch(seen.began))
    event["stageTimestamp"] = format_micro_time(from_epoch(seen.ended))
    fault = {"deltaloop/fault": seen.fault} if seen.fault else {}
    annotations = {name: _text(value, _LONGEST_ANNOTATION) for name, value in seen.annotations.items()} | fault
    if annotations:
        event["annotations"] = annotations
    return event


def _text(value: str, longest: int) -> str:
    return str(redact(value))[:longest]
