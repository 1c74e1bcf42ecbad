"""Schemas as CEL types, with the sizes of values for cost estimates.

Source: apiserver pkg/cel/common/schemas.go, pkg/cel/types.go, pkg/cel/limits.go; apiextensions-apiserver
pkg/apiserver/schema/cel/compilation.go, pkg/apiserver/schema/cel/model; apiserver pkg/cel/escaping.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, final

from deltaloop import cel
from deltaloop.api.json_values import integer, is_mapping, items, mapping, text, texts
from deltaloop.cel.kubernetes import MAX_REQUEST_BYTES
from deltaloop.schemas.structural import EMBEDDED, INT_OR_STRING

RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SPECIAL: Final = re.compile("__|[-./]")
_NAME: Final = re.compile("[A-Za-z_./-][A-Za-z0-9_./-]*")


def escaped(name: str) -> str | None:
    """Return the identifier of a field, or None if it cannot have one."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)


_LONGEST_NAME: Final = 253
_LONGEST_TEXT: Final = MAX_REQUEST_BYTES - 2  # without quotation marks
# By format: the type, and its smallest and largest size in JSON in bytes.
_FORMATS: Final = {
    "duration": (cel.DURATION, 3, 32),
    "date": (cel.TIMESTAMP, 12, 12),
    "date-time": (cel.TIMESTAMP, 21, 32),
}
_SCALARS: Final = {"boolean": (cel.BOOL, 4), "number": (cel.DOUBLE, 1), "integer": (cel.INT, 1)}
_TEXT: Final[dict[str, object]] = {"type": "string"}
_BYTES_OF_CHARACTER: Final = 4


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """CEL type of a schema."""

    type: cel.Type
    most: int = 0
    least_bytes: int = 2
    fields: dict[str, Declared] = field(default_factory=dict[str, "Declared"])
    element: Declared | None = None


_KEY: Final = Declared(cel.STRING)
_LIST: Final = cel.list_of(cel.DYN)
_MAP: Final = cel.map_of(cel.STRING, cel.DYN)
_OBJECT: Final = cel.object_of("object")


def declared(schema: dict[str, object], *, is_root: bool = False) -> Declared | None:
    """Return the CEL type of a schema, or None; ``is_root`` adds the identity fields of a whole object."""
    longest = schema.get("maxLength")
    if schema.get(INT_OR_STRING) is True:
        return Declared(cel.DYN, _LONGEST_TEXT if longest is None else _in_bytes(longest), 1)
    if is_root:
        schema = with_identity(schema)
    kind = text(schema.get("type"))
    if kind in _SCALARS:
        scalar, least = _SCALARS[kind]
        return Declared(scalar, 0, least)
    if kind == "string":
        return _declared_text(schema, text(schema.get("format")), longest)
    if kind == "array":
        return _declared_list(schema)
    if kind == "object":
        additional = schema.get("additionalProperties")
        return _declared_map(schema, additional) if is_mapping(additional) else _declared_object(schema)
    return None


def declared_object(fields: dict[str, Declared]) -> Declared:
    return Declared(_OBJECT, fields=fields)


def declared_list(element: Declared) -> Declared:
    return Declared(_LIST, element=element)


def declared_map(element: Declared) -> Declared:
    return Declared(_MAP, element=element)


def is_whole(schema: dict[str, object]) -> bool:
    return schema.get(EMBEDDED) is True


