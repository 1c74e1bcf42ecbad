"""Check sets (items differ), maps (keys differ) and embedded objects (apiVersion, kind and metadata).

Source: apiextensions-apiserver pkg/apiserver/schema/listtype, pkg/apiserver/schema/objectmeta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from deltaloop.api.dns_names import label_problems
from deltaloop.api.json_values import escape_html, is_mapping, mapping
from deltaloop.schemas.field_errors import SchemaError, invalid_value, required
from deltaloop.schemas.types import NO_DEFAULT, TypeNode
from deltaloop.schemas.work import charge

_MOST_TEXT: Final = 2 * 1024 * 1024
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def identity_errors(node: TypeNode, value: object, path: str, errors: list[SchemaError], *, lists: bool = True) -> None:
    """Add the errors of embedded objects, and of sets and maps unless ``lists`` is False."""
    if is_mapping(value):
        fields = value
        if node.embedded:
            _check_embedded(fields, path, errors)
        for name, inner in fields.items():
            child = node.fields.get(name) or node.other
            if child is not None and child.checks_lists:
                identity_errors(child, inner, _place(node, path, name), errors, lists=lists)
    elif isinstance(value, list):
        entries = cast("list[object]", value)
        if lists and node.list_type in ("set", "map"):
            _check_duplicates(node, entries, path, errors)
        if node.items is not None and node.items.checks_lists:
            for position, item in enumerate(entries):
                identity_errors(node.items, item, f"{path}[{position}]", errors, lists=lists)


def _place(node: TypeNode, path: str, name: str) -> str:
    if name not in node.fields:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def embedded_objects(node: TypeNode, value: object, path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    if not node.checks_lists:
        return
    if is_mapping(value):
        fields = value
        if node.embedded:
            yield path, fields
        for name, inner in fields.items():
            child = node.fields.get(name) or node.other
            if child is not None and child.checks_lists:
                yield from embedded_objects(child, inner, _place(node, path, name))
    elif isinstance(value, list) and node.items is not None and node.items.checks_lists:
        for position, item in enumerate(cast("list[object]", value)):
            yield from embedded_objects(node.items, item, f"{path}[{position}]")


def _check_duplicates(node: TypeNode, entries: list[object], path: str, errors: list[SchemaError]) -> None:
    if node.list_type == "map":
        for position, item in enumerate(entries):
            if item is not None and not isinstance(item, dict):
                words = "must be an object for an array of list-type map"
                errors.append(invalid_value(f"{path}[{position}]", item, words))
                return
    charge(5 * len(entries))
    seen: set[bytes] = set()
    told: set[bytes] = set()
    for position, item in enumerate(entries):
        key = _encode(_key_of(node, item) if node.list_type == "map" else item)
        if key in seen and key not in told:
            told.add(key)
            text = f"Duplicate value: {_shown(item, key)}"
            if len(errors) * len(text) < _MOST_TEXT:
                errors.append(SchemaError(f"{path}[{position}]", "FieldValueDuplicate", text))
        seen.add(key)


def _shown(item: object, key: bytes) -> str:
    """Return a duplicate value as Go writes it, with HTML characters escaped unless it is a string."""
    return key.decode() if isinstance(item, str) else escape_html(key.decode())


def _key_of(node: TypeNode, item: object) -> dict[str, object]:
    fields = mapping(item)
    key: dict[str, object] = {}
    for name in node.list_keys:
        if name in fields:
            key[name] = fields[name]
        elif node.items is not None and name in node.items.fields:
            default = node.items.fields[name].default
            if default is not NO_DEFAULT:
                key[name] = default
    return key


def _version_problem(version: str) -> str:
    return f"unexpected GroupVersion string: {version}" if version.count("/") > 1 else ""


def _kind_problem(kind: str) -> str:
    problems = ",".join(label_problems(kind.lower()))
    return f"may have mixed case, but should otherwise match: {problems}" if problems else ""


def _check_embedded(fields: dict[str, object], path: str, errors: list[SchemaError]) -> None:
    prefix = f"{path}." if path else ""
    for name, rule in (("apiVersion", _version_problem), ("kind", _kind_problem)):
        found = fields.get(name)
        if name not in fields:
            errors.append(required(f"{prefix}{name}"))
            continue
        words = rule(found) if isinstance(found, str) and found else ""
        words = "must be a string" if not isinstance(found, str) else words if found else "must not be empty"
        if words:
            errors.append(invalid_value(f"{prefix}{name}", found, words))
    metadata = fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        errors.append(invalid_value(f"{prefix}metadata", metadata, "must be an object"))
