"""What single built-in kinds do with their objects, beyond what all kinds have in common.

    Secret               ``stringData`` is written into ``data``; the type is ``Opaque`` unless it is said
    Secret, ConfigMap    once ``immutable``, neither the data nor that can be changed; keys could be names of files
    Pod, Node            one address, or range of them, and the first of several are the same
    those with structs   ``spec`` and ``status`` are always written, be they empty, and nobody owns them then

Source: Kubernetes pkg/apis/core/v1/conversion.go, defaults.go; pkg/apis/core/validation.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from deltaloop.apiserver.core.builtin.defaulting import complete_object, without_zeros
from deltaloop.apiserver.core.builtin.tables import builtin_tables, kind_types
from deltaloop.apiserver.core.kinds.scaling import replicas_errors
from deltaloop.apiserver.core.served_resource import ServedResource, is_core
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value
from deltaloop.schemas.json_values import at, items, mapping

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_DATA: Final = {"configmaps": ("data", "binaryData"), "secrets": ("data",)}


def prepare_builtin(served: ServedResource, fields: dict[str, Any]) -> None:
    """Fill in what the server writes into an object as sent, in place."""
    if not served.custom:
        complete_object(served.type.api_version, served.type.kind, fields)
    for name in struct_fields(served):
        fields.setdefault(name, {})
    if is_core(served, "pods"):
        _agree_on_first(mapping(fields["status"]), "podIP", "podIPs", key="ip")
    if is_core(served, "nodes"):
        _agree_on_first(mapping(fields["spec"]), "podCIDR", "podCIDRs")
    if is_core(served, "secrets"):
        _encode_texts(fields)


def _agree_on_first(part: dict[str, Any], one: str, several: str, *, key: str = "") -> None:
    """Let an old field with one value and a newer one with several say the same; what the old one says counts."""
    alone, found = part.get(one), items(part.get(several))
    first = at(found[0], key) if found and key else found[0] if found else None
    if alone and alone != first:
        part[several] = [{key: alone} if key else alone]
    elif first:
        part[one] = first


def _encode_texts(fields: dict[str, Any]) -> None:
    texts = fields.pop("stringData", None)
    if texts:
        written = {key: base64.b64encode(str(value).encode()).decode() for key, value in mapping(texts).items()}
        fields["data"] = {**mapping(fields.get("data")), **written}
    if not fields.get("type"):
        fields["type"] = "Opaque"


def without_empty_structs(served: ServedResource, fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what ``prepare_builtin`` always writes; fields that nobody set have no owner."""
    if served.custom:
        return fields
    return without_zeros(served.type.api_version, served.type.kind, fields)


def rule_errors(served: ServedResource, fields: dict[str, Any]) -> list[FieldError]:
    """Return what is wrong with an object by the rules of its own kind."""
    if served.custom and served.scale_paths is not None:
        return replicas_errors(served.scale_paths, fields)
    if served.type.group == "" and served.type.plural in _DATA:
        return _key_errors(_DATA[served.type.plural], fields)
    return []


def _key_errors(names: tuple[str, ...], fields: dict[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    for name in names:
        for key in mapping(fields.get(name)):
            found += [invalid_value(f"{name}[{key}]", f'"{key}"', text) for text in _key_texts(key)]
            if name == "data" and key in mapping(fields.get("binaryData")) and "binaryData" in names:
                text = "duplicate of key present in binaryData"
                found.append(invalid_value(f"data[{key}]", f'"{key}"', text))
    return found


def _key_texts(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def struct_fields(served: ServedResource) -> tuple[str, ...]:
    """Return which of ``spec`` and ``status`` every object of a built-in kind has, be they empty."""
    return () if served.custom else _structs_of(served.type.api_version, served.type.kind)


@cache
def _structs_of(api_version: str, kind: str) -> tuple[str, ...]:
    name = kind_types().get((api_version, kind))
    fields = builtin_tables().types[name].fields if name is not None else {}
    shapes = ((field, fields.get(field)) for field in ("spec", "status"))
    return tuple(field for field, shape in shapes if isinstance(shape, str) and shape.startswith("#"))


def immutability_errors(served: ServedResource, before: dict[str, Any], after: dict[str, Any]) -> list[FieldError]:
    """Return what an update changes although it must not."""
    watched = _DATA.get(served.type.plural, ()) if is_core(served, served.type.plural) else ()
    if not watched or before.get("immutable") is not True:
        return []
    errors = [] if after.get("immutable") is True else [forbidden_field("immutable", _IMMUTABLE)]
    changed = [name for name in watched if mapping(before.get(name)) != mapping(after.get(name))]
    return errors + [forbidden_field(name, _IMMUTABLE) for name in changed]
