"""Rewrite the tables of the built-in kinds: ``python -m tools.builtin_tables.generate``.

Sources: the JSON schemas in ``kubernetes-validate`` (types, list types, merge keys; dependency group ``tables``),
``observed.json`` (what a real server says of its kinds: ``observe.py``), the protobuf table of this repository (which
fields Go always writes), ``defaults.toml`` (defaults), and ``hand_kept.toml`` (the rest). The format of the data file
is described in ``core/builtin/tables.py``. With ``--check`` nothing is written.
"""

from __future__ import annotations

import gzip
import importlib.util
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from deltaloop.api.kubernetes_version import KUBERNETES, MINOR
from deltaloop.apiserver.core.wire.protobuf_table import Field, FieldTable, parse_table
from deltaloop.apiserver.core.wire.protobuf_values import EMPTY_SCALARS, SPECIAL_MESSAGES

HERE: Final = Path(__file__).parent
SERVER: Final = HERE.parents[1] / "src" / "deltaloop" / "apiserver"
TARGET: Final = SERVER / "builtin_kinds.json.gz"
_SCALARS: Final = ("string", "number", "boolean")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PREFIXES: Final = (
    (_META, "meta.v1."),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
    ("io.k8s.api.", ""),
)
# Types that are not what their schema says, or whose schema says nothing.
_SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "atomic",
    _META + "Time": "time",
    _META + "MicroTime": "micro_time",
    _META + "FieldsV1": "any",
}
_SCHEMA_TYPES: Final = frozenset(
    f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr{other}" for other in ("Array", "Bool")
)
_ATOMIC_ANY: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"


# Structs of Go that JSON writes as something else.
_NULL_STRUCTS: Final = ("time", "microtime", "json", "schemaorbool", "schemaorarray", "schemaorstrings")
_ZERO_STRUCTS: Final[Mapping[str, Any]] = {"quantity": "0", "intorstring": 0, "duration": "0s"}


class MissingSourceError(RuntimeError):
    """A package that the tables are made from is not installed, or of another version."""


def folder_of(package: str, distribution: str) -> Path:
    """Return where a package's files are, without running it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingSourceError(f"{distribution} is missing: pip install --group tables")
    return Path(next(iter(spec.submodule_search_locations)))


def schemas_file(minor: str) -> Path:
    """Return where the published schemas of a version are, such as ``1.36``."""
    folder = folder_of("kubernetes_validate", "kubernetes-validate")
    path = folder / "kubernetes-json-schema" / f"v{minor}.0-local" / "_definitions.json"
    if not path.exists():
        raise MissingSourceError(
            f"kubernetes-validate has no schemas of {minor}: a newer one, by pyproject.toml and pip"
        )
    return path


def definitions() -> dict[str, dict[str, Any]]:
    """Return the published schemas by name."""
    content = msgspec.json.decode(schemas_file(MINOR).read_bytes())
    return cast("dict[str, dict[str, Any]]", content["$defs"])


def observed() -> list[dict[str, Any]]:
    """Return the kinds that ``observe.py`` has found, without those that have no schema."""
    return cast("list[dict[str, Any]]", _all_observed()["kinds"])


def _all_observed() -> dict[str, Any]:
    content = msgspec.json.decode((HERE / "observed.json").read_bytes(), type=dict[str, Any])
    if content["kubernetes"] != f"v{KUBERNETES}":
        raise MissingSourceError(f"observed.json is of {content['kubernetes']}; v{KUBERNETES} is needed: observe.py")
    return content


def short_name(name: str) -> str:
    """Return a schema's name as the data file has it."""
    for prefix, replacement in _PREFIXES:
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name


