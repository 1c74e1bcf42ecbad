"""Metadata, and what an object says that it is, as Go reads them: wrong types are refused in the words of Go's decoder.

Source: apimachinery pkg/apis/meta/v1/types.go (``TypeMeta``, ``ObjectMeta``); pkg/runtime/serializer/json/meta.go.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.metadata.values import read_time
from deltaloop.schemas.json_values import at, items, json_type, text


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Entry(msgspec.Struct, rename={"api_version": "apiVersion", "fields_type": "fieldsType", "fields": "fieldsV1"}):
    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: str | None = None
    fields_type: str | None = None
    fields: Any = None
    subresource: str | None = None


class _Shape(msgspec.Struct, rename="camel"):
    """The types that metadata must have, so that every stored object can be read back."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    finalizers: list[str | None] | None = None
    owner_references: list[_Owner | None] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    self_link: str | None = None
    managed_fields: list[_Entry | None] | None = None


_TYPE_ERROR: Final = re.compile(r"Expected `([^`]+)`, got `(\w+)`(?: - at `\$\.?([^`]*)`)?")
_PATH_STEP: Final = re.compile(r"\[[^]]*\]")
_JSON_NAMES: Final = {"str": "string", "int": "number", "float": "number", "array": "array", "object": "object"}
_GO_SCALARS: Final = {"str": "string", "int": "int64", "bool": "bool"}
_LARGEST: Final = (1 << 63) - 1
_TIMES: Final = ("creationTimestamp", "deletionTimestamp")
_WHOLE: Final = ("generation", "deletionGracePeriodSeconds")
_GO_TYPES: Final = {
    ("managedFields", "array"): "[]v1.ManagedFieldsEntry",
    ("managedFields", "object"): "v1.ManagedFieldsEntry",
    ("uid", "str"): "types.UID",
    ("labels", "object"): "map[string]string",
    ("annotations", "object"): "map[string]string",
    ("finalizers", "array"): "[]string",
    ("ownerReferences", "array"): "[]v1.OwnerReference",
    ("ownerReferences", "object"): "v1.OwnerReference",
}


def unreadable_type(fields: dict[str, Any]) -> str:
    """Return why an object does not say what it is: its version or kind is no text; "" if both are, or missing."""
    for name in ("apiVersion", "kind"):
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_type(value)} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    return ""


def check_metadata_types(kind: ResourceType[Resource], fields: dict[str, Any], *, unstructured: bool) -> None:
    """Refuse metadata that cannot be decoded, in the words of Go's decoder.

    Raises:
        BadRequestError: Naming the field and both types; never the data.
    """
    why = metadata_problem(kind.kind, fields, unstructured=unstructured)[0]
    if why:
        # The first half is what the object says of itself.
        said = text(fields.get("kind")) or kind.kind
        version = text(fields.get("apiVersion")).rpartition("/")[2] or ("" if unstructured else kind.version)
        raise failures.unreadable(kind.kind, why, said=said, version=version)


def metadata_problem(kind: str, fields: dict[str, Any], *, unstructured: bool) -> tuple[str, bool]:
    """Return why metadata cannot be decoded, "" if it can, and whether a decoder reads no further then.

    It goes on after a wrong type, to name that one if nothing worse comes; a time that is none ends it.
    """
    metadata = fields.get("metadata")
    if metadata is None:
        return "", False
    try:
        if isinstance(metadata, dict):
            _check_times(cast("dict[str, Any]", metadata))
    except ValueError as error:
        return str(error), True
    try:
        if isinstance(metadata, dict):
            _read_whole_numbers(cast("dict[str, Any]", metadata), custom=unstructured)
        msgspec.convert(metadata, _Shape)
    except msgspec.ValidationError as error:
        return _in_go_words(str(error), kind, custom=unstructured), False
    except ValueError as error:
        return str(error), False
    return "", False


def reads_as_entries(value: object) -> bool:
    """Tell whether ``managedFields`` can be read; what cannot counts as none in an object that is applied."""
    try:
        msgspec.convert({"managedFields": value}, _Shape)
        _check_times({"managedFields": value})
    except (msgspec.ValidationError, ValueError):
        return False
    return value is not None


def drop_unreadable(metadata: dict[str, Any]) -> None:
    """Drop what cannot be read of the fields that the server sets, in place."""
    for name in (*_TIMES, *_WHOLE):
        try:
            one = {name: metadata.get(name)}
            _read_whole_numbers(one, custom=True)
            msgspec.convert(one, _Shape)
            _check_times(one)
        except (msgspec.ValidationError, ValueError):
            del metadata[name]


def _check_times(metadata: dict[str, Any]) -> None:
    entries = items(metadata.get("managedFields"))
    for time in (*map(metadata.get, _TIMES), *(at(entry, "time") for entry in entries)):
        if isinstance(time, str):
            read_time(time)


def _read_whole_numbers(metadata: dict[str, Any], *, custom: bool) -> None:
    """Write 2.0 as 2 where that is read, and refuse what is no whole number of 64 bits.

    Raises:
        ValueError: In the words of Go's decoder.
    """
    for name in _WHOLE:
        value = metadata.get(name)
        if custom and isinstance(value, float) and value.is_integer():
            value = metadata[name] = int(value)
        if isinstance(value, float) or (isinstance(value, int) and not -_LARGEST <= value <= _LARGEST):
            place = name if custom else f"metadata.{name}"
            raise ValueError(
                f"json: cannot unmarshal number {value} into Go struct field ObjectMeta.{place} of type int64"
            )


def _in_go_words(error: str, kind: str, *, custom: bool) -> str:
    """Return what Go says about a wrong type; the words of msgspec say where it is and what was found."""
    found = _TYPE_ERROR.fullmatch(error)
    if found is None:
        return f"metadata: {error}"
    wanted, got, path = found.groups(default="")
    json = _JSON_NAMES.get(got, got)
    if not path:
        return f"json: cannot unmarshal {json} into Go " + (
            "value of type v1.ObjectMeta" if custom else f"struct field {kind}.metadata of type v1.ObjectMeta"
        )
    names = [name for name in _PATH_STEP.sub("", path).split(".") if name]
    below = {"ownerReferences": "OwnerReference", "managedFields": "ManagedFieldsEntry"}
    struct = below.get(names[0], "ObjectMeta") if len(names) > 1 else "ObjectMeta"
    go = _GO_TYPES.get((names[-1], wanted.partition(" ")[0]), _GO_SCALARS.get(wanted.partition(" ")[0], wanted))
    place = ".".join(names if custom else ["metadata", *names])
    return f"json: cannot unmarshal {json} into Go struct field {struct}.{place} of type {go}"
