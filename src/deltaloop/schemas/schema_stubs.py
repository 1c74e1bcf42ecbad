"""Stubs of custom resources: the types that a CustomResourceDefinition's schemas say, for ``type_stubs``. Pure.

A struct is named by the way to it: ``CertificateSpecKeystores`` is what ``spec.keystores`` of a Certificate holds.
Where a schema keeps fields that it does not know, or says nothing, the type is ``Any``. An enumeration of texts is one
when it is written, and a ``str`` when it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from deltaloop.schemas.json_values import at, is_mapping, items, mapping, text, texts
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
)

_TEXT: Final = Scalar("str")
_ANY: Final = Scalar("Any")
_SCALARS: Final = {"string": _TEXT, "integer": Scalar("int"), "number": Scalar("float"), "boolean": Scalar("bool")}
_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))


def modules(definitions: Iterable[dict[str, object]]) -> list[tuple[Module, str]]:
    """Return a module for each group and version that definitions serve, and the text of its constants at run time.

    Args:
        definitions: CustomResourceDefinitions, of ``apiextensions.k8s.io/v1``.
    """
    found: dict[tuple[str, str], list[tuple[dict[str, object], object]]] = {}
    for definition in definitions:
        group = text(at(definition, "spec", "group"))
        for version in items(at(definition, "spec", "versions")):
            if at(version, "served") is not False:
                schema = at(version, "schema", "openAPIV3Schema")
                found.setdefault((group, text(at(version, "name"))), []).append((definition, schema))
    return [_module(group, version, found[group, version]) for group, version in sorted(found)]


def module_name(group: str, version: str) -> str:
    """Return what the module of a group and version is called, such as ``cert_manager_io_v1``."""
    return re.sub(r"\W", "_", f"{group}_{version}")


def constant_name(kind: str) -> str:
    """Return what the constant of a kind is called, such as ``CERTIFICATE_REQUEST``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).upper()


def _module(group: str, version: str, kinds: list[tuple[dict[str, object], object]]) -> tuple[Module, str]:
    made = _Structs()
    about = f"Kinds of {group}/{version}."
    typed: list[Kind] = []
    lines = [f'"""{about}"""', "", "from typing import Final", ""]
    lines += ["from deltaloop.api.resource import Resource", "from deltaloop.api.resource_type import ResourceType", ""]
    constants: list[tuple[str, str]] = []
    for definition, schema in kinds:
        name, plural = text(at(definition, "spec", "names", "kind")), text(at(definition, "spec", "names", "plural"))
        namespaced = at(definition, "spec", "scope") != "Cluster"
        made.names.update((name, f"{name}Type"))
        typed.append(Kind(name, f"{group}/{version}", (*_head(namespaced=namespaced), *made.top(name, schema))))
        constants.append((constant_name(name), f"{name}Type"))
        more = "" if namespaced else ", namespaced=False"
        called = ", ".join(json.dumps(part) for part in (group, version, name, plural))
        lines.append(f"{constant_name(name)}: Final = ResourceType[Resource]({called}{more})")
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
    """Collects the structs of a module."""

    def __init__(self) -> None:
        self.structs: list[Struct] = []
        self.names = set[str]()

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
            return Scalar("str", f"Literal[{', '.join(json.dumps(choice) for choice in choices)}]")
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