def schema_names(schemas: Mapping[str, dict[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Return the name of each kind's schema by group, version and kind."""
    return {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in schemas.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
        if len(schema["x-kubernetes-group-version-kind"]) == 1
    }


class Types:
    """Collects the types that the kinds are made of."""

    def __init__(self, schemas: dict[str, dict[str, Any]]) -> None:
        """Read from these schemas."""
        self.schemas = schemas
        self.made: dict[str, dict[str, Any]] = {}

    def add(self, name: str) -> None:
        """Add a struct and everything below it."""
        short = short_name(name)
        if short in self.made:
            return
        schema = self.schemas[name]
        entry: dict[str, Any] = {"fields": {}}
        self.made[short] = entry
        if schema.get("x-kubernetes-map-type") == "atomic":
            entry["atomic"] = True
        for field, child in schema.get("properties", {}).items():
            entry["fields"][field] = self._type(child)
        if schema.get("required"):
            entry["always"] = sorted(schema["required"])

    def _type(self, schema: dict[str, Any]) -> Any:
        marks: dict[str, Any] = {}
        strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
        for strategy, mark in (("retainKeys", "retain"), ("replace", "replace")):
            if strategy in strategies:
                marks[mark] = True
        relation = schema.get("x-kubernetes-map-type")
        if "$ref" in schema:
            below = self._reference(schema["$ref"].rpartition("/")[2])
            if relation and below.startswith("#"):
                marks[relation] = True
            return {"type": below, **marks} if marks else below
        given: Any = schema.get("type")
        kinds = cast("list[str]", given) if isinstance(given, list) else [given]
        kind = next((name for name in kinds if name != "null"), "")
        if kind == "string" and schema.get("format") == "byte":
            return "bytes"
        if kind in _SCALARS:
            return kind
        if kind == "integer":
            return schema.get("format", "int64")
        if kind == "array":
            made = {"list": self._type(schema["items"]), **marks}
            list_type = schema.get("x-kubernetes-list-type", "atomic")
            if list_type == "map":
                made["keys"] = schema["x-kubernetes-list-map-keys"]
            elif list_type == "set":
                made["set"] = True
            if "merge" in strategies:
                made["merge"] = schema.get("x-kubernetes-patch-merge-key", "")
            return made
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            made = {"map": self._type(schema["additionalProperties"]), **marks}
            if relation == "atomic":
                made["atomic"] = True
            return made
        return "any"

    def _reference(self, name: str) -> str:
        schema = self.schemas[name]
        if name in _SPECIAL:
            return _SPECIAL[name]
        if name == _ATOMIC_ANY:
            return "atomic"
        if name in _SCHEMA_TYPES:
            return "schema"
        if "properties" in schema:
            self.add(name)
            return "#" + short_name(name)
        made = self._type(schema)
        return made if isinstance(made, str) else "any"


def _mark_always(types: dict[str, dict[str, Any]], table: FieldTable, root: str, message_name: str) -> None:
    """Say of each struct which fields Go writes even when nobody has set them; schemas only know what is required."""
    special = {line.split()[0] for line in SPECIAL_MESSAGES.splitlines() if line}
    waiting, seen = [(root, message_name)], set[str]()
    while waiting:
        name, called = waiting.pop()
        message = table.messages.get(called)
        if name in seen or message is None or name not in types:
            continue
        seen.add(name)
        always: list[str] = []
        zeros: dict[str, Any] = {}
        values: list[str] = []
        omitted: list[str] = []
        for field in _flat(message, table):
            if field.name not in types[name]["fields"]:
                continue
            is_struct = field.type not in EMPTY_SCALARS and field.type not in special
            written = is_struct and not (field.pointer or field.repeated or field.map or field.omit_zero)
            if field.always or written:
                always.append(field.name)
            if field.always or _is_struct_in_go(field):
                zeros[field.name] = _zero(field)
            if _is_omitted(field):
                omitted.append(field.name)
            if field.name in types[name].get("fill", {}) and not field.pointer:
                values.append(field.name)
            below = _struct_below(types[name]["fields"][field.name])
            if below and is_struct:
                waiting.append((below, field.type))
        types[name].pop("always", None)
        if always:
            types[name]["always"] = sorted(always)
        if omitted:
            types[name]["omit_zero"] = sorted(omitted)
        if values:
            types[name]["fill_zero"] = sorted(values)
        if zeros:
            types[name]["zeros"] = {field: zeros[field] for field in sorted(zeros)}


def _is_struct_in_go(field: Field) -> bool:
    """Tell whether a field is of a type that ``omitempty`` does not leave out."""
    held = field.pointer or field.repeated or field.map or field.omit_zero
    return not held and field.type not in EMPTY_SCALARS


def _is_omitted(field: Field) -> bool:
    """Tell whether Go leaves a scalar out when it is "", 0 or false."""
    held = field.pointer or field.repeated or field.map or field.always
    return not held and field.type in EMPTY_SCALARS and field.type != "bytes"


def _zero(field: Field) -> Any:
    """Return what Go writes for a field that nobody has set."""
    if field.pointer or field.repeated or field.map:
        return None
    if field.type in EMPTY_SCALARS:
        return EMPTY_SCALARS[field.type]
    if field.type in _NULL_STRUCTS:
        return None
    return _ZERO_STRUCTS.get(field.type, {})


def _flat(message: Mapping[int, Field], table: FieldTable) -> Iterator[Field]:
    for field in message.values():
        if field.inline:
            yield from _flat(table.messages[field.type], table)
        else:
            yield field


def _struct_below(kind: Any) -> str:
    while isinstance(kind, dict):
        fields = cast("dict[str, Any]", kind)
        kind = fields.get("list") or fields.get("map") or fields.get("type")
    return kind.removeprefix("#") if isinstance(kind, str) and kind.startswith("#") else ""


def make() -> bytes:
    """Return the data file's content, unpacked."""
    schemas = definitions()
    names = schema_names(schemas)
    hand_kept = tomllib.loads((HERE / "hand_kept.toml").read_text())
    key_defaults, of_kinds = hand_kept["key_defaults"], hand_kept["kinds"]
    table = parse_table(gzip.decompress((SERVER / "protobuf_fields.txt.gz").read_bytes()).decode())
    types = Types(schemas)
    entries: dict[tuple[str, str, str], dict[str, Any]] = {}
    for kind in observed():
        key = (kind["group"], kind["version"], kind["kind"])
        if key in names:
            types.add(names[key])
            given = {name: value for name, value in kind.items() if value or name in ("group", "namespaced")}
            entries[key] = {**given, "type": short_name(names[key])}
    for called, values in tomllib.loads((HERE / "defaults.toml").read_text()).items():
        types.made[called]["fill"] = values
    for (group, version_name, kind_name), entry in entries.items():
        api_version = f"{group}/{version_name}" if group else version_name
        entry.update(of_kinds.pop(f"{api_version} {kind_name}", {}))
        message = table.kinds.get((api_version, kind_name))
        if message is not None:
            _mark_always(types.made, table, entry["type"], message)
    if of_kinds:
        raise ValueError(f"hand_kept.toml has entries for kinds that there are not: {sorted(of_kinds)}")
    for name, defaults in key_defaults.items():
        types.made[name]["defaults"] = defaults
    for name, fields in hand_kept["off"].items():
        types.made[name]["off"] = fields
    content = {
        "kubernetes": MINOR,
        "priorities": _all_observed()["priorities"],
        "kinds": [entries[key] for key in sorted(entries)],
        "types": {name: types.made[name] for name in sorted(types.made)},
    }
    return msgspec.json.encode(content)


def main() -> None:
    """Write the data file, or with ``--check`` say whether it is what would be written."""
    made = make()
    if "--check" in sys.argv[1:]:
        same = gzip.decompress(TARGET.read_bytes()) == made
        print(f"{TARGET.name}: {'up to date' if same else 'differs from what the sources give'}")
        sys.exit(not same)
    packed = gzip.compress(made, 9, mtime=0)
    TARGET.write_bytes(packed)
    print(f"{TARGET.name}: {len(packed)} bytes, {len(made)} unpacked")


if __name__ == "__main__":
    main()
