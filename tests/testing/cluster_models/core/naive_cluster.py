"""The simplest store that models can be tried on, in time that jumps: no server, no caches."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from deltaloop.api import kinds
from deltaloop.api.json_values import copied, integer, is_mapping, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.testing.cluster_models.core.cluster_view import (
    Agenda,
    ClusterObject,
    ClusterView,
    EnvironmentStep,
    EnvironmentVerb,
    EnvironmentWrite,
)
from deltaloop.testing.cluster_models.core.models import kinds_of, steps_of, with_what_they_need

Fields = dict[str, Any]
LABELS = {"app": "a"}


class NaiveCluster:
    """Objects by kind and name, models, and a clock."""

    def __init__(self, *models: str, seed: int = 0, fails: Callable[[ClusterObject], bool] = lambda _: False) -> None:
        self.models = with_what_they_need(models)
        self.kinds = {kind.kind: kind for kind in kinds_of(self.models)}
        self.objects: dict[tuple[str, str], Fields] = {}
        self.seed, self.fails = seed, fails
        self.agenda = Agenda(lambda what: random.Random(f"{seed} {what}").random())
        self.now, self.version = 0.0, 0
        self.log: list[str] = []
        self.checks: list[Callable[[], None]] = []

    # -- what a user does

    def create(self, kind: ResourceType[Any], name: str, **fields: Any) -> Fields:
        """Make an object of a namespace that has no name."""
        metadata: Fields = {"name": name, "uid": f"uid-{self._next()}", "generation": 1, **fields.pop("metadata", {})}
        if not metadata["name"]:
            metadata["name"] = f"{metadata['generateName']}{self.version}"
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **copied(fields)}
        metadata["resourceVersion"] = str(self.version)
        if kind in (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM):
            made["status"] = {"phase": "Pending"}
        assert (kind.kind, metadata["name"]) not in self.objects
        self.objects[kind.kind, metadata["name"]] = made
        return made

    def get(self, kind: ResourceType[Any], name: str) -> Fields:
        return self.objects[kind.kind, name]

    def all(self, kind: ResourceType[Any]) -> dict[str, Fields]:
        return {name: fields for (found, name), fields in sorted(self.objects.items()) if found == kind.kind}

    def patch(self, kind: ResourceType[Any], name: str, patch: Mapping[str, Any]) -> None:
        found = self.get(kind, name)
        before = copied(found.get("spec"))
        _merge(found, patch)
        found["metadata"]["resourceVersion"] = str(self._next())
        if found.get("spec") != before:
            found["metadata"]["generation"] += 1
        self._sweep(kind, name)

    def delete(self, kind: ResourceType[Any], name: str, *, grace: int | None = None) -> None:
        found = self.get(kind, name)
        runs = kind == kinds.POD and "nodeName" in mapping(found.get("spec"))
        seconds = (30 if grace is None else grace) if runs else 0
        found["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": seconds}
        found["metadata"]["resourceVersion"] = str(self._next())
        self._sweep(kind, name)

    # -- time

    def settle(self, *, within: float = 600.0) -> None:
        """Let time pass until nothing is left."""
        until = self.now + within
        while True:
            due = self.agenda.plan(steps_of(self.models, self.view()), now=self.now)
            for step in due:
                self._carry_out(step)
            if due:
                continue
            if self.agenda.next_at is None:
                return
            assert self.agenda.next_at <= until, self.agenda.left(now=self.now)
            self.now = self.agenda.next_at

    def view(self) -> ClusterView:
        objects = {
            kind: [ClusterObject(kind, Resource.from_dict(fields, kind)) for fields in self.all(kind).values()]
            for kind in self.kinds.values()
        }
        return ClusterView(
            objects,
            instant="2026-01-01T00:00:00Z",
            passed=self.agenda.passed,
            fails=self.fails,
            draw=lambda what: random.Random(f"{self.seed} {what}").random(),
        )

    # -- inside

    def _next(self) -> int:
        self.version += 1
        return self.version

    def _sweep(self, kind: ResourceType[Any], name: str) -> None:
        metadata = self.get(kind, name)["metadata"]
        held = metadata.get("finalizers") or integer(metadata.get("deletionGracePeriodSeconds"))
        if "deletionTimestamp" in metadata and not held:
            del self.objects[kind.kind, name]

    def _carry_out(self, step: EnvironmentStep) -> None:
        if step.write is not None and self._still_possible(step.write):
            self.log.append(f"{self.now:.2f} {step.told}")
            self._write(step.write)
            for check in self.checks:
                check()
        if step.write is not None:
            self.agenda.done(step)

    def _still_possible(self, write: EnvironmentWrite) -> bool:
        found = self.objects.get((write.kind.kind, write.name))
        if write.verb is EnvironmentVerb.CREATE:
            return found is None
        metadata = mapping(write.body.get("metadata"))
        told, uid = text(metadata.get("resourceVersion")), write.uid or text(metadata.get("uid"))
        if found is None or (uid and found["metadata"]["uid"] != uid):
            return False
        return not told or found["metadata"]["resourceVersion"] == told

    def _write(self, write: EnvironmentWrite) -> None:
        body = copied(dict(write.body))
        if write.verb is EnvironmentVerb.CREATE:
            self.create(write.kind, write.name, **body)
        elif write.verb is EnvironmentVerb.DELETE:
            self.delete(write.kind, write.name, grace=write.grace)
        elif write.verb is EnvironmentVerb.BIND:
            self.patch(write.kind, write.name, {"spec": {"nodeName": mapping(body["target"])["name"]}})
        else:
            self.patch(write.kind, write.name, body)


def _merge(into: Fields, patch: Mapping[str, Any]) -> None:
    for name, value in patch.items():
        if value is None:
            into.pop(name, None)
        elif is_mapping(value):
            _merge(into.setdefault(name, {}), mapping(value))
        else:
            into[name] = copied(value)


def template(image: str = "1", **spec: Any) -> Fields:
    """Return a template of Pods."""
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def ready(pod: Fields) -> bool:
    """Tell whether a Pod is ready."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
