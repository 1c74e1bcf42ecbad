"""Names and forms of the objects in the cluster: the Leases of the members, and the ConfigMap with the map."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.leaderelection.config import LeaderElectionConfig
from deltaloop.leaderelection.core.record import record_from_lease
from deltaloop.sharding.core.membership import MemberLease
from deltaloop.sharding.core.planning import Report

SHARDS_LABEL: Final = "deltaloop.dev/shards"
LEAVING_LABEL: Final = "deltaloop.dev/leaving"
SEEN_LABEL: Final = "deltaloop.dev/seen"
KEY_LABEL: Final = "deltaloop.dev/shard-key"
_MAP: Final = "ranges"
_LOAD: Final = "load."


@final
class ShardOptions(Options, frozen=True, kw_only=True):
    """Options of the members of a sharded program; times are in seconds.

    Attributes:
        name: Name of the sharded program. Its members share this name, and the ConfigMap is named after it.
        namespace: Namespace of the Leases and the ConfigMap.
        key: Hashed part of a key: ``namespace``, so that all objects of a namespace belong to one member, or ``name``
            for the namespace and name. Servers can select by namespace only, so with ``name`` each member receives
            all changes. Cluster-scoped objects use the name.
        label: Key of a label. Its value replaces ``key``. Objects without it use the namespace.
        election: Durations of the members' Leases.
        drain_timeout: Time for the reconciles of a moving range to end before they are canceled.
    """

    name: str
    namespace: str
    key: Literal["namespace", "name"] = "namespace"
    label: str = ""
    election: LeaderElectionConfig = LeaderElectionConfig()
    drain_timeout: float = 20.0

    def __post_init__(self) -> None:
        check_types(self)
        for option in ("name", "namespace"):
            if not getattr(self, option):
                raise InvalidArgumentError("must not be empty.", argument=f"ShardOptions.{option}")
        if self.label and self.key != "namespace":
            raise InvalidArgumentError("must not be combined with key. Omit key.", argument="ShardOptions.label")
        if self.label and label_key_problems(self.label):
            problem = f"must be the key of a label, got {self.label!r}."
            raise InvalidArgumentError(problem, argument="ShardOptions.label")

    @property
    def map_name(self) -> str:
        """Return the name of the ConfigMap."""
        return f"{self.name}-shards"

    def lease_name(self, identity: str) -> str:
        """Return the name of a member's Lease."""
        return f"{self.name}-member-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"


def key_text(options: ShardOptions) -> str:
    return f"label.{options.label.replace('/', '_')}"[:63].rstrip("-._") if options.label else options.key


def member_lease(lease: Resource) -> tuple[MemberLease, str, str]:
    """Return a Lease, its holder and key."""
    record, _ = record_from_lease(lease.view())
    leaving = not record.holder_identity or lease.labels.get(LEAVING_LABEL) == "true"
    duration = float(max(record.lease_duration_seconds, 1))
    found = MemberLease(lease.name, lease.uid, lease.resource_version, duration, leaving)
    return found, record.holder_identity, lease.labels.get(KEY_LABEL, "")


def map_text(config_map: Resource) -> str:
    """Return the stored map, or an empty string."""
    data: Mapping[str, str] = config_map.get("data") or {}
    return data.get(_MAP, "")


def reports(config_map: Resource) -> dict[str, Report]:
    """Return the loads that members reported, by their uids."""
    found: dict[str, Report] = {}
    data: Mapping[str, str] = config_map.get("data") or {}
    for name, text in data.items():
        if name.startswith(_LOAD):
            try:
                found[name.removeprefix(_LOAD)] = msgspec.json.decode(text, type=Report)
            except msgspec.MsgspecError:  # of a person or another version
                continue
    return found


def report_patch(uid: str, report: Report) -> dict[str, Any]:
    return {"data": {f"{_LOAD}{uid}": msgspec.json.encode(report).decode()}}


def new_map(options: ShardOptions, text: str, known: Resource | None, *, reporters: frozenset[str]) -> dict[str, Any]:
    """Return the ConfigMap with another map, and without the loads of other members than ``reporters``."""
    if known is None:
        metadata = {"name": options.map_name, "namespace": options.namespace, "labels": {SHARDS_LABEL: options.name}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_MAP: text}}
    fields = known.to_dict()
    data: Mapping[str, str] = fields.get("data") or {}
    kept = {name: each for name, each in data.items() if name.removeprefix(_LOAD) in reporters}
    fields["data"] = {**kept, _MAP: text}
    return fields
