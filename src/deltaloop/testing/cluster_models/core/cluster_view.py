"""View of the objects in a cluster that models read, and constructors of their steps.

    models return a step ──▶ new: draw its duration ──▶ wait ──▶ due ──▶ done, or failed and due later
                         ──▶ not returned any more: dropped

A step without a write is a mark. After its duration it is *passed*, as long as the models return it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, final

import msgspec

from deltaloop.api.json_values import at, integer, items, mapping, string_map, text
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class EnvironmentVerb(StrEnum):
    CREATE = "create"
    PATCH = "patch"
    STATUS = "status"
    BIND = "bind"
    DELETE = "delete"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentWrite:
    """Write of a model; the namespace is empty for cluster-scoped kinds, and the name if it is generated."""

    verb: EnvironmentVerb
    kind: ResourceType[Any]
    namespace: str
    name: str
    body: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    uid: str = ""
    grace: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStep:
    """Step of a model, which ``about`` (a uid) and ``told`` identify, of random seconds; ``write`` None is a mark."""

    about: str
    told: str
    takes: tuple[float, float]
    write: EnvironmentWrite | None

    @property
    def identity(self) -> tuple[str, str]:
        return self.about, self.told


@final
@dataclass(slots=True)
class _Entry:
    step: EnvironmentStep
    at: float
    failures: int = 0
    why: str = ""


@final
class Agenda:
    def __init__(self, draw: Callable[[str], float]) -> None:
        """Make an empty agenda; ``draw`` returns a number in [0, 1), always the same for the same text."""
        self._draw = draw
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._passed: set[tuple[str, str]] = set()
        self._often: Counter[str] = Counter()

    @property
    def passed(self) -> frozenset[tuple[str, str]]:
        return frozenset(self._passed)

    @property
    def next_at(self) -> float | None:
        """Time in seconds when the next step is due; None if no step waits."""
        return min((entry.at for entry in self._entries.values()), default=None)

    def plan(self, steps: Sequence[EnvironmentStep], *, now: float) -> tuple[EnvironmentStep, ...]:
        """Replace the waiting steps, and return those that are due, in the order of their due times."""
        said = {step.identity: step for step in steps}
        self._passed &= said.keys()
        entries: dict[tuple[str, str], _Entry] = {}
        for identity, step in said.items():
            if identity in self._passed:
                continue
            entry = entries[identity] = self._entries.get(identity) or _Entry(step, now + self._takes(step))
            entry.step = step
        self._entries = entries
        due = sorted((entry for entry in entries.values() if entry.at <= now), key=lambda entry: entry.at)
        for entry in due:
            if entry.step.write is None:
                self._passed.add(entry.step.identity)
                del self._entries[entry.step.identity]
        return tuple(entry.step for entry in due)

    def _takes(self, step: EnvironmentStep) -> float:
        self._often[step.told] += 1
        least, most = step.takes
        return least + (most - least) * self._draw(f"{step.told}, {self._often[step.told]}")

    def done(self, step: EnvironmentStep) -> None:
        """Remove a step that was carried out; if the models return it again, it waits again."""
        self._entries.pop(step.identity, None)

    def failed(self, step: EnvironmentStep, why: str, *, now: float) -> None:
        """Retry a failed step after a pause, which doubles from one second to a minute."""
        entry = self._entries.get(step.identity)
        if entry is not None:
            entry.at = now + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**entry.failures)
            entry.failures += 1
            entry.why = why

    def left(self, *, now: float) -> tuple[str, ...]:
        return tuple(
            f"the environment: {entry.step.told}"
            + (f", tried {entry.failures} times: {entry.why}" if entry.failures else "")
            + f", in {max(0.0, entry.at - now):.3g} s"
            for entry in sorted(self._entries.values(), key=lambda entry: entry.at)
        )


REACTS: Final = (0.01, 0.2)
"""Minimum and maximum seconds until a controller reacts to a change."""

NAME_SIGNS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names, without vowels to avoid words."""


@final
class ClusterObject:
    """Object that models read; do not change its ``fields``."""

    def __init__(self, kind: ResourceType[Any], obj: Resource) -> None:
        self.kind = kind
        self.resource = obj
        self.fields: dict[str, object] = obj.to_dict()
        self.metadata: dict[str, object] = mapping(self.fields.get("metadata"))
        self.spec: dict[str, object] = mapping(self.fields.get("spec"))
        self.status: dict[str, object] = mapping(self.fields.get("status"))
        self.name: str = obj.name
        self.namespace: str = obj.namespace
        self.uid: str = obj.uid
        self.version: str = obj.resource_version
        self.deleted: bool = obj.deletion_timestamp is not None
        owner = obj.controller_owner
        self.owner: str = "" if owner is None else owner.uid

    @cached_property
    def labels(self) -> dict[str, str]:
        return string_map(self.metadata.get("labels"))

    @property
    def annotations(self) -> dict[str, str]:
        return string_map(self.metadata.get("annotations"))

    @property
    def generation(self) -> int:
        return integer(self.metadata.get("generation"))

    @property
    def phase(self) -> str:
        return text(self.status.get("phase"))

    def condition(self, name: str) -> str:
        """Return the status of a condition; empty if it does not exist."""
        return next(
            (text(at(each, "status")) for each in items(self.status.get("conditions")) if at(each, "type") == name), ""
        )

    def __str__(self) -> str:
        return f"{self.kind.kind} {join_key(self.namespace, self.name)}"


