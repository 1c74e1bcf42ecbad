"""Build the types of custom resources for ``type_stubs`` from CustomResourceDefinitions.

Parts without a type are ``Any``.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from typing import Final, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.schemas.type_stubs import (
    Field,
    FieldType,
    Kind,
    ListOf,
    MapOf,
    Module,
    Nullable,
    Scalar,
    Struct,
    StructReference,
    class_name,
    literal,
)

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
