"""Types of CEL, for the checker and as values of ``type(x)``: a kind, a name and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, final

from deltaloop.cel.values import LIST_KINDS, Duration, OptionalValue, Timestamp, Uint, kind_of


@final
@dataclass(frozen=True, slots=True)
class Type:
    """Type of CEL.

    Attributes:
        kind: Kind, for example ``int``, ``list``, ``object`` (of a schema), ``opaque`` (of a library) or ``param``.
        name: Name in expressions and messages.
        parameters: Element type of a list, or key and value types of a map.
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
    """Return the type of a list."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of a map."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of an optional value."""
    return Type("opaque", "optional_type", (value,))


def type_of(instance: Type) -> Type:
    return Type("type", "type", (instance,))


def wrapper_of(value: Type) -> Type:
    return Type("wrapper", "wrapper", (value,))


def object_of(name: str) -> Type:
    """Return the type of objects whose fields a ``TypeProvider`` supplies by this name."""
    return Type("object", name)


# Names of types in expressions, and the values of ``type(x)``.
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
    """Return whether values of a Python type fit a declared type."""
    plain = REPRESENTED.get(declared.kind)
    if plain is not None:
        return kind is plain or (plain is list and kind in LIST_KINDS)
    if declared.kind not in ("object", "opaque"):
        return True
    return getattr(kind, "cel_type", None) == declared or (kind is OptionalValue and declared.name == "optional_type")


def runtime_type(value: object) -> Type:
    """Return the type of a value at run time, without the parameters of lists and maps."""
    found = _RUNTIME.get(kind_of(value))
    if found is not None:
        return found
    declared = getattr(kind_of(value), "cel_type", None)
    return declared if isinstance(declared, Type) else DYN


def type_name(value: Type) -> str:
    """Return the name of a type as a value, for example ``google.protobuf.Duration``."""
    return _NAMES.get(value, value.name)


class TypeProvider(Protocol):
    """Source of object types for the checker, for example the schema of a CRD."""

    def field_type(self, type_name: str, field: str) -> Type | None:
        """Return the type of a field, or None if it does not exist."""
        ...

    def named_type(self, name: str) -> Type | None:
        """Return the type with a name, or None."""
        ...
