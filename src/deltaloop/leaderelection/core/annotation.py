"""Records in an annotation of a ConfigMap or Endpoints object, as JSON that is identical to the output of Go.

Candidates compare bytes, so a different format would count as a change.

Source: client-go v0.26 tools/leaderelection/resourcelock/{interface,configmaplock,endpointslock}.go; Go's
encoding/json; apimachinery pkg/apis/meta/v1/time.go.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final, cast

from deltaloop.api.times import WallTime, format_time
from deltaloop.leaderelection.core.record import UNREADABLE_RECORD, LeaderElectionRecord, record_from_fields

LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"

_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def encode_record(record: LeaderElectionRecord) -> str:
    """Encode a record as Go does. Fractions of a second are truncated."""
    fields = {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": record.lease_duration_seconds,
        "acquireTime": _written(record.acquire_time),
        "renewTime": _written(record.renew_time),
        "leaderTransitions": record.leader_transitions,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def decode_record(text: str) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Decode a record, and return it with the names of unreadable fields. As in Go, null is an empty record."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return UNREADABLE_RECORD, (LEADER_ANNOTATION,)
    if found is None:
        return LeaderElectionRecord(), ()
    if not isinstance(found, Mapping):
        return UNREADABLE_RECORD, (LEADER_ANNOTATION,)
    return record_from_fields(cast("Mapping[str, object]", found), transitions="leaderTransitions")


def record_from_annotations(annotations: Mapping[str, str]) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Read the record of an object. Without the annotation, the record is empty."""
    text = annotations.get(LEADER_ANNOTATION)
    return (LeaderElectionRecord(), ()) if text is None else decode_record(text)


def object_with_record(
    fields: Mapping[str, Any], record: LeaderElectionRecord, *, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    changed: dict[str, Any] = copy.deepcopy(dict(fields))
    metadata: dict[str, Any] = dict(changed.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), LEADER_ANNOTATION: encode_record(record)}
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    changed["metadata"] = metadata
    return changed


def _written(instant: WallTime | None) -> str | None:
    return None if instant is None else format_time(instant)
