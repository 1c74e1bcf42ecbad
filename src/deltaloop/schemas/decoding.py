"""The steps of a custom resource through its schema, from bytes of the schema to the answer of each step.

    decode      unknown fields go (or are named), nulls that may not be go, defaults come: on each read and each write
    validate    on each write, after the server has set its own fields

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import json
from typing import cast

import msgspec

from deltaloop.schemas import defaulting, pruning, validating
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.types import Schema


def decode_by_schema(schema: Schema, fields: dict[str, object], *, applied: bool = False) -> bool:
    """Prune and default a custom resource in place and tell whether anything changed; no other object does.

    Args:
        schema: That of the object's version.
        fields: The object, as decoded JSON.
        applied: Whether it comes from an apply; nulls that may not be then stay, to be refused.
    """
    if not schema.source:
        return False
    pruned = pruning.prune(schema.tree, fields)
    return defaulting.apply_defaults(schema.tree, fields, keep_nulls=applied) or bool(pruned)


def schema_errors(schema: Schema, fields: dict[str, object], old: dict[str, object] | None = None) -> list[FieldError]:
    """Return what is wrong with an object that was decoded, but for what the one that it replaces had already."""
    return validating.validate(schema.tree, fields, old) if schema.source else []


def status_errors(schema: Schema, fields: dict[str, object], old: dict[str, object]) -> list[FieldError]:
    """Return the same for a write of its status: the real server looks at the status alone then, as at an object."""
    return validating.validate_part(schema.tree, "status", fields, old) if schema.source else []


class _Object(dict[str, object]):
    twice: tuple[str, ...] = ()


def _may_have_duplicates(body: bytes) -> bool:
    """Tell quickly whether a field may be twice; False is certain."""
    # Decoding keeps one of two fields with a name, and a colon less when written again. A colon that is escaped in the
    # body is none there, so that it could stand for the lost one.
    if b"\\u003" in body:
        return True
    try:
        again = msgspec.json.encode(msgspec.json.decode(body))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return True
    return again.count(b":") != body.count(b":")


def duplicate_field_texts(body: bytes) -> list[str]:
    """Return a sentence for each field that is twice in a JSON object; none if the body is no JSON."""
    if not _may_have_duplicates(body):
        return []
    found = False

    def build(pairs: list[tuple[str, object]]) -> _Object:
        nonlocal found
        result = _Object(pairs)
        if len(result) < len(pairs):
            found = True
            names = [name for name, _ in pairs]
            result.twice = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
        return result

    try:
        value: object = json.loads(body, object_pairs_hook=build)
    except (ValueError, RecursionError):
        return []
    return [f'duplicate field "{path}"' for path in _twice(value, "")] if found else []


def _twice(value: object, path: str) -> list[str]:
    paths: list[str] = []
    if isinstance(value, _Object):
        prefix = f"{path}." if path else ""
        paths += [prefix + name for name in value.twice]
        for name, inner in value.items():
            paths += _twice(inner, prefix + name)
    elif isinstance(value, list):
        for position, inner in enumerate(cast("list[object]", value)):
            paths += _twice(inner, f"{path}[{position}]")
    return paths
