"""View of the objects in a cluster that models read, and constructors of their steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, final

import msgspec

from deltaloop.api.json_values import at, integer, items, mapping, string_map, text
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep, EnvironmentVerb, EnvironmentWrite

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


def patches(
    obj: ClusterObject, body: Mapping[str, object], told: str, *, takes: tuple[float, float] = REACTS
) -> EnvironmentStep:
    """Return a step that patches an object, unless another writer changes it first."""
    metadata = {**mapping(body.get("metadata")), "resourceVersion": obj.version}
    write = EnvironmentWrite(
        verb=EnvironmentVerb.PATCH,
        kind=obj.kind,
        namespace=obj.namespace,
        name=obj.name,
        body={**body, "metadata": metadata},
    )
    return EnvironmentStep(about=obj.uid, told=told, takes=takes, write=write)


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
    write = EnvironmentWrite(
        verb=EnvironmentVerb.STATUS,
        kind=obj.kind,
        namespace=obj.namespace,
        name=obj.name,
        body={"metadata": {"resourceVersion": obj.version}, "status": changed},
    )
    return [EnvironmentStep(about=obj.uid, told=told or f"the status of {obj} is written", takes=takes, write=write)]


_ALWAYS_THERE: Final = {"ReplicaSet": ("replicas",), "StatefulSet": ("replicas", "availableReplicas")}


def deletes(
    obj: ClusterObject, told: str = "", *, takes: tuple[float, float] = REACTS, grace: int | None = None
) -> EnvironmentStep:
    """Return a step that deletes an object, but not a later object of the same name."""
    write = EnvironmentWrite(
        verb=EnvironmentVerb.DELETE,
        kind=obj.kind,
        namespace=obj.namespace,
        name=obj.name,
        uid=obj.uid,
        grace=grace,
    )
    return EnvironmentStep(about=obj.uid, told=told or f"{obj} is deleted", takes=takes, write=write)


def conditions(obj: ClusterObject, instant: str, wanted: Mapping[str, tuple[str, str, str]]) -> list[dict[str, object]]:
    """Return an object's conditions after changes; the transition time changes only with the status."""
    found = {text(at(each, "type")): mapping(each) for each in items(obj.status.get("conditions"))}
    for name, (status, reason, message) in wanted.items():
        before = found.get(name, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        said: dict[str, object] = {**before, "type": name, "status": status}
        said |= {"lastTransitionTime": since or instant}
        for field, value in (("reason", reason), ("message", message)):
            said.pop(field, None)
            said |= {field: value} if value else {}
        found[name] = said
    return [*found.values()]


def selects(selector: object, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector of plain labels; an empty selector never matches."""
    wanted = string_map(selector)
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())


def in_order(objects: Iterable[ClusterObject]) -> list[ClusterObject]:
    return sorted(objects, key=lambda obj: (obj.namespace, obj.name))
