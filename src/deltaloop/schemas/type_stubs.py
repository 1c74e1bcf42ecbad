"""Generate type stubs for the objects of a kind: ``DeploymentSpec`` for reading and ``DeploymentSpecDict`` for writing.

``AnyFields`` is a mapping to a class without instances, which accepts ``Any`` but no literal values.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

COMMON: Final = "written"
"""Module with the names that all other modules share."""
_LINE: Final = 120
# Names in annotations. A field with such a name in a class body would hide the name from the next fields.
_NAMED: Final = frozenset(
    (
        "str",
        "int",
        "float",
        "bool",
        "list",
        "Any",
        "Literal",
        "Mapping",
        "ReadOnly",
        "Required",
        "Sequence",
        "AnyFields",
        "datetime",
        "meta_v1",
    )
)


class Scalar(msgspec.Struct, frozen=True):
    """Type without structs as an annotation. ``writing`` is the type for writing if it differs."""

    reading: str
    writing: str = ""


class StructReference(msgspec.Struct, frozen=True):
    """Reference to a struct. An empty module means the same module."""

    name: str
    module: str = ""


class ListOf(msgspec.Struct, frozen=True):
    items: FieldType


class MapOf(msgspec.Struct, frozen=True):
    """Type of an object with arbitrary keys."""

    values: FieldType


class Nullable(msgspec.Struct, frozen=True):
    """Type of a field that a server writes as null if it is absent."""

    other: FieldType


FieldType: TypeAlias = Scalar | StructReference | ListOf | MapOf | Nullable


class Field(msgspec.Struct, frozen=True):
    """Field of a struct. ``always`` means that a server always sends it, ``required`` that a write must have it."""

    name: str
    type: FieldType
    always: bool = False
    required: bool = False
    writing: FieldType | None = None


class Struct(msgspec.Struct, frozen=True):
    """Object with named fields. ``read_only`` means that it is never written separately."""

    name: str
    fields: tuple[Field, ...]
    read_only: bool = False


class Kind(msgspec.Struct, frozen=True):
    name: str
    api_version: str
    fields: tuple[Field, ...]


class Module(msgspec.Struct, frozen=True):
    """Types of a group and version. ``constants`` are names of resource types with their classes."""

    name: str
    about: str
    structs: tuple[Struct, ...]
    kinds: tuple[Kind, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()


def class_name(text: str) -> str:
    """Return a class name for a field, for example ``DnsNames`` for ``dnsNames``."""
    # ASCII only: Python normalizes other identifiers, so two different names could become one.
    parts = re.split(r"[^A-Za-z0-9]+", text)
    made = "".join(part[:1].upper() + part[1:] for part in parts)
    return made if made and not made[0].isdigit() else f"Field{made}"


def literal(text: str) -> str:
    """Return a Python string literal whose value is the text."""
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def is_plain_name(name: str) -> bool:
    return (
        name.isascii()
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not name[0].isupper()
        and not name.startswith("__")  # mangled
        and name not in _NAMED
    )


def module_text(module: Module, *, package: str) -> str:
    """Return a stub. ``package`` contains the other modules, for example ``deltaloop.types``."""
    others = sorted({found.module for found in _references(module) if found.module})
    body = [line for struct in module.structs for line in _struct(struct)]
    body += [line for kind in module.kinds for line in _kind(kind)]
    if module.constants:
        body += ["", *(f"{name}: Final[{called}]" for name, called in module.constants)]
    text = "\n".join(body)
    lines = [f'"""{module.about}"""', ""]
    if module.kinds:
        lines += ["# pyright: reportIncompatibleMethodOverride=false", ""]
    if "Mapping[" in text or "Sequence[" in text:
        lines.append(_import("collections.abc", [name for name in ("Mapping", "Sequence") if f"{name}[" in text]))
    if "datetime" in text:
        lines.append(_import("datetime", ["datetime"]))
    typing = [name for name in ("Any", "Final", "Literal", "TypeVar", "overload") if re.search(rf"\b{name}\b", text)]
    if module.kinds:
        typing = sorted({*typing, "TypeVar", "overload"}, key=str.lower)
    if typing:
        lines.append(_import("typing", sorted(typing, key=lambda name: (name.islower(), name))))
    special = [name for name in ("ReadOnly", "Required") if f"{name}[" in text]
    lines += ["", _import("typing_extensions", [*special, "TypedDict"]), ""]
    if module.kinds:
        lines.append("from deltaloop.api.resource import Resource")
        lines.append("from deltaloop.api.resource_type import ResourceType")
    if others:
        lines.append(_import(package, others))
    shared = [name for name in ("AnyFields", "Texts") if name in text]
    if shared:
        lines.append(_import(f"{_HOME}.{COMMON}", shared))
    if module.kinds:
        lines += ["", 'D = TypeVar("D")']
    return "\n".join([*lines, *body, ""])


_HOME: Final = "deltaloop.types"


def _import(package: str, names: Iterable[str]) -> str:
    return f"from {package} import {', '.join(names)}"


def _references(module: Module) -> Iterator[StructReference]:
    parts: list[Struct | Kind] = [*module.structs, *module.kinds]
    for part in parts:
        for field in part.fields:
            yield from _below(field.type)
            if field.writing is not None:
                yield from _below(field.writing)


def _below(kind: FieldType) -> Iterator[StructReference]:
    match kind:
        case StructReference():
            yield kind
        case ListOf(items=inner) | MapOf(values=inner) | Nullable(other=inner):
            yield from _below(inner)
        case Scalar():
            pass


def _reading(kind: FieldType) -> str:
    match kind:
        case Scalar(reading=text):
            return text
        case StructReference(name=name, module=module):
            return f"{module}.{name}" if module else name
        case ListOf(items=inner):
            return f"Sequence[{_reading(inner)}]"
        case MapOf(values=inner):
            return f"Mapping[str, {_reading(inner)}]"
        case Nullable(other=inner):
            return f"{_reading(inner)} | None"


def _writing(kind: FieldType) -> str:
    match kind:
        case Scalar(reading=reading, writing=writing):
            return writing or reading
        case StructReference(name=name, module=module):
            return f"{module}.{name}Dict | AnyFields" if module else f"{name}Dict | AnyFields"
        case ListOf(items=Scalar(reading="str", writing="")):
            return "Texts"  # a str is also a Sequence[str]
        case ListOf(items=Scalar(writing=text)) if text.startswith("str"):
            return f"list[{text}] | tuple[{text}, ...]"
        case ListOf(items=inner):
            return f"Sequence[{_writing(inner)}]"
        case MapOf(values=inner):
            return f"Mapping[str, {_writing(inner)}]"
        case Nullable(other=inner):
            return _writing(inner)


def _struct(struct: Struct) -> list[str]:
    read = [(field.name, _reading(field.type), field.always) for field in struct.fields]
    made = _typed_dict(struct.name, read, read_only=True)
    return made if struct.read_only else [*made, *_written(struct)]


def _written(struct: Struct | Kind) -> list[str]:
    fields = [(field.name, _writing(field.writing or field.type), field.required) for field in struct.fields]
    return _typed_dict(f"{struct.name}Dict", fields, read_only=False)


def _typed_dict(name: str, fields: Sequence[tuple[str, str, bool]], *, read_only: bool) -> list[str]:
    items: list[tuple[str, str]] = []
    for field, text, required in fields:
        shown = f"ReadOnly[{text}]" if read_only else text
        items.append((field, f"Required[{shown}]" if required else shown))
    if not items:
        return ["", f"class {name}(TypedDict, total=False): ..."]
    if all(is_plain_name(field) for field, _ in items):
        return ["", f"class {name}(TypedDict, total=False):", *(f"    {field}: {text}" for field, text in items)]
    inner = [f"        {literal(field)}: {text}," for field, text in items]
    return ["", f"{name} = TypedDict(", f'    "{name}",', "    {", *inner, "    },", "    total=False,", ")"]


def _kind(kind: Kind) -> list[str]:
    lines = ["", f"class {kind.name}(Resource, frozen=True):"]
    ignored = "  # type: ignore[override]"
    for field in kind.fields:
        lines.append(f"    @overload{ignored}")
        key = f"Literal[{literal(field.name)}]"
        lines.append(f"    def __getitem__(self, field: {key}) -> {_reading(field.type)}: ...")
        ignored = ""
    ignored = "  # type: ignore[override]"
    for field in kind.fields:
        key, found = f"Literal[{literal(field.name)}]", _reading(field.type)
        none = "" if field.always else " | None"
        lines.append(f"    @overload{ignored}")
        lines.append(f"    def get(self, field: {key}, default: None = None) -> {found}{none}: ...")
        lines.append("    @overload")
        if _is_text(field.type):
            lines.append(f"    def get(self, field: {key}, default: D) -> {found} | D: ...")
        else:
            lines.append(f"    def get(self, field: {key}, default: {found} | {_empty(field.type)}) -> {found}: ...")
        ignored = ""
    accepts = f"    def _accepts(self, obj: {kind.name}Dict) -> {kind.name}: ..."
    return [*lines, *_written(kind), "", f"class {kind.name}Type(ResourceType[{kind.name}], frozen=True):", accepts]


def _is_text(kind: FieldType) -> bool:
    return isinstance(kind, Scalar)


def _empty(kind: FieldType) -> str:
    return "Sequence[Any]" if isinstance(kind, ListOf) else "AnyFields"
