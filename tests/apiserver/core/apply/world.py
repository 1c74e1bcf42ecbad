"""A small kind with every sort of field, and objects of it, for the tests of server-side apply."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from deltaloop.apiserver.core.apply.ownership import (
    APPLY,
    UPDATE,
    FieldManager,
    Owners,
    Target,
    apply_owners,
    update_owners,
)
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.types import TypeNode

API_VERSION = "example.com/v1"
_ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "port": {"type": "integer", "default": 80},
        "value": {"type": "string"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "text": {"type": "string"},
                "list": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": _ITEM,
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "port"],
                    "items": _ITEM,
                },
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "nested": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
                },
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                },
                "free": {"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
KIND: TypeNode = schema_from_json(msgspec.json.encode(SCHEMA)).tree


def type_of(api_version: str) -> TypeNode | None:
    return KIND if api_version in (API_VERSION, "example.com/v2") else None


TARGET = Target(API_VERSION, type_of)


def obj(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def applier(name: str) -> FieldManager:
    return FieldManager(name, APPLY)


def updater(name: str, api_version: str = API_VERSION) -> FieldManager:
    return FieldManager(name, UPDATE, api_version)


class World:
    """One object and its owners; writes happen one after the other, a second apart."""

    def __init__(self, target: Target = TARGET) -> None:
        self.target = target
        self.live: dict[str, Any] = {}
        self.owners: Owners = {}
        self.time = 0

    def apply(self, name: str, applied: dict[str, Any], *, force: bool = False) -> bool:
        self.time += 1
        merged, self.owners, changed = apply_owners(
            self.owners, self.live, applied, applier(name), self.target, force=force
        )
        if changed:  # as a write does: what only stands in another order stays as it is
            self.live = merged
        return changed

    def update(self, name: str, new: dict[str, Any]) -> None:
        self.time += 1
        writer = updater(name)
        self.owners = update_owners(self.owners, self.live, new, writer, self.target, time=f"{self.time:04}")
        self.live = new

    def fields(self, manager: FieldManager) -> Any:
        owned = self.owners.get(manager)
        return owned.fields if owned is not None else None


_TEXT = st.sampled_from(["x", "y"])
_NAMES = st.sampled_from(["a", "b", "c"])
_ITEMS = st.dictionaries(
    _NAMES,
    st.fixed_dictionaries({}, optional={"value": _TEXT, "tags": st.lists(_NAMES, min_size=1, max_size=2, unique=True)}),
    min_size=1,
    max_size=3,
).map(lambda items: [{"name": name, **fields} for name, fields in items.items()])
# No empty containers: one that loses all that is in it goes, so an applied empty list can be missing afterwards.
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "text": _TEXT,
        "list": st.lists(_TEXT, min_size=1, max_size=2),
        "set": st.lists(_NAMES, min_size=1, max_size=3, unique=True),
        "items": _ITEMS,
        "map": st.dictionaries(_NAMES, _TEXT, min_size=1, max_size=2),
        "nested": st.dictionaries(
            _NAMES, st.dictionaries(_NAMES, _TEXT, min_size=1, max_size=2), min_size=1, max_size=2
        ),
        "whole": st.fixed_dictionaries({"a": _TEXT}, optional={"b": _TEXT}),
        "free": st.dictionaries(
            _NAMES, _TEXT | st.dictionaries(_NAMES, _TEXT, min_size=1, max_size=2), min_size=1, max_size=2
        ),
    },
)
OBJECTS = SPECS.map(lambda spec: {"spec": spec} if spec else {})
