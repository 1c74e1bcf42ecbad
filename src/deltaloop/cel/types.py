"""Types: what the checker reasons about, and what ``type(x)`` gives while an expression runs.

A type is its kind, its name, and what it is made of: ``list(int)`` is the kind ``list`` with the parameter ``int``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, final

from deltaloop.cel.values import LIST_KINDS, Duration, OptionalValue, Timestamp, Uint, kind_of


@final
@dataclass(frozen=True, slots=True)
class Type:
    """A type of the language.

    Attributes:
        kind: What sort of type: ``int``, ``list``, ``object`` (of a schema), ``opaque`` (of a library), ``param`` ...
        name: Its name in an expression, and in messages.
        parameters: What it is made of: a list's elements, a map's keys and values.
    """

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind == "wrapper":
            return f"wrapper({self.parameters[0]})"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(str(parameter) for parameter in self.parameters)})"


BOOL: Final = Type("bool", "bool")
INT: Final = Type("int", "int")
UINT: Final = Type("uint", "uint")
DOUBLE: Final = Type("double", "double")
STRING: Final = Type("string", "string")
BYTES: Final = Type("bytes", "bytes")
NULL: Final = Type("null", "null")
DYN: Final = Type("dyn", "dyn")
ERROR: Final = Type("error", "!error!")
TIMESTAMP: Final = Type("timestamp", "timestamp")
DURATION: Final = Type("duration", "duration")
TYPE: Final = Type("type", "type")
A: Final = Type("param", "A")
B: Final = Type("param", "B")


def list_of(element: Type) -> Type:
    """Return the type of lists of such elements."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from such keys to such values."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of values that may be missing."""
    return Type("opaque", "optional_type", (value,))


def type_of(instance: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "type", (instance,))


def wrapper_of(value: Type) -> Type:
    """Return the type of such a value or null."""
    return Type("wrapper", "wrapper", (value,))


def object_of(name: str) -> Type:
    """Return the type of objects whose fields a ``TypeProvider`` knows by this name."""
    return Type("object", name)


# The names that types have in an expression, and what ``type(x)`` gives.
NAMED: Final[Mapping[str, Type]] = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null_type": NULL,
    "dyn": DYN,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "type": TYPE,
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    "optional_type": optional_of(DYN),
}
_RUNTIME: Final[Mapping[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    **dict.fromkeys(LIST_KINDS, NAMED["list"]),
    dict: NAMED["map"],
    Timestamp: TIMESTAMP,
    Duration: DURATION,
    OptionalValue: NAMED["optional_type"],
    Type: TYPE,
}
_NAMES: Final = {kind: name for name, named in NAMED.items() for kind in (named,)}
REPRESENTED: Final[Mapping[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "list": list,
    "map": dict,
    "timestamp": Timestamp,
    "duration": Duration,
    "type": Type,
}


def represents(kind: type, declared: Type) -> bool:
    """Tell whether values of a Python type may be where a type is declared."""
    plain = REPRESENTED.get(declared.kind)
    if plain is not None:
        return kind is plain or (plain is list and kind in LIST_KINDS)
    if declared.kind not in ("object", "opaque"):
        return True
    return getattr(kind, "cel_type", None) == declared or (kind is OptionalValue and declared.name == "optional_type")


def runtime_type(value: object) -> Type:
    """Return the type that a value has while an expression runs; lists and maps do not tell of what."""
    found = _RUNTIME.get(kind_of(value))
    if found is not None:
        return found
    declared = getattr(kind_of(value), "cel_type", None)
    return declared if isinstance(declared, Type) else DYN


def type_name(value: Type) -> str:
    """Return the name that a type has as a value, such as ``google.protobuf.Duration``."""
    return _NAMES.get(value, value.name)


class TypeProvider(Protocol):
    """Where the checker takes the types of objects from; a CRD's schema is one."""

    def field_type(self, type_name: str, field: str) -> Type | None:
        """Return the type of a field, or None if there is no such field."""
        ...

    def named_type(self, name: str) -> Type | None:
        """Return the type that an expression means by a name, or None."""
        ...