@final
class ClusterView:
    """Objects of all kinds that models read, at one moment; ``instant`` is the time of day as text."""

    def __init__(
        self,
        objects: Mapping[ResourceType[Any], Sequence[ClusterObject]],
        *,
        instant: str,
        passed: frozenset[tuple[str, str]] = frozenset(),
        fails: Callable[[ClusterObject], bool] = lambda _: False,
        draw: Callable[[str], float] = lambda _: 0.5,
    ) -> None:
        """Make a view; ``passed`` has identities of marks, and ``draw`` returns a number in [0, 1) for a text."""
        self.instant = instant
        self.fails = fails
        self.draw = draw
        self._objects = objects
        self._passed = passed
        self._by_owner: dict[tuple[ResourceType[Any], str], list[ClusterObject]] = {}
        for kind, found in objects.items():
            for obj in found:
                if obj.owner:
                    self._by_owner.setdefault((kind, obj.owner), []).append(obj)

    def of(self, kind: ResourceType[Any]) -> Sequence[ClusterObject]:
        return self._objects.get(kind, ())

    def find(self, kind: ResourceType[Any], namespace: str, name: str) -> ClusterObject | None:
        return next((obj for obj in self.of(kind) if obj.name == name and obj.namespace == namespace), None)

    def controlled_by(self, owner: ClusterObject, kind: ResourceType[Any]) -> list[ClusterObject]:
        return self._by_owner.get((kind, owner.uid), [])

    def has_passed(self, mark: EnvironmentStep) -> bool:
        return mark.identity in self._passed


def reference_of(owner: ClusterObject) -> dict[str, object]:
    return {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def hash_of(template: object) -> str:
    encoded = msgspec.json.encode(template, order="deterministic")
    return "".join(NAME_SIGNS[byte % len(NAME_SIGNS)] for byte in hashlib.sha256(encoded).digest()[:10])


def creates(
    owner: ClusterObject, kind: ResourceType[Any], body: Mapping[str, object], told: str, *, name: str = ""
) -> EnvironmentStep:
    """Return a step that creates an object for an owner; without ``name``, the body needs a ``generateName``."""
    metadata = {**mapping(body.get("metadata")), **({"name": name} if name else {})}
    namespace = owner.namespace if kind.namespaced else ""
    write = EnvironmentWrite(
        verb=EnvironmentVerb.CREATE, kind=kind, namespace=namespace, name=name, body={**body, "metadata": metadata}
    )
    return EnvironmentStep(about=owner.uid, told=told, takes=REACTS, write=write)


def _write(obj: ClusterObject, verb: EnvironmentVerb, body: Mapping[str, object]) -> EnvironmentWrite:
    return EnvironmentWrite(verb=verb, kind=obj.kind, namespace=obj.namespace, name=obj.name, body=body)


def patches(obj: ClusterObject, body: Mapping[str, object], told: str) -> EnvironmentStep:
    """Return a step that patches an object, unless another writer changes it first."""
    metadata = {**mapping(body.get("metadata")), "resourceVersion": obj.version}
    write = _write(obj, EnvironmentVerb.PATCH, {**body, "metadata": metadata})
    return EnvironmentStep(about=obj.uid, told=told, takes=REACTS, write=write)


def reports(
    obj: ClusterObject, status: Mapping[str, object], told: str = "", *, takes: tuple[float, float] = REACTS
) -> list[EnvironmentStep]:
    """Return a step that writes a whole status, or none if it is unchanged; zero values are omitted, as in Go."""
    wanted = {name: value for name, value in status.items() if value not in (None, 0, "", [], {})}
    wanted |= {name: 0 for name in _ALWAYS_THERE.get(obj.kind.kind, ()) if name not in wanted}
    if wanted == obj.status:
        return []
    changed: dict[str, object] = {name: None for name in obj.status if name not in wanted}
    changed |= {name: value for name, value in wanted.items() if obj.status.get(name) != value}
    body = {"metadata": {"resourceVersion": obj.version}, "status": changed}
    write = _write(obj, EnvironmentVerb.STATUS, body)
    return [EnvironmentStep(about=obj.uid, told=told or f"the status of {obj} is written", takes=takes, write=write)]


_ALWAYS_THERE: Final = {"ReplicaSet": ("replicas",), "StatefulSet": ("replicas", "availableReplicas")}


def deletes(
    obj: ClusterObject, told: str = "", *, takes: tuple[float, float] = REACTS, grace: int | None = None
) -> EnvironmentStep:
    """Return a step that deletes an object, but not a later object of the same name."""
    write = replace(_write(obj, EnvironmentVerb.DELETE, {}), uid=obj.uid, grace=grace)
    return EnvironmentStep(about=obj.uid, told=told or f"{obj} is deleted", takes=takes, write=write)


def conditions(obj: ClusterObject, instant: str, wanted: Mapping[str, tuple[str, str, str]]) -> list[dict[str, object]]:
    """Return an object's conditions after changes; the transition time changes only with the status."""
    found = {text(at(each, "type")): mapping(each) for each in items(obj.status.get("conditions"))}
    for name, (status, reason, message) in wanted.items():
        before = found.get(name, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        said: dict[str, object] = {**before, "type": name, "status": status}
        said |= {"lastTransitionTime": since or instant}
        for part, value in (("reason", reason), ("message", message)):
            said.pop(part, None)
            said |= {part: value} if value else {}
        found[name] = said
    return [*found.values()]


def selects(selector: object, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector of plain labels; an empty selector never matches."""
    wanted = string_map(selector)
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())


def in_order(objects: Iterable[ClusterObject]) -> list[ClusterObject]:
    return sorted(objects, key=lambda obj: (obj.namespace, obj.name))
