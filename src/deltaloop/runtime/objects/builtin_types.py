"""Types of built-in kinds, for comparing children with the applied configuration."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from deltaloop.api.json_values import items, mapping
from deltaloop.api.kinds import BUILT_IN
from deltaloop.api.resource_type import ResourceType
from deltaloop.schemas.object_meta import KNOWN_STRUCTS, UNTYPED
from deltaloop.schemas.type_table import StructType, TypeTable
from deltaloop.schemas.types import TypeNode


class _Kind(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str
    type: str


class _Tables(msgspec.Struct, frozen=True):
    kinds: tuple[_Kind, ...]
    types: dict[str, StructType]


def type_of(kind: ResourceType[Any]) -> TypeNode:
    """Return the type of a kind. For kinds that are not built in, it covers only the metadata."""
    names, table = _tables() if _is_built_in(str(kind)) else ({}, None)
    name = names.get((kind.group, kind.version, kind.kind))
    return UNTYPED.tree if name is None or table is None else table.struct(name)


@cache
def _is_built_in(name: str) -> bool:
    return any(str(known) == name for known in BUILT_IN)


@cache
def _tables() -> tuple[dict[tuple[str, str, str], str], TypeTable]:
    packed = resources.files("deltaloop").joinpath("schemas", "builtin_kinds.json.gz").read_bytes()
    tables = msgspec.json.decode(gzip.decompress(packed), type=_Tables)
    names = {(entry.group, entry.version, entry.kind): entry.type for entry in tables.kinds}
    return names, TypeTable(tables.types, known=KNOWN_STRUCTS, rules={"apps.v1.StatefulSetSpec": _name_claims})


def _name_claims(spec: dict[str, object]) -> None:
    """Set the kind of a StatefulSet's claims, because their list is compared as a whole."""
    for claim in map(mapping, items(spec.get("volumeClaimTemplates"))):
        claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})
