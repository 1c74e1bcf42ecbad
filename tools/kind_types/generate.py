"""Rewrite the stubs of the built-in kinds, ``src/deltaloop/types`` and of ``api/kinds.py``: ``make generate``.

Sources: the table of types that the embedded server has (``builtin_kinds.json.gz``: fields, what a server always
writes, what it fills in) and the published schemas (dependency group ``tables``: what is required). No sentence of
theirs is copied. Beside each stub is a module without names, so that an import of it need not be hidden from the run
time. With ``--check`` nothing is written.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from tools.builtin_tables.generate import definitions, short_name

import deltaloop.api.kinds
from deltaloop.api.json_values import is_mapping
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.builtin_tables import builtin_tables
from deltaloop.schemas import type_stubs
from deltaloop.schemas.type_table import FieldShape, StructType

_SOURCE: Final = Path(__file__).parents[2] / "src" / "deltaloop"
_PACKAGE: Final = "deltaloop.types"
_META: Final = "meta.v1.ObjectMeta"
_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_WORDS: Final = {
    "string": type_stubs.Scalar("str"),
    "bytes": type_stubs.Scalar("str"),
    "boolean": type_stubs.Scalar("bool"),
    "int32": type_stubs.Scalar("int"),
    "int64": type_stubs.Scalar("int"),
    "number": type_stubs.Scalar("float"),
    "time": type_stubs.Scalar("str", "str | datetime"),
    "micro_time": type_stubs.Scalar("str", "str | datetime"),
    "quantity": type_stubs.Scalar("str", "str | float"),
    "intstr": type_stubs.Scalar("int | str"),
    "any": type_stubs.Scalar("Any"),
    "atomic": type_stubs.Scalar("Any"),
    "schema": type_stubs.Scalar("Any"),
}
# What a server gives every stored object; in a template they are not.
_STORED: Final = ("name", "uid", "resourceVersion", "creationTimestamp")


def module_of(name: str) -> str:
    """Return the module that a struct of the table is in, such as ``core_v1``."""
    return "_".join(name.split(".")[:-1])


def _class(name: str) -> str:
    return name.rpartition(".")[2]


def field_type(shape: object, module: str, kinds: frozenset[str]) -> type_stubs.FieldType:
    """Return a field's type in the words of stubs; ``kinds`` are structs whose plain form has another name."""
    if isinstance(shape, FieldShape):
        if shape.item is not None:
            return type_stubs.ListOf(field_type(shape.item, module, kinds))
        if shape.value is not None:
            return type_stubs.MapOf(field_type(shape.value, module, kinds))
        return field_type(shape.of, module, kinds)
    text = str(shape)
    if not text.startswith("#"):
        return _WORDS[text]
    name = text.removeprefix("#")
    home = module_of(name)
    shown = f"{_class(name)}View" if name in kinds else _class(name)
    return type_stubs.StructReference(shown, "" if home == module else home)


def _references(shape: object) -> list[str]:
    if isinstance(shape, FieldShape):
        return [
            name for inner in (shape.item, shape.value, shape.of) if inner is not None for name in _references(inner)
        ]
    return [str(shape).removeprefix("#")] if str(shape).startswith("#") else []


def fields_of(
    struct: StructType, required: frozenset[str], module: str, kinds: frozenset[str]
) -> tuple[type_stubs.Field, ...]:
    """Return the fields of a struct, with what is always there and what has to be written."""
    made: list[type_stubs.Field] = []
    for name, shape in struct.fields.items():
        kind = field_type(shape, module, kinds)
        filled = name in struct.fill or bool(struct.defaults.get(name)) or name in required
        if name in struct.always and struct.zeros.get(name, "") is None and not filled:
            kind = type_stubs.Nullable(kind)
        made.append(type_stubs.Field(name, kind, always=filled or name in struct.always, required=name in required))
    return tuple(made)