def with_identity(schema: dict[str, object]) -> dict[str, object]:
    properties = mapping(schema.get("properties"))
    own = mapping(properties.get("metadata"))
    names = mapping(own.get("properties"))
    found = [mapping(holder.get(name)).get("type") for holder, name in _identity(properties, names)]
    if own.get("type") == "object" and found == ["string"] * 4:
        return schema
    metadata = {"type": "object", "properties": {name: _capped(names, name, most) for name, most in _NAMES.items()}}
    return {**schema, "properties": {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": metadata}}


# Generated names have at least one more character.
_NAMES: Final = {"name": _LONGEST_NAME, "generateName": _LONGEST_NAME - 1}


def _identity(properties: dict[str, object], names: dict[str, object]) -> list[tuple[dict[str, object], str]]:
    return [(properties, "kind"), (properties, "apiVersion"), *((names, name) for name in _NAMES)]


def _capped(names: dict[str, object], name: str, most: int) -> dict[str, object]:
    own = mapping(names.get(name)).get("maxLength")
    return {"type": "string", "maxLength": most if own is None else min(integer(own), most)}


def _in_bytes(longest: object) -> int:
    return max(integer(longest), 0) * _BYTES_OF_CHARACTER


def _declared_text(schema: dict[str, object], form: str, longest: object) -> Declared:
    if form in _FORMATS:
        scalar, least, most = _FORMATS[form]
        return Declared(scalar, most, least)
    if form == "byte":
        return Declared(cel.BYTES, _LONGEST_TEXT if longest is None else max(integer(longest), 0))
    if longest is not None:
        return Declared(cel.STRING, _in_bytes(longest))
    if choices := items(schema.get("enum")):
        return Declared(cel.STRING, max(len(text(choice).encode()) for choice in choices))
    return Declared(cel.STRING, _LONGEST_TEXT)


def _declared_list(schema: dict[str, object]) -> Declared | None:
    item, most = mapping(schema.get("items")), schema.get("maxItems")
    element = declared(item, is_root=is_whole(item))
    if element is None:
        return None
    fitting = _LONGEST_TEXT // (element.least_bytes + 1)
    return Declared(_LIST, fitting if most is None else max(integer(most), 0), element=element)


def _declared_map(schema: dict[str, object], additional: dict[str, object]) -> Declared | None:
    most = schema.get("maxProperties")
    element = declared(additional, is_root=is_whole(additional))
    if element is None:
        return None
    fitting = _LONGEST_TEXT // (element.least_bytes + 6)  # key, quotation marks, colon and comma
    return Declared(_MAP, fitting if most is None else max(integer(most), 0), element=element)


def _declared_object(schema: dict[str, object]) -> Declared:
    fields: dict[str, Declared] = {}
    needed, least = texts(schema.get("required")), 2
    for name, child in mapping(schema.get("properties")).items():
        part = mapping(child)
        found, identifier = declared(part, is_root=is_whole(part)), escaped(name)
        if found is None:
            continue
        if identifier is not None:
            fields[identifier] = found
        if name in needed and part.get("default") is None:
            least += len(name.encode()) + found.least_bytes + 4
    return Declared(_OBJECT, 0, least, fields)


@final
class DeclaredTypes:
    """``TypeProvider`` of one scope, in which objects are named after their paths."""

    def __init__(self, root: Declared, name: str = "selfType") -> None:
        self._root = root
        self._objects: dict[str, Declared] = {}
        self.scope: cel.Type = self._type(root, name)

    def field_type(self, type_name: str, field: str) -> cel.Type | None:
        holder = self._objects.get(type_name)
        if holder is None:
            return None
        identifier = f"__{field}__" if field in RESERVED else field
        found = holder.fields.get(identifier)
        return None if found is None else self._type(found, f"{type_name}.{identifier}")

    def named_type(self, name: str) -> cel.Type | None:
        """Return None, because expressions cannot name these types."""
        del name
        return None

    def _type(self, found: Declared, name: str) -> cel.Type:
        if found.type is _OBJECT:
            self._objects[name] = found
            return cel.object_of(name)
        if found.element is not None:
            is_list = found.type is _LIST
            element = self._type(found.element, f"{name}.{'@idx' if is_list else '@elem'}")
            return cel.list_of(element) if is_list else cel.map_of(cel.STRING, element)
        return found.type

    def size(self, path: tuple[str, ...]) -> cel.Estimate | None:
        """Return the size of the value at a path, which begins with a variable of the scope's type."""
        if not path:
            return None
        found: Declared = self._root
        for step in path[1:]:
            if step == "@keys":
                below = _KEY if found.type is _MAP else None
            else:
                below = found.element if step in ("@items", "@values") else found.fields.get(step)
            if below is None:
                return None
            found = below
        return cel.Estimate(0, found.most)
