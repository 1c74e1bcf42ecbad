"""The built-in kinds for tests of cores, which read no file themselves."""

from __future__ import annotations

from deltaloop.apiserver.builtin_tables import built_in, builtin_tables
from deltaloop.apiserver.core.kinds.resources import BuiltInTypes, is_review
from deltaloop.apiserver.core.registry import Registry
from deltaloop.schemas.types import Schema

TYPES = BuiltInTypes(builtin_tables())
BUILT_IN_RESOURCES = tuple(served for served in built_in() if not is_review(served))


def built_in_registry() -> Registry:
    return Registry(built_in())


def built_in_schema(api_version: str, kind: str) -> Schema:
    return TYPES.schema(api_version, kind)
