"""The leader election record, and how a Lease holds it.

The record is what candidates tell each other. Its two times are for people: no candidate ever decides by them, because
they were written by another machine's clock. Everything else that a Lease carries (labels, annotations, fields of
``spec`` that we do not know) belongs to others and survives our updates.

Source: client-go tools/leaderelection/resourcelock/{interface,leaselock}.go; API doc coordination.k8s.io/v1 ``Lease``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.kinds import LEASE
from deltaloop.api.times import WallTime, format_micro_time, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionRecord:
    """Who leads, for how long, and since when.

    Attributes:
        holder_identity: The leader; empty if nobody leads.
        lease_duration_seconds: How long a candidate has to see no change before it may take over. 0 means that the
            record does not say; a candidate then uses its own setting.
        acquire_time: When the holder began to lead, by the holder's clock; None if the record does not say.
        renew_time: When the holder last renewed, by the holder's clock; None if the record does not say.
        leader_transitions: How often leadership went from one holder to another.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: WallTime | None = None
    renew_time: WallTime | None = None
    leader_transitions: int = 0


@dataclass(frozen=True, slots=True)
class LockState:
    """A record as it is stored, and the version that an update has to name.

    Attributes:
        record: What the lock says about its holder.
        version: Opaque; a Lease's ``resourceVersion``. It changes with every write.
        token: What makes a fencing token, if that is not the version: it grows with every write.
    """

    record: LeaderElectionRecord
    version: str
    token: str = ""

    @property
    def fencing_token(self) -> str:
        """The token that a term gets if this is its acquiring write."""
        return self.token or self.version


def whole_seconds(duration: float) -> int:
    """Round a lease duration up to whole seconds, at least 1: never shorter than what its holder counts on."""
    return max(1, math.ceil(duration))


def record_from_lease(lease: Mapping[str, Any]) -> LeaderElectionRecord:
    """Read the record from a Lease; what is missing or null becomes empty, 0 or None.

    Raises:
        MalformedObjectError: If a field has the wrong type; the message names the field, not its content.
    """
    found: object = lease.get("spec") or {}
    if not isinstance(found, Mapping):
        raise MalformedObjectError("spec of the Lease is not an object")
    spec = cast("Mapping[str, Any]", found)
    return LeaderElectionRecord(
        holder_identity=_text(spec, "holderIdentity"),
        lease_duration_seconds=_number(spec, "leaseDurationSeconds"),
        acquire_time=_time(spec, "acquireTime"),
        renew_time=_time(spec, "renewTime"),
        leader_transitions=_number(spec, "leaseTransitions"),
    )


def lease_with_record(
    lease: Mapping[str, Any], record: LeaderElectionRecord, *, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a copy of a Lease that holds ``record``; labels are added, everything else is kept."""
    fields: dict[str, Any] = copy.deepcopy(dict(lease))
    spec: dict[str, Any] = dict(fields.get("spec") or {})
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


def new_lease(
    record: LeaderElectionRecord, *, namespace: str, name: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a Lease to create that holds ``record``."""
    empty = {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"namespace": namespace, "name": name},
    }
    return lease_with_record(empty, record, labels=labels)


def _text(spec: Mapping[str, Any], field: str) -> str:
    value = spec.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedObjectError(f"spec.{field} of the Lease is not a string")
    return value


def _number(spec: Mapping[str, Any], field: str) -> int:
    value = spec.get(field)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedObjectError(f"spec.{field} of the Lease is not a whole number")
    return value


def _time(spec: Mapping[str, Any], field: str) -> WallTime | None:
    text = _text(spec, field)
    if not text:
        return None
    try:
        return parse_time(text)
    except InvalidArgumentError:
        raise MalformedObjectError(f"spec.{field} of the Lease is not an RFC 3339 time") from None
