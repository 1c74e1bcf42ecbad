"""The types of the built-in kinds: the table of the data file, compiled with the defaults that no table can say."""

from __future__ import annotations

from functools import cache, partial

from deltaloop.apiserver.core.builtin.defaulting_rules import DISABLED, OBJECT_RULES, RULES
from deltaloop.apiserver.core.builtin.tables import builtin_tables, kind_types
from deltaloop.schemas.object_meta import KNOWN_STRUCTS, UNTYPED
from deltaloop.schemas.type_table import TypeTable
from deltaloop.schemas.types import Schema, TypeNode


@cache
def type_table() -> TypeTable:
    """Return the table."""
    return TypeTable(
        builtin_tables().types,
        known=KNOWN_STRUCTS,
        whole=OBJECT_RULES,
        rules=RULES,
        disabled=DISABLED,
    )


@cache
def built_in_schema(api_version: str, kind: str) -> Schema:
    """Return the schema of a built-in kind; one that says nothing for any other."""
    name = kind_types().get((api_version, kind))
    return UNTYPED if name is None else Schema(name, partial(_compiled, name))


def _compiled(name: str) -> TypeNode:
    return type_table().struct(name)
