"""How the parts of an object merge: a tree of types, from the tables of the built-in kinds or from a CRD's schema.

    scalar    one value; a list or an object that is ``atomic`` is one, too, and may say what is in it
    map       an object: fields with types of their own, and ``element`` for all other names
    keyed     a list whose items are told apart by some of their fields
    set       a list of unlike plain values
    free      nothing is said about it: objects merge field by field, lists are one value

Source: structured-merge-diff schema/elements.go; kube-openapi pkg/schemaconv.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final, Literal, final

import msgspec

from deltaloop.apiserver.core.builtin.tables import FieldShape, FieldType, builtin_tables, kind_types
from deltaloop.schemas.json_values import is_mapping, mapping, text, texts

Form = Literal["scalar", "map", "keyed", "set", "free"]


@final
class MergeType:
    """One type. Types may contain themselves; they are never changed once they are made.

    Attributes:
        form: See above.
        accepts: What a scalar may be: ``string``, ``integer``, ``number``, ``boolean``, ``list``, ``map``, ``scalar``
            for any of the first four, or "" for anything.
        fields: Named fields of a map; their names are no part of its value.
        element: Type of the other keys of a map, or of a list's items; None means that there are none.
        keys: The fields that tell items of a ``keyed`` list apart.
        defaults: Values of keys that an item need not have.
        zero: What Go has where nobody has set anything: the parts of it that are objects or null.
    """

    __slots__ = ("accepts", "defaults", "element", "fields", "form", "keys", "zero")

    def __init__(
        self,
        form: Form,
        *,
        accepts: str = "",
        element: MergeType | None = None,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a type without fields."""
        self.form: Form = form
        self.accepts: str = accepts
        self.fields: dict[str, MergeType] = {}
        self.element: MergeType | None = element
        self.keys: tuple[str, ...] = keys
        self.defaults: Mapping[str, Any] = defaults or {}
        self.zero: Any = None

    def field(self, name: str) -> MergeType | None:
        """Return the type of a field of a map; None if it may not have it."""
        return self.fields.get(name, self.element)


FREE: Final = MergeType("free")
_SCALARS: Final = {
    name: MergeType("scalar", accepts=name) for name in ("string", "integer", "number", "boolean", "list", "map")
} | {
    "quantity": MergeType("scalar"),
    "intstr": MergeType("scalar"),
    "atomic": MergeType("scalar"),
    "any": FREE,
    "schema": FREE,
}
_SCALARS.update(
    {
        name: _SCALARS[accepts]
        for accepts, names in (("integer", ("int32", "int64")), ("string", ("bytes",)))
        for name in names
    }
)
_SCALARS.update(dict.fromkeys(("time", "micro_time"), MergeType("scalar")))


def built_in_type(api_version: str, kind: str) -> MergeType | None:
    """Return the type of a built-in kind; None if the tables do not have it."""
    name = kind_types().get((api_version, kind))
    return _struct(name) if name is not None else None


_made: Final[dict[tuple[str, bool], MergeType]] = {}


def _struct(name: str, *, granular: bool = False) -> MergeType:
    entry = builtin_tables().types[name]
    key = name, entry.atomic and not granular
    made = _made.get(key)
    if made is None:
        made = _made[key] = MergeType("scalar" if key[1] else "map", accepts="map")
        made.fields.update((field, _field(shape)) for field, shape in entry.fields.items())
        if made.form == "map":
            made.zero = {field: made.fields[field].zero for field in entry.always}
    return made


def _field(shape: FieldType) -> MergeType:
    if isinstance(shape, str):
        return _struct(shape[1:]) if shape.startswith("#") else _SCALARS[shape]
    if shape.item is not None:
        return _list(shape, shape.item)
    if shape.value is not None:
        return MergeType("scalar" if shape.atomic else "map", accepts="map", element=_field(shape.value))
    if isinstance(shape.of, str) and shape.of.startswith("#"):
        return _SCALARS["map"] if shape.atomic else _struct(shape.of[1:], granular=shape.granular)
    return _field(shape.of or "any")


def _list(shape: FieldShape, item: FieldType) -> MergeType:
    if shape.unlike:
        return MergeType("set", accepts="list", element=_field(item))
    if not shape.keys:
        return MergeType("scalar", accepts="list", element=_field(item))
    defaults = builtin_tables().types[item[1:]].defaults if isinstance(item, str) and item.startswith("#") else {}
    return MergeType("keyed", accepts="list", element=_field(item), keys=shape.keys, defaults=defaults)


@lru_cache(maxsize=512)
def custom_type(schema: bytes) -> MergeType:
    """Return the type of a custom resource by its version's schema in JSON; without one, everything is free."""
    made = _from_schema(
        mapping(msgspec.json.decode(schema)) if schema else {"x-kubernetes-preserve-unknown-fields": True}
    )
    root = MergeType("map", accepts="map", element=made.element if made.form == "map" else FREE)
    root.fields.update(made.fields)
    root.fields.update(_whole_object())
    root.zero = {}
    return root


@cache
def _whole_object() -> dict[str, MergeType]:
    return {
        "apiVersion": _SCALARS["string"],
        "kind": _SCALARS["string"],
        "metadata": _struct("meta.v1.ObjectMeta"),
    }


def _from_schema(schema: dict[str, Any], *, preserve: bool = False) -> MergeType:
    """Return the type of one schema; what a structural schema has in allOf and its kin does not matter here.

    Args:
        schema: The schema.
        preserve: Whether one above preserves unknown fields: those below then do for merging, though not for pruning.
    """
    kind = text(schema.get("type"))
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    if kind == "array":
        return _list_from_schema(schema, preserve=preserve)
    if kind == "object" or schema.get("properties"):
        return _map_from_schema(schema, preserve=preserve)
    if kind == "string" and text(schema.get("format")) not in _FORMATS_OF_TEXT:
        return _ANY_SCALAR
    return _SCALARS.get(kind, FREE)


# The formats of texts that are merged as such; any other may be a number for merging (kube-openapi pkg/schemaconv).
_FORMATS_OF_TEXT: Final = ("", "byte")
_ANY_SCALAR: Final = MergeType("scalar", accepts="scalar")


def _list_from_schema(schema: dict[str, Any], *, preserve: bool) -> MergeType:
    relation = schema.get("x-kubernetes-list-type")
    item = mapping(schema.get("items"))
    if relation == "set":
        return MergeType("set", accepts="list", element=_from_schema(item, preserve=preserve))
    if relation != "map":
        return MergeType("scalar", accepts="list", element=_from_schema(item, preserve=preserve) if item else None)
    keys = texts(schema.get("x-kubernetes-list-map-keys"))
    properties = mapping(item.get("properties"))
    defaults = {key: mapping(properties[key])["default"] for key in keys if "default" in mapping(properties.get(key))}
    element = _from_schema(item, preserve=preserve)
    return MergeType("keyed", accepts="list", element=element, keys=keys, defaults=defaults)


def _map_from_schema(schema: dict[str, Any], *, preserve: bool) -> MergeType:
    additional = schema.get("additionalProperties")
    properties = mapping(schema.get("properties"))
    # An object of which nothing is said is free: what it may not have is pruned after merging.
    free = additional is True or (additional is None and (preserve or not properties))
    element = _from_schema(additional, preserve=preserve) if is_mapping(additional) else FREE if free else None
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    made = MergeType("scalar" if atomic else "map", accepts="map", element=element)
    made.fields.update((name, _from_schema(mapping(child), preserve=preserve)) for name, child in properties.items())
    if schema.get("x-kubernetes-embedded-resource") is True:
        made.fields.update(_whole_object())
    return made
