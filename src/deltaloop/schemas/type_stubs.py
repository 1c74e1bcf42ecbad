"""Generate type stubs for the objects of a kind: ``DeploymentSpec`` for reading and ``DeploymentSpecDict`` for writing.

``AnyFields`` is a mapping to a class without instances, which accepts ``Any`` but no literal values.

Parts without a type are ``Any``.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts

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
    for field, written, required in fields:
        shown = f"ReadOnly[{written}]" if read_only else written
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


_TEXT: Final = Scalar("str")
_ANY: Final = Scalar("Any")
_SCALARS: Final = {"string": _TEXT, "integer": Scalar("int"), "number": Scalar("float"), "boolean": Scalar("bool")}
_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))
# Names that a generated module imports or defines.
_USED: Final = frozenset(
    {"Any", "AnyFields", "D", "Final", "Literal", "Mapping", "ReadOnly", "Required", "Resource", "ResourceType"}
    | {"Sequence", "Texts", "TypeVar", "TypedDict"}
)


@final
class UnusableDefinitionError(DeltaloopError, ValueError):
    """A CustomResourceDefinition has a name that an API server rejects, at ``path``."""

    def __init__(self, path: str, value: str, problem: str) -> None:
        super().__init__(f"CustomResourceDefinition: {path} {value!r} is not valid: {problem}. Fix the definition.")
        self.path = path
        self.value = value


def modules(definitions: Iterable[dict[str, object]]) -> list[tuple[Module, str]]:
    """Return a module for each served group and version, with its constants' text, or raise UnusableDefinitionError."""
    found: dict[tuple[str, str], list[tuple[dict[str, object], object]]] = {}
    for definition in definitions:
        for path, value, problems in _checked_names(definition):
            if problems:
                raise UnusableDefinitionError(path, value, problems[0])
        group = text(at(definition, "spec", "group"))
        for version in items(at(definition, "spec", "versions")):
            if at(version, "served") is not False:
                schema = at(version, "schema", "openAPIV3Schema")
                found.setdefault((group, text(at(version, "name"))), []).append((definition, schema))
    return [_module(group, version, found[group, version]) for group, version in sorted(found)]


def _checked_names(definition: dict[str, object]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the path, the value and the problems of each name that reaches the generated code."""
    group = text(at(definition, "spec", "group"))
    kind, plural = text(at(definition, "spec", "names", "kind")), text(at(definition, "spec", "names", "plural"))
    yield "spec.group", group, subdomain_problems(group)
    yield "spec.names.kind", kind, label_problems(kind.lower()) if kind.isascii() else ["must be ASCII"]
    yield "spec.names.plural", plural, label_problems(plural)
    for version in items(at(definition, "spec", "versions")):
        name = text(at(version, "name"))
        yield "spec.versions[*].name", name, label_problems(name)


def module_name(group: str, version: str) -> str:
    """Return the module name of a group and version, for example ``cert_manager_io_v1``."""
    name = re.sub(r"\W", "_", f"{group}_{version}")
    return name if name.isidentifier() else f"_{name}"


def constant_name(kind: str) -> str:
    """Return the constant name of a kind, for example ``CERTIFICATE_REQUEST``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).replace("-", "_").upper()


def kind_class_name(kind: str) -> str:
    """Return the class name of a kind: the kind, unless Python or the generated module uses that name."""
    name = kind.replace("-", "_")
    return f"{name}Object" if keyword.iskeyword(name) or name in _USED or name == constant_name(kind) else name


def _module(group: str, version: str, kinds: list[tuple[dict[str, object], object]]) -> tuple[Module, str]:
    made = _Structs()
    about = f"Kinds of {group}/{version}."
    typed: list[Kind] = []
    lines = [f'"""{about}"""', "", "from typing import Final", ""]
    lines += ["from deltaloop.api.resource import Resource", "from deltaloop.api.resource_type import ResourceType", ""]
    constants: list[tuple[str, str]] = []
    for definition, _ in kinds:
        name = kind_class_name(text(at(definition, "spec", "names", "kind")))
        made.names.update((name, f"{name}Dict", f"{name}Type"))
    for definition, schema in kinds:
        kind, plural = text(at(definition, "spec", "names", "kind")), text(at(definition, "spec", "names", "plural"))
        name = kind_class_name(kind)
        namespaced = at(definition, "spec", "scope") != "Cluster"
        typed.append(Kind(name, f"{group}/{version}", (*_head(namespaced=namespaced), *made.top(name, schema))))
        constants.append((constant_name(kind), f"{name}Type"))
        more = "" if namespaced else ", namespaced=False"
        called = ", ".join(literal(part) for part in (group, version, kind, plural))
        lines.append(f"{constant_name(kind)}: Final = ResourceType[Resource]({called}{more})")
    module = Module(module_name(group, version), about, tuple(made.structs), tuple(typed), tuple(constants))
    return module, "\n".join([*lines, ""])


def _head(*, namespaced: bool) -> tuple[Field, ...]:
    meta = StructReference("NamespacedMeta" if namespaced else "StoredMeta", "meta_v1")
    return (
        Field("apiVersion", _TEXT, always=True),
        Field("kind", _TEXT, always=True),
        Field("metadata", meta, always=True, writing=StructReference("ObjectMeta", "meta_v1")),
    )


class _Structs:
    def __init__(self) -> None:
        self.structs: list[Struct] = []
        self.names = set[str](_USED)

    def top(self, kind: str, schema: object) -> tuple[Field, ...]:
        return tuple(field for field in self._fields(kind, mapping(schema)) if field.name not in _HEAD)

    def _fields(self, path: str, schema: dict[str, object]) -> list[Field]:
        required = texts(schema.get("required"))
        return [
            Field(
                name,
                self._type(path + class_name(name), mapping(below)),
                always=name in required or "default" in mapping(below),
                required=name in required and "default" not in mapping(below),
            )
            for name, below in mapping(schema.get("properties")).items()
        ]

    def _type(self, path: str, schema: dict[str, object]) -> FieldType:
        found = self._without_null(path, schema)
        return Nullable(found) if schema.get("nullable") is True and found != _ANY else found

    def _without_null(self, path: str, schema: dict[str, object]) -> FieldType:
        if schema.get("x-kubernetes-int-or-string") is True:
            return Scalar("int | str")
        kind = text(schema.get("type"))
        choices = texts(schema.get("enum"))
        if kind == "string" and choices and len(choices) == len(items(schema.get("enum"))):
            return Scalar("str", f"Literal[{', '.join(map(literal, choices))}]")
        if kind == "array":
            return ListOf(self._type(f"{path}Item", mapping(schema.get("items"))))
        if kind != "object":
            return _SCALARS.get(kind, _ANY)
        if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
            return _ANY
        if schema.get("properties"):
            return StructReference(self._add(path, schema))
        values = schema.get("additionalProperties")
        return MapOf(self._type(f"{path}Value", values)) if is_mapping(values) else _ANY

    def _add(self, path: str, schema: dict[str, object]) -> str:
        name, number = path, 1
        while self.names & {name, f"{name}Dict"}:
            number += 1
            name = f"{path}{number}"
        self.names |= {name, f"{name}Dict"}
        self.structs.append(Struct(name, tuple(self._fields(name, schema))))
        return name
