"""Decoding of type and metadata like in Go, and Go's error messages for decoding faults.

Source: apimachinery pkg/apis/meta/v1/types.go (``TypeMeta``, ``ObjectMeta``), pkg/runtime/serializer/json/meta.go,
pkg/runtime/converter.go (``FromUnstructured``); encoding/json; structured-merge-diff typed/validate.go, helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltaloop.api.json_values import json_type, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.schemas.field_errors import DecodingFault, MergingFault
from deltaloop.schemas.object_meta import METADATA
from deltaloop.schemas.reading import check_value
from deltaloop.schemas.types import TypeNode

_FOUND: Final[Mapping[str, str]] = {"integer": "number", "boolean": "bool"}
# Go reads an int-or-string value that is not a string as a number.
_SCALARS: Final[Mapping[str, str]] = {
    "int32": "int32",
    "int64": "int64",
    "intstr": "int32",
    "number": "float64",
    "boolean": "bool",
    "bytes": "[]uint8",
}
_NAMED: Final = {("meta.v1.ObjectMeta", "uid"): "types.UID", ("meta.v1.OwnerReference", "uid"): "types.UID"}
_KINDS: Final[Mapping[str, str]] = {
    "string": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
    "object": "map",
    "array": "slice",
}
_MERGED: Final = {**_KINDS, "object": "map[string]interface {}", "array": "[]interface {}"}
_NUMERIC: Final = "numeric (int or float)"
_WANTED: Final = {"integer": _NUMERIC, "number": _NUMERIC, "scalar": "any scalar"}
_UNMERGED: Final[Mapping[str, str]] = {
    "type": "expected {wanted}, got {found}",
    "undeclared": "field not declared in schema",
    "repeated": "duplicate entries for key {wanted}",
    "null in keyed": "element {at}: associative list with keys may not have a null element",
    "null in set": "element {at}: associative list without keys has an element that's an explicit null",
    "no object": "element {at}: associative list with keys may not have non-map elements",
    "no key": "element {at}: associative list with keys has an element that omits all key fields [{wanted}] (and"
    " doesn't have default values for any key fields)",
}


def json_words(fault: DecodingFault) -> str:
    if fault.why:
        return fault.why
    found = _FOUND.get(fault.found, fault.found)
    if fault.number is not None:
        found = f"number {fault.number}"
    if not fault.path:
        return f"json: cannot unmarshal {found} into Go value of type {_go_type(fault.wanted)}"
    wanted = _NAMED.get((fault.struct, fault.path.rpartition(".")[2])) or _go_type(fault.wanted)
    holder = fault.struct.rpartition(".")[2]
    return f"json: cannot unmarshal {found} into Go struct field {holder}.{fault.path} of type {wanted}"


def _go_type(node: TypeNode) -> str:
    if node.form == "list" and node.items is not None:
        return f"[]{_go_type(node.items)}"
    if node.form == "schema":
        return "v1.JSONSchemaProps"
    if node.form == "object" and node.other is not None:
        # The API has only one map of quantities, which has a separate name.
        return "v1.ResourceList" if node.other.form == "quantity" else f"map[string]{_go_type(node.other)}"
    if node.form == "object":
        return node.name.partition(".")[2]
    return _SCALARS.get(node.form, "string")


def converting_words(fault: DecodingFault) -> str:
    """Return the message of the converter for merged values."""
    form, kind = fault.wanted.form, _KINDS.get(fault.found, "invalid")
    match form:
        case "list" | "bytes":
            return f"cannot restore slice from {kind}"
        case "object" if fault.wanted.other is not None:
            return f"cannot restore map from {kind}"
        case "object":
            return f"cannot restore struct from: {kind}"
        case "time" | "micro_time" | "intstr":
            found = _FOUND.get(fault.found, fault.found)
            if fault.number is not None and form == "intstr":
                found = f"number {fault.number}"
            return f"json: cannot unmarshal {found} into Go value of type {'int32' if form == 'intstr' else 'string'}"
        case "string":
            # Go can convert a whole number to a character, but the converter does not.
            return f"cannot convert {kind} to string" if fault.found == "integer" else "unrecognized type: string"
        case _:
            wanted = _SCALARS[form]
            return f"cannot convert {kind} to {wanted}" if _is_fraction(fault) else f"unrecognized type: {wanted}"


def _is_fraction(fault: DecodingFault) -> bool:
    return fault.wanted.form in ("int32", "int64") and fault.found == "number"


def merging_words(faults: Iterable[MergingFault]) -> str:
    """Return the message about all merging faults, or an empty string."""
    lines: list[str] = []
    for fault in faults:
        wanted, found = _WANTED.get(fault.wanted, fault.wanted), _MERGED.get(fault.found, "value")
        lines.append(f"{fault.path}: {_UNMERGED[fault.why].format(wanted=wanted, found=found, at=fault.position)}")
    return "\n  ".join(["errors:", *lines]) if len(lines) > 1 else "".join(lines)


_SET_BY_SERVER: Final = ("creationTimestamp", "deletionTimestamp", "generation", "deletionGracePeriodSeconds")


def unreadable_type(fields: dict[str, Any]) -> str:
    """Return why the API version or kind of an object is unreadable, or an empty string."""
    for name in ("apiVersion", "kind"):
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_type(value)} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    return ""


def check_readable_type(fields: dict[str, Any]) -> None:
    """Reject an object from admission without a readable type, with ApiError 500 like the real server."""
    if unreadable := unreadable_type(fields):
        raise status_errors.internal(unreadable)
    if (version := text(fields.get("apiVersion"))).count("/") > 1:
        raise status_errors.internal(f"unexpected GroupVersion string: {version}")


def check_metadata_types(kind: ResourceType[Resource], fields: dict[str, Any]) -> None:
    """Reject a custom resource with unreadable metadata by UnreadableObjectError, without the data."""
    fault = check_value(METADATA, fields.get("metadata"), whole=True)
    if fault is not None:
        # The first part is the kind that the object specifies.
        said, version = text(fields.get("kind")) or kind.kind, text(fields.get("apiVersion")).rpartition("/")[2]
        raise status_errors.unreadable(kind.kind, json_words(fault), said=said, version=version)


def drop_unreadable(metadata: dict[str, Any]) -> dict[str, str]:
    """Drop unreadable fields that the server sets, in place, and return the reasons by name."""
    dropped: dict[str, str] = {}
    for name in _SET_BY_SERVER:
        fault = check_value(METADATA, {name: metadata[name]}, whole=True) if name in metadata else None
        if fault is not None:
            dropped[name] = json_words(fault)
            del metadata[name]
    return dropped


def reads_as_entries(value: object) -> bool:
    """Return whether ``managedFields`` is readable. Unreadable entries of an applied object count as missing."""
    return value is not None and check_value(METADATA, {"managedFields": value}) is None