def make() -> dict[str, str]:
    """Return the stubs' texts by the names of their files."""
    tables = builtin_tables()
    requirements = {
        short_name(name): frozenset(cast("list[str]", schema.get("required", ())))
        for name, schema in cast("Mapping[str, Any]", definitions()).items()
        if is_mapping(schema)
    }
    kind_types = frozenset(kind.type for kind in tables.kinds)
    below, waiting = set[str](), [*kind_types, *tables.bodies.values()]
    while waiting:
        for shape in tables.types[waiting.pop()].fields.values():
            found = [name for name in _references(shape) if name not in below]
            below.update(found)
            waiting += found
    structs: dict[str, list[type_stubs.Struct]] = defaultdict(list)
    kinds: dict[str, list[type_stubs.Kind]] = defaultdict(list)
    for name in sorted(below):
        module = module_of(name)
        fields = fields_of(tables.types[name], requirements.get(name, frozenset()), module, kind_types)
        shown = f"{_class(name)}View" if name in kind_types else _class(name)
        structs[module].append(type_stubs.Struct(shown, fields))
        if name == _META:
            structs[module] += [_stored(fields, "StoredMeta"), _stored(fields, "NamespacedMeta", "namespace")]
    homes: dict[str, str] = {}
    for kind in sorted(tables.kinds, key=lambda kind: kind.type):
        module = module_of(kind.type)
        if homes.setdefault(module, kind.api_version) != kind.api_version:
            raise ValueError(f"{module} has kinds of {homes[module]} and of {kind.api_version}")
        fields = fields_of(tables.types[kind.type], requirements.get(kind.type, frozenset()), module, kind_types)
        meta = type_stubs.StructReference("NamespacedMeta" if kind.namespaced else "StoredMeta", "meta_v1")
        top = [
            type_stubs.Field("apiVersion", _WORDS["string"], always=True),
            type_stubs.Field("kind", _WORDS["string"], always=True),
            type_stubs.Field(
                "metadata", meta, always=True, writing=type_stubs.StructReference("ObjectMeta", "meta_v1")
            ),
        ]
        rest = [field for field in fields if field.name not in ("apiVersion", "kind", "metadata")]
        kinds[module].append(type_stubs.Kind(_class(kind.type), kind.api_version, (*top, *rest)))
    made: dict[str, str] = {}
    for name in sorted({*structs, *kinds}):
        about = f"Kinds of {homes[name]}." if name in homes else "Types that kinds of other groups are made of."
        content = type_stubs.Module(name, about, tuple(structs[name]), tuple(kinds[name]))
        made[f"{name}.pyi"] = type_stubs.module_text(content, package=_PACKAGE)
        made[f"{name}.py"] = f'"""{about} For type checkers; the names are in the stub."""\n'
    return {f"types/{name}": text for name, text in made.items()} | {"api/kinds.pyi": _constants()}


def _constants() -> str:
    """Return the stub of the constants: each is of its kind's own type."""
    types = {(kind.api_version, kind.kind): kind.type for kind in builtin_tables().kinds}
    homes, lines = set[str](), list[str]()
    for name, constant in vars(deltaloop.api.kinds).items():
        if isinstance(constant, ResourceType):
            known = cast("ResourceType[Any]", constant)
            struct = types[known.api_version, known.kind]
            homes.add(module_of(struct))
            lines.append(f"{name}: Final[{module_of(struct)}.{_class(struct)}Type]")
    return "\n".join([_CONSTANTS.format(homes=", ".join(sorted(homes))), *lines, _OTHERS])


_CONSTANTS: Final = '''"""The built-in kinds as type checkers see them: each constant is of its kind's own type."""

from typing import Any, Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind, ResourceType
from deltaloop.types import {homes}
'''
_OTHERS: Final = """
BUILT_IN: Final[tuple[ResourceType[Resource], ...]]

def parse_resource_type(name: str | TypedKind[Any]) -> ResourceType[Any]: ...
"""


def _stored(fields: tuple[type_stubs.Field, ...], name: str, *more: str) -> type_stubs.Struct:
    present = (*_STORED, *more)
    return type_stubs.Struct(
        name,
        tuple(type_stubs.Field(field.name, field.type, always=field.name in present) for field in fields),
        read_only=True,
    )


def main(arguments: list[str]) -> int:
    """Write the stubs, or compare them."""
    made = make()
    files = [*(_SOURCE / "types").glob("*_v[0-9]*.py*"), _SOURCE / "api" / "kinds.pyi"]
    present = {str(path.relative_to(_SOURCE)): path.read_text() for path in files if path.is_file()}
    if "--check" in arguments:
        other = sorted(name for name in {*made, *present} if made.get(name) != present.get(name))
        print(f"differ: {' '.join(other)}" if other else "stubs: up to date")
        return bool(other)
    for name in {*present} - {*made}:
        (_SOURCE / name).unlink()
    for name, text in made.items():
        (_SOURCE / name).write_text(text)
    print(f"{len(made) // 2} stubs, {sum(map(len, made.values())) // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
