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
from typing import Any, Final, cast

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import LEASE
from deltaloop.api.times import WallTime, format_micro_time, parse_time

LARGEST_NUMBER: Final = 2**31 - 1
"""Largest number that a field of a Lease can hold."""

UNKNOWN_LEADER: Final = "leaderelection.k8s.io/unknown"
"""Identity of a holder that is not known."""


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


UNREADABLE_RECORD: Final = LeaderElectionRecord(holder_identity=UNKNOWN_LEADER)
"""Stands for a record of which nothing can be read."""


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


def record_from_lease(lease: Mapping[str, Any]) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Read the record from a Lease; what is missing or null becomes empty, 0 or None.

    Returns:
        The record, and the names of fields that cannot be read (see ``record_from_fields``).
    """
    found: object = lease.get("spec")
    if found is None:
        return LeaderElectionRecord(), ()
    if not isinstance(found, Mapping):
        return UNREADABLE_RECORD, ("spec",)
    return record_from_fields(cast("Mapping[str, object]", found), transitions="leaseTransitions")


def record_from_fields(
    fields: Mapping[str, object], *, transitions: str
) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
    """Read a record that any program may have written, so that no content keeps all candidates out.

    A holder that cannot be read is an unknown one: it keeps the lock as long as the record changes. A duration that
    cannot be read is 0, so that a candidate uses its own. Times are never used for decisions.

    Args:
        fields: Fields of the record.
        transitions: Name of the field that counts changes of the holder.

    Returns:
        The record, and the names of fields that cannot be read.
    """
    unreadable: list[str] = []

    def text(field: str, instead: str) -> str:
        value = fields.get(field)
        if value is None or isinstance(value, str):
            return (value or "").encode(errors="replace").decode()  # JSON can hold half of a surrogate pair
        unreadable.append(field)
        return instead

    def number(field: str) -> int:
        value = fields.get(field)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = float(value)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - not a number
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
    """Return a copy of a Lease that holds ``record``; labels are added, everything else is kept."""
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
