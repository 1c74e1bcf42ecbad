"""Leader election records, and their form in a Lease, or in an annotation of a ConfigMap or Endpoints object.

The two times of a record are informational, because they come from another machine's clock. An update keeps all other
contents of the object. The JSON of an annotation is identical to the output of Go: candidates compare bytes, so a
different format would count as a change.

Source: client-go tools/leaderelection/resourcelock/{interface,leaselock}.go; API doc coordination.k8s.io/v1 ``Lease``;
client-go v0.26 tools/leaderelection/resourcelock/{configmaplock,endpointslock}.go; Go's encoding/json; apimachinery
pkg/apis/meta/v1/time.go.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.times import WallTime, format_micro_time, format_time, parse_time

LARGEST_NUMBER: Final = 2**31 - 1
"""Largest number that a field of a Lease can hold."""

UNKNOWN_LEADER: Final = "leaderelection.k8s.io/unknown"
"""Identity of an unknown holder."""

LEADER_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"

_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionRecord:
    """Record of the current leader.

    Attributes:
        holder_identity: Identity of the leader. It is empty without a leader.
        lease_duration_seconds: Seconds without a change after which another candidate can take over. With 0, each
            candidate uses its own setting.
        acquire_time: Time at which the holder became the leader, on the holder's clock. None if it is not recorded.
        renew_time: Time of the holder's last renewal, on the holder's clock. None if it is not recorded.
        leader_transitions: Number of leader changes.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: WallTime | None = None
    renew_time: WallTime | None = None
    leader_transitions: int = 0


UNREADABLE_RECORD: Final = LeaderElectionRecord(holder_identity=UNKNOWN_LEADER)
"""Placeholder for a record that is not readable at all."""


@dataclass(frozen=True, slots=True)
class LockState:
    """Stored record and its version.

    Attributes:
        record: Stored record.
        version: Opaque version for updates, for example the ``resourceVersion`` of a Lease. It changes with every
            write.
        token: Fencing token, if it differs from the version. It increases with every write.
    """

    record: LeaderElectionRecord
    version: str
    token: str = ""

    @property
    def fencing_token(self) -> str:
        """Fencing token of a term that this write starts."""
        return self.token or self.version


def whole_seconds(duration: float) -> int:
    """Round a lease duration up to whole seconds, at least 1, so that it is never shorter than the holder expects."""
    return max(1, math.ceil(duration))


def record_from_lease(lease: Mapping[str, Any]) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Read the record and the names of unreadable fields. Missing fields and nulls become empty, 0 or None."""
    found: object = lease.get("spec")
    if found is None:
        return LeaderElectionRecord(), ()
    if not isinstance(found, Mapping):
        return UNREADABLE_RECORD, ("spec",)
    return record_from_fields(cast("Mapping[str, object]", found), transitions="leaseTransitions")


def record_from_fields(
    fields: Mapping[str, object], *, transitions: str
) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Read a record leniently, and return it with the names of unreadable fields.

    No content of a record may keep all candidates out: an unreadable holder keeps the lock as long as the record
    changes, and an unreadable duration is 0, so each candidate uses its own setting.
    """
    unreadable: list[str] = []

    def text(field: str, instead: str) -> str:
        value = fields.get(field)
        if value is None or isinstance(value, str):
            return (value or "").encode(errors="replace").decode()  # JSON can contain lone surrogates
        unreadable.append(field)
        return instead

    def number(field: str) -> int:
        value = fields.get(field)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = float(value)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
            unreadable.append(field)
            return 0
        return math.ceil(min(max(value, 0), LARGEST_NUMBER))

    def time(field: str) -> WallTime | None:
        value = text(field, "")
        try:
            return parse_time(value) if value else None
        except InvalidArgumentError:
            unreadable.append(field)
            return None

    record = LeaderElectionRecord(
        holder_identity=text("holderIdentity", UNKNOWN_LEADER),
        lease_duration_seconds=number("leaseDurationSeconds"),
        acquire_time=time("acquireTime"),
        renew_time=time("renewTime"),
        leader_transitions=number(transitions),
    )
    return record, tuple(unreadable)


def lease_with_record(
    lease: Mapping[str, Any], record: LeaderElectionRecord, *, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    fields: dict[str, Any] = copy.deepcopy(dict(lease))
    old: object = fields.get("spec")
    spec: dict[str, Any] = dict(cast("Mapping[str, Any]", old)) if isinstance(old, Mapping) else {}
    spec["holderIdentity"] = record.holder_identity
    spec["leaseDurationSeconds"] = record.lease_duration_seconds
    spec["leaseTransitions"] = record.leader_transitions
    for name, instant in (("acquireTime", record.acquire_time), ("renewTime", record.renew_time)):
        if instant is None:
            spec.pop(name, None)
        else:
            spec[name] = format_micro_time(instant)
    fields["spec"] = spec
    if labels:
        metadata: dict[str, Any] = dict(fields.get("metadata") or {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        fields["metadata"] = metadata
    return fields


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
