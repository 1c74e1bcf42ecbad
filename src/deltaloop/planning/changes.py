"""Changes between the objects before and after a run, with their controllers and causes."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

import msgspec

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text, value_type
from deltaloop.api.redaction import REDACTED
from deltaloop.api.resource import Resource
from deltaloop.apiserver.embedding import StoredObjects
from deltaloop.planning.core.differences import field_changes
from deltaloop.planning.core.result import Action, FieldChange, ObjectChange, Plan, Restart
from deltaloop.planning.recording import WriteNote

Tables = Mapping[str, Mapping[str, Resource]]
Fields = Mapping[str, object]

_IGNORED: Final = frozenset(
    {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "apiservices.apiregistration.k8s.io"}
)
_OWN: Final = ("admissionregistration.k8s.io", "apiextensions.k8s.io")
_CONVERSION: Final = "spec.conversion"
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
INSTALLATION: Final = "installation"
"""Controller of changes that happen before the program starts, such as CRDs."""
_CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource
_SHORTEST_SECRET: Final = 6
_MOST_SECRETS: Final = 10_000


@final
class Changes:
    def __init__(
        self,
        stored: StoredObjects,
        before: Tables,
        notes: Mapping[tuple[str, str], WriteNote],
        defined: Mapping[tuple[str, str], str],
    ) -> None:
        self._stored = stored
        self._notes = notes
        self._defined = defined
        self._found = dict(self._compared(before, stored.tables()))
        self._gone = {obj.uid for one, obj in self._removed(before) if one}

    def _compared(self, before: Tables, after: Tables) -> Iterator[tuple[tuple[str, str], tuple[Any, Any]]]:
        for resource in sorted({*before, *after} - _IGNORED):
            one, other = before.get(resource, {}), after.get(resource, {})
            # Unchanged objects are the same objects, so most are skipped without decoding.
            for key in sorted(key for key in {*one, *other} if one.get(key) is not other.get(key)):
                place = (resource, key)
                if resource.endswith(_OWN) and place not in self._notes and place not in self._defined:
                    continue  # the plan itself registers webhooks and conversions
                yield (resource, key), (one.get(key), other.get(key))

    def _removed(self, before: Tables) -> Iterator[tuple[bool, Resource]]:
        for (resource, key), (one, other) in self._found.items():
            if one is not None and (other is None or other.uid != one.uid):
                yield (resource, key) in self._notes, before[resource][key]

    def all(self) -> list[ObjectChange]:
        """Return the changes, sorted by kind and key, without objects in which only fields of the server changed."""
        found = [self._change(place, one, other) for place, (one, other) in self._found.items()]
        return sorted((each for each in found if each is not None), key=lambda each: (each.kind, each.key))

    def objects(self) -> dict[tuple[str, str], tuple[Fields | None, Fields | None]]:
        """Return the fields of the changed objects before and afterwards, by kind and key; not redacted."""
        changed: dict[tuple[str, str], tuple[Fields | None, Fields | None]] = {}
        for (resource, key), (one, other) in self._found.items():
            kind = str(self._stored.type_of(resource, other or one))
            changed[kind, key] = (self._fields(resource, one), self._fields(resource, other))
        return changed

    def _fields(self, resource: str, obj: Resource | None) -> dict[str, object] | None:
        return None if obj is None else self._stored.fields_of(resource, obj)

    def _change(self, place: tuple[str, str], one: Resource | None, other: Resource | None) -> ObjectChange | None:
        resource, key = place
        known = other or one
        assert known is not None
        before, after = self._fields(resource, one), self._fields(resource, other)
        fields: tuple[FieldChange, ...] = ()
        action: Action = "create" if one is None else "delete" if other is None else "update"
        if one is not None and other is not None and one.uid != other.uid:
            action = "replace"
        if before is not None and after is not None:
            found = field_changes(before, after)
            fields = tuple(each for each in found if resource != _CRDS or not each.path.startswith(_CONVERSION))
            if action == "update" and not fields:
                return None
        note, defined = self._notes.get(place), self._defined.get(place)
        return ObjectChange(
            action=action,
            kind=str(self._stored.type_of(resource, known)),
            key=key,
            controller=INSTALLATION if defined else note.controller if note is not None else "",
            cause=defined or (str(note) if note is not None else self._cause(known, action)),
            fields=fields,
        )

    def _cause(self, obj: Resource, action: Action) -> str:
        if action == "delete":
            gone = [owner for owner in obj.owner_references if owner.uid in self._gone]
            if gone:
                return f"garbage collection, because its owner {gone[0].kind} {gone[0].name} is deleted"
        owner = obj.controller_owner
        return "a controller of the cluster" + (f" for {owner.kind} {owner.name}" if owner is not None else "")

    def restarts(self) -> Iterator[Restart]:
        """Yield the workloads with a changed Pod template."""
        for (resource, key), (one, other) in sorted(self._found.items()):
            if one is None or other is None:
                continue
            kind = self._stored.type_of(resource, other)
            if kind.kind not in _WORKLOADS or kind.group != kinds.DEPLOYMENT.group:
                continue
            before, after = self._fields(resource, one) or {}, self._fields(resource, other) or {}
            waits = at(after, "spec", "paused") is True or at(after, "spec", "updateStrategy", "type") == "OnDelete"
            if at(before, "spec", "template") != at(after, "spec", "template") and not waits:
                yield Restart(kind=str(kind), key=key, pods=_pods(before))


def _pods(fields: Fields) -> int:
    replicas = at(fields, "spec", "replicas")
    if isinstance(replicas, int):
        return replicas
    return integer(at(fields, "status", "desiredNumberScheduled")) if fields.get("kind") == "DaemonSet" else 1


@final
class SecretValues:
    """Values of all Secrets of a run, which are hidden wherever a program has copied them."""

    def __init__(self, *worlds: Tables) -> None:
        values: set[str] = set()
        for world in worlds:
            for obj in world.get(kinds.SECRET.group_resource, {}).values():
                if len(values) >= _MOST_SECRETS:
                    break
                for value in mapping(obj.to_dict().get("data")).values():
                    values.add(text(value))
                    values.add(_decoded(text(value)))
        longest_first = sorted((each for each in values if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, told: str) -> str:
        return told if self._known is None else self._known.sub(REDACTED, told)

    def hidden(self, plan: Plan) -> Plan:
        """Return the plan without values of Secrets in fields."""
        if self._known is None:
            return plan
        changes = [
            msgspec.structs.replace(
                change,
                fields=tuple(
                    msgspec.structs.replace(field, before=self._in(field.before), after=self._in(field.after))
                    for field in change.fields
                ),
            )
            for change in plan.changes
        ]
        return msgspec.structs.replace(plan, changes=tuple(changes))

    def _in(self, value: object) -> object:
        if isinstance(value, str):
            return self.hide(value)
        if is_mapping(value):
            return {self.hide(name): self._in(each) for name, each in value.items()}
        return [self._in(each) for each in items(value)] if value_type(value) == "array" else value


def _decoded(value: str) -> str:
    try:
        return b64decode(value).decode()
    except (Base64Error, ValueError):
        return ""
