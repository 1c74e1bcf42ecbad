"""The audit line: who asked for what, and what came of it; no body, and nothing secret.

A line is an ``audit.k8s.io/v1`` Event at the level Metadata, as the real server writes it to ``--audit-log-path``, so
tools that read those read these. A watch has its line when it starts, everything else when it ends.

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
    """The facts of one request.

    Attributes:
        identity: A new identifier.
        info: What it was about.
        user: Who sent it; None if that could not be found out.
        uri: Path and query as sent.
        source: Address of the client.
        user_agent: The ``User-Agent`` header as it was sent.
        code: HTTP status of the answer; 0 if there was none.
        began: When it came, in seconds since 1970.
        ended: When it was answered.
        fault: The fault that struck it, or "".
        annotations: What admission has noted.
    """

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
    """Return the line as an object; every text that the client chose is redacted and cut."""
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
