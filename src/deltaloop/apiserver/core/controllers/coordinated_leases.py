"""Coordinated leader election (KEP-4355): the server selects the holder of a Lease from its LeaseCandidates.

    1. If the Lease is valid and its holder is the best candidate, do nothing.
    2. If a candidate has not renewed for 5 s, ping all candidates (``pingTime``) and wait 5 s.
    3. Select the best of the alive candidates. If the Lease is missing or expired, set ``holderIdentity``. Otherwise
      set ``preferredHolder``, which asks the holder to release it.

The best candidate has the oldest emulation version, then the oldest binary version, then the oldest object. Candidates
that have not renewed for 30 minutes are deleted.

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
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.strategy import Flags, Moment
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update

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
    """Result of a pass over all elections; ``next_due`` None means not before a change."""

    wrote: bool
    next_due: float | None


@dataclass(frozen=True, slots=True)
class _Candidate:
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
        """Sort key, lower is better. None if a version is invalid."""
        emulated = _version(text(at(self.fields, "spec", "emulationVersion")))
        binary = _version(text(at(self.fields, "spec", "binaryVersion")))
        if emulated is None or binary is None:
            return None
        return emulated, binary, text(at(self.fields, "metadata", "creationTimestamp")), self.stored.name


@final
class LeaseElections:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    def run(self, *, moment: Moment) -> Decided:
        store = self._state.store
        before = store.revision
        due: list[float] = []
        elections: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
        for obj in store.list(_CANDIDATES).items:
            candidate = _Candidate(obj, decode_object(LEASE_CANDIDATES, obj))
            if candidate.renewed_at and candidate.renewed_at + VALID <= moment.now:
                delete(self._state.own_write(LEASE_CANDIDATES, obj.namespace, obj.name, moment), DeleteOptions())
                continue
            elections[obj.namespace, text(at(candidate.fields, "spec", "leaseName"))].append(candidate)
            if candidate.renewed_at:
                due.append(candidate.renewed_at + VALID)
        for (namespace, lease), candidates in sorted(elections.items()):
            if lease:
                again = self._step(namespace, lease, candidates, moment=moment)
                due += [again] if again is not None else []
        return Decided(store.revision != before, min(due, default=None))

    def _step(self, namespace: str, name: str, candidates: list[_Candidate], *, moment: Moment) -> float | None:
        """Take one step of an election, and return the time of the next pass."""
        served = self._state.registry.resource(kinds.LEASE)
        if served is None:
            return None
        found = self._state.store.get(_LEASES, f"{namespace}/{name}")
        lease = decode_object(served, found) if found is not None else None
        ends = _ends_at(lease)
        strategies = {text(at(item.fields, "spec", "strategy")) for item in candidates}
        if strategies != {OLDEST}:
            self._name_strategy(served, namespace, name, lease, strategies, moment=moment)
            return None
        holder = text(at(lease, "spec", "holderIdentity"))
        best = _best(candidates)
        if best is None:
            return None
        if lease is not None and holder == best.stored.name and moment.now < ends:
            return ends
        waiting = [item for item in candidates if item.pinged_at > item.renewed_at]
        if any(moment.now < item.pinged_at + ELECTION for item in waiting):
            return min(item.pinged_at + ELECTION for item in waiting if moment.now < item.pinged_at + ELECTION)
        alive = [item for item in candidates if moment.now < item.renewed_at + ELECTION]
        if len(alive) < len(candidates) and not waiting:
            for item in candidates:
                self._ping(item, moment=moment)
            return moment.now + ELECTION
        elected = _best(alive)
        if elected is None:
            # No candidate responded. A candidate that returns will renew, which triggers another pass.
            for item in waiting:
                self._ping(item, moment=moment)
            return moment.now + ELECTION
        self._give(served, namespace, name, lease, elected, expired=moment.now >= ends, moment=moment)
        return moment.now + LEASE_SECONDS if moment.now >= ends else ends

    def _ping(self, candidate: _Candidate, *, moment: Moment) -> None:
        spec = {**mapping(candidate.fields.get("spec")), "pingTime": format_micro_time(from_epoch(moment.now))}
        context = self._state.own_write(LEASE_CANDIDATES, candidate.stored.namespace, candidate.stored.name, moment)
        update(context, {**candidate.fields, "spec": spec})

    def _give(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        lease: Fields | None,
        elected: _Candidate,
        *,
        expired: bool,
        moment: Moment,
    ) -> None:
        winner, now = elected.stored.name, format_micro_time(from_epoch(moment.now))
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
        self._put(served, namespace, name, lease, spec, moment=moment)

    def _name_strategy(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        lease: Fields | None,
        strategies: set[str],
        *,
        moment: Moment,
    ) -> None:
        strategy = next(iter(strategies)) if len(strategies) == 1 else ""
        if not strategy or text(at(lease, "spec", "strategy")) == strategy:
            return
        spec = {**mapping(at(lease, "spec")), "strategy": strategy}
        self._put(served, namespace, name, lease, spec, moment=moment)

    def _put(
        self, served: ServedResource, namespace: str, name: str, lease: Fields | None, spec: Fields, *, moment: Moment
    ) -> None:
        if lease is None:
            fields: Fields = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
            create(self._state.own_write(served, namespace, "", moment), fields)
        elif spec != lease.get("spec"):
            update(self._state.own_write(served, namespace, name, moment), {**lease, "spec": spec})


def _best(candidates: list[_Candidate]) -> _Candidate | None:
    ranked = [(item.rank, item) for item in candidates]
    valid = [(rank, item) for rank, item in ranked if rank is not None]
    return min(valid, key=lambda pair: pair[0], default=(None, None))[1]


def _ends_at(lease: Fields | None) -> float:
    """Return the expiry time of a Lease, or 0 if it has no holder."""
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
