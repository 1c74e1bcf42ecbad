"""Coordinated leader election (KEP-4355): who holds a Lease is decided by the server, from LeaseCandidates.

For each Lease that candidates name, step by step:

    the Lease is held, has not expired, and its holder is the best candidate    nothing to do
    some candidate has not said that it is alive for 5 s                        ping all (``pingTime``), wait 5 s
    of those who are alive, the best is chosen; and then the Lease
        is missing, or has expired         is theirs (``holderIdentity``)
        is held by another                 names them as ``preferredHolder``; the holder is to give it up

The best is the one with the oldest emulation version, then the oldest binary version, then the oldest object.
Candidates that say nothing for 30 minutes are deleted. Only the strategy ``OldestEmulationVersion`` is decided here;
with another one, the Lease gets its ``strategy`` and somebody else decides.

Source: KEP-4355; Kubernetes pkg/controlplane/controller/leaderelection (election.go, leaderelection_controller.go,
leasecandidategc_controller.go).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.times import format_micro_time, from_epoch, parse_time
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.strategy import Flags
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.operations import Operations

ELECTION: Final = 5.0
LEASE_SECONDS: Final = 5
VALID: Final = 30 * 60.0
OLDEST: Final = "OldestEmulationVersion"
_LEASE_CANDIDATE: Final = ResourceType[Resource]("coordination.k8s.io", "v1beta1", "LeaseCandidate", "leasecandidates")
LEASE_CANDIDATES: Final = ServedResource(
    type=_LEASE_CANDIDATE,
    codec=BuiltInCodec(_LEASE_CANDIDATE),
    singular="leasecandidate",
    list_kind="LeaseCandidateList",
    priority=(16_500, 13),
    flags=Flags(unconditional_update=False, any_finalizer=True),
    etcd_prefix="leasecandidates",
)
_CANDIDATES: Final = LEASE_CANDIDATES.type.group_resource
_LEASES: Final = kinds.LEASE.group_resource
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(-[0-9A-Za-z.-]+)?(\+.*)?")
Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Decided:
    """What one look at all elections did.

    Attributes:
        wrote: Whether anything was written.
        next_due: When to look again if nothing changes; None is never.
    """

    wrote: bool
    next_due: float | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    served: ServedResource
    stored: Resource
    fields: Fields

    @property
    def renewed_at(self) -> float:
        return _instant(at(self.fields, "spec", "renewTime"))

    @property
    def pinged_at(self) -> float:
        return _instant(at(self.fields, "spec", "pingTime"))

    @property
    def rank(self) -> tuple[object, ...] | None:
        """Lower is better; None if a version is none."""
        emulated = _version(text(at(self.fields, "spec", "emulationVersion")))
        binary = _version(text(at(self.fields, "spec", "binaryVersion")))
        if emulated is None or binary is None:
            return None
        return emulated, binary, text(at(self.fields, "metadata", "creationTimestamp")), self.stored.name


@final
class LeaseElections:
    """All elections of one server."""

    def __init__(self, operations: Operations) -> None:
        """Decide over this store."""
        self._operations = operations

    def run(self, *, stamp: Stamp) -> Decided:
        """Take the next step of every election that has one."""
        store = self._operations.store
        before = store.revision
        due: list[float] = []
        elections: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
        for obj in store.list(_CANDIDATES).items:
            candidate = _Candidate(LEASE_CANDIDATES, obj, decode_object(LEASE_CANDIDATES, obj))
            if candidate.renewed_at and candidate.renewed_at + VALID <= stamp.now:
                self._operations.delete(LEASE_CANDIDATES, obj.namespace, obj.name, DeleteOptions(), stamp=stamp)
                continue
            elections[obj.namespace, text(at(candidate.fields, "spec", "leaseName"))].append(candidate)
            if candidate.renewed_at:
                due.append(candidate.renewed_at + VALID)
        for (namespace, lease), candidates in sorted(elections.items()):
            if lease:
                again = self._step(namespace, lease, candidates, stamp=stamp)
                due += [again] if again is not None else []
        return Decided(store.revision != before, min(due, default=None))

    def _step(self, namespace: str, name: str, candidates: list[_Candidate], *, stamp: Stamp) -> float | None:
        """Take one step of one election, and return when to look again."""
        served = self._operations.registry.resource(kinds.LEASE)
        if served is None:
            return None
        found = self._operations.store.get(_LEASES, f"{namespace}/{name}")
        lease = decode_object(served, found) if found is not None else None
        ends = _ends_at(lease)
        strategies = {text(at(item.fields, "spec", "strategy")) for item in candidates}
        if strategies != {OLDEST}:
            self._name_strategy(served, namespace, name, lease, strategies, stamp=stamp)
            return None
        holder = text(at(lease, "spec", "holderIdentity"))
        best = _best(candidates)
        if best is None:
            return None
        if lease is not None and holder == best.stored.name and stamp.now < ends:
            return ends
        waiting = [item for item in candidates if item.pinged_at > item.renewed_at]
        if any(stamp.now < item.pinged_at + ELECTION for item in waiting):
            return min(item.pinged_at + ELECTION for item in waiting if stamp.now < item.pinged_at + ELECTION)
        alive = [item for item in candidates if stamp.now < item.renewed_at + ELECTION]
        if len(alive) < len(candidates) and not waiting:
            for item in candidates:
                self._ping(item, stamp=stamp)
            return stamp.now + ELECTION
        elected = _best(alive)
        if elected is None:
            # Nobody answered; those who come back renew, and that is a change.
            return self._forget_pings(waiting, stamp=stamp)
        self._give(served, namespace, name, lease, elected, expired=stamp.now >= ends, stamp=stamp)
        return stamp.now + LEASE_SECONDS if stamp.now >= ends else ends

    def _forget_pings(self, waiting: list[_Candidate], *, stamp: Stamp) -> float:
        for item in waiting:
            self._ping(item, stamp=stamp)
        return stamp.now + ELECTION

    def _ping(self, candidate: _Candidate, *, stamp: Stamp) -> None:
        spec = {**mapping(candidate.fields.get("spec")), "pingTime": format_micro_time(from_epoch(stamp.now))}
        self._write(candidate.served, candidate.stored, {**candidate.fields, "spec": spec}, stamp=stamp)

    def _give(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        lease: Fields | None,
        elected: _Candidate,
        *,
        expired: bool,
        stamp: Stamp,
    ) -> None:
        winner, now = elected.stored.name, format_micro_time(from_epoch(stamp.now))
        old = mapping(at(lease, "spec"))
        if expired:
            spec = {name: value for name, value in old.items() if name != "preferredHolder"}
            changed = bool(old) and text(old.get("holderIdentity")) != winner
            spec |= {
                "holderIdentity": winner,
                "strategy": OLDEST,
                "acquireTime": now,
                "renewTime": now,
                "leaseDurationSeconds": integer(old.get("leaseDurationSeconds")) or LEASE_SECONDS,
                "leaseTransitions": integer(old.get("leaseTransitions")) + int(changed),
            }
        elif text(old.get("holderIdentity")) == winner:
            return
        else:
            spec = {**old, "strategy": OLDEST, "preferredHolder": winner}
        if lease is None:
            fields = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
            self._operations.create(served, namespace, fields, stamp=stamp)
        elif spec != old:
            self._operations.update(served, namespace, name, {**lease, "spec": spec}, stamp=stamp)

    def _name_strategy(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        lease: Fields | None,
        strategies: set[str],
        *,
        stamp: Stamp,
    ) -> None:
        strategy = next(iter(strategies)) if len(strategies) == 1 else ""
        if not strategy or text(at(lease, "spec", "strategy")) == strategy:
            return
        if lease is None:
            fields = {"metadata": {"name": name, "namespace": namespace}, "spec": {"strategy": strategy}}
            self._operations.create(served, namespace, fields, stamp=stamp)
            return
        spec = {**mapping(lease.get("spec")), "strategy": strategy}
        self._operations.update(served, namespace, name, {**lease, "spec": spec}, stamp=stamp)

    def _write(self, served: ServedResource, obj: Resource, fields: Fields, *, stamp: Stamp) -> None:
        self._operations.update(served, obj.namespace, obj.name, fields, stamp=stamp)


def _best(candidates: list[_Candidate]) -> _Candidate | None:
    ranked = [(item.rank, item) for item in candidates]
    valid = [(rank, item) for rank, item in ranked if rank is not None]
    return min(valid, key=lambda pair: pair[0], default=(None, None))[1]


def _ends_at(lease: Fields | None) -> float:
    """Return when a Lease expires; 0 if nobody holds it."""
    spec = mapping(at(lease, "spec"))
    if not text(spec.get("holderIdentity")):
        return 0.0
    renewed, seconds = _instant(spec.get("renewTime")), spec.get("leaseDurationSeconds")
    return renewed + seconds if renewed and isinstance(seconds, int) else 0.0


def _version(written: str) -> tuple[int, int, int, bool, str] | None:
    match = _VERSION.fullmatch(written)
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0), match[4] is None, match[4] or ""


def _instant(value: object) -> float:
    if not isinstance(value, str):
        return 0.0
    try:
        return parse_time(value).timestamp()
    except ValueError:
        return 0.0
