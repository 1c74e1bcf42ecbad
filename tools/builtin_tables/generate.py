"""Rewrite the tables of the built-in kinds: ``python -m tools.builtin_tables.generate``.

Sources: the JSON schemas in ``kubernetes-validate`` (types, list types, merge keys; dependency group ``tables``),
``observed.json`` (what a real server says of its kinds: ``observe.py``), ``tags.json`` (what the published types say of
their fields: ``tags.py``), ``tools/protobuf_table`` (the order and the numbers of fields, and which of them Go always
writes), ``defaults.toml``, ``rules.toml`` (rules that no tag says), ``cells.toml`` (what is in columns), and
``hand_kept.toml`` (the rest). The format of the data file is described in ``core/builtin/tables.py``. With ``--check``
nothing is written.
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
from tools.protobuf_table.table import EMPTY_SCALARS, SPECIAL, Field, FieldTable, read_table

from deltaloop.api.json_values import is_mapping
from deltaloop.api.kubernetes_version import KUBERNETES, MINOR

HERE: Final = Path(__file__).parent
SERVER: Final = HERE.parents[1] / "src" / "deltaloop" / "apiserver"
ADDITIONS: Final = SERVER / "schema_additions.json.gz"
TARGET: Final = SERVER.parent / "schemas" / "builtin_kinds.json.gz"
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


_EMPTY_STRUCT: Final = ".CustomResourceSubresourceStatus"
# Structs of Go that JSON writes as something else.
_NULL_STRUCTS: Final = ("time", "microtime", "json", "schemaorbool", "schemaorarray", "schemaorstrings")
_ZERO_STRUCTS: Final[Mapping[str, Any]] = {"quantity": "0", "intorstring": 0, "duration": "0s"}
# Types that a message of their own carries, by their words in the table of protobuf fields: its name, its fields.
_SCHEMA: Final = "#apiextensions.v1.JSONSchemaProps"
_CARRIERS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "strings": ("ExtraValue", {"items": {"list": "string"}}),
    "schemaorbool": ("JSONSchemaPropsOrBool", {"allows": "boolean", "schema": _SCHEMA}),
    "schemaorarray": ("JSONSchemaPropsOrArray", {"schema": _SCHEMA, "jSONSchemas": {"list": _SCHEMA}}),
    "schemaorstrings": ("JSONSchemaPropsOrStringArray", {"schema": _SCHEMA, "property": {"list": "string"}}),
}


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
    return _of_this_version(HERE / "observed.json", "observe.py")


def _of_this_version(path: Path, writer: str) -> dict[str, Any]:
    content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    if content["kubernetes"] != f"v{KUBERNETES}":
        raise MissingSourceError(f"{path.name} is of {content['kubernetes']}; v{KUBERNETES} is needed: {writer}")
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
        if "properties" in schema or name.endswith(_EMPTY_STRUCT):
            self.add(name)
            return "#" + short_name(name)
        made = self._type(schema)
        return made if isinstance(made, str) else "any"


def _add_messages(types: dict[str, dict[str, Any]], table: FieldTable, root: str, message_name: str) -> None:
    """Say of each struct what its message is, and which fields Go writes even when nobody has set them.

    The schemas only know which fields are required.
    """
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
        fields: dict[str, Any] = {}
        for field in _flat(message, table):
            is_struct = field.type not in EMPTY_SCALARS and field.type not in SPECIAL
            written = is_struct and not (field.pointer or field.repeated or field.map or field.omit_zero)
            if field.always or written:
                always.append(field.name)
            if field.always or _is_struct_in_go(field):
                zeros[field.name] = _zero(field)
            if _is_omitted(field):
                omitted.append(field.name)
            if field.name in types[name].get("fill", {}) and not field.pointer:
                values.append(field.name)
            fields[field.name] = _carried(types, table, types[name]["fields"].pop(field.name), field)
            below = _struct_below(fields[field.name])
            if below and is_struct:
                waiting.append((below, field.type))
        types[name]["fields"] = {**fields, **types[name]["fields"]}
        types[name]["numbers"] = _numbers(message, table)
        types[name].pop("always", None)
        if always:
            types[name]["always"] = sorted(always)
        if omitted:
            types[name]["omit_zero"] = sorted(omitted)
        if values:
            types[name]["fill_zero"] = sorted(values)
        if zeros:
            types[name]["zeros"] = {field: zeros[field] for field in sorted(zeros)}


def _numbers(message: Mapping[int, Field], table: FieldTable) -> list[Any]:
    return [
        [number, field.type, _numbers(table.messages[field.type], table)] if field.inline else number
        for number, field in message.items()
    ]


def _carried(types: dict[str, dict[str, Any]], table: FieldTable, kind: object, field: Field) -> object:
    """Return a field's type with the message that carries it, if JSON has it otherwise."""
    shape: dict[str, object] = kind if is_mapping(kind) else {"type": kind}
    if "map" in shape:
        return {**shape, "map": _carried(types, table, shape["map"], field)}
    if kind == "any" and field.type in table.messages:
        name, fields = field.type, dict[str, Any]()
    elif field.type in _CARRIERS:
        name, fields = _CARRIERS[field.type]
    else:
        return kind
    zeros = {"zeros": {"allows": False}} if "allows" in fields else {}
    types[name] = {"fields": fields, "numbers": list(range(1, len(fields) + 1)), **zeros}
    return {**shape, "carrier": name}


def _is_struct_in_go(field: Field) -> bool:
    """Tell whether a field is of a type that ``omitempty`` does not leave out."""
    held = field.pointer or field.repeated or field.map or field.omit_zero
    return not held and field.type not in EMPTY_SCALARS


def _is_omitted(field: Field) -> bool:
    """Tell whether Go leaves a field out when it is "", 0 or false, or a time that is none."""
    held = field.pointer or field.repeated or field.map or field.always
    return field.omit_zero or (not held and field.type in EMPTY_SCALARS)


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


def _add_rules(made: dict[str, dict[str, Any]], off: Mapping[str, Any]) -> None:
    """Say of each struct what is said of its fields, by tags and by hand; ``off`` is said instead of tags."""
    tags = _of_this_version(HERE / "tags.json", "tags.py")
    for name, fields in {**tags["off"], **off}.items():
        if fields and name in made:
            made[name]["off"] = fields
    for name, rules in tags["rules"].items():
        if name in made:
            made[name]["tags"] = rules
    kept = tomllib.loads((HERE / "rules.toml").read_text())
    for name, rules in kept.items():
        made[name]["rules"] = kept[rules["like"]] if "like" in rules else rules


def _add_key_defaults(made: dict[str, dict[str, Any]]) -> None:
    """Give the items of lists that are maps the defaults of their keys, which only a server's documents have."""
    published = msgspec.json.decode(gzip.decompress(ADDITIONS.read_bytes()), type=dict[str, dict[str, Any]])
    by_name = {short_name(name): schema.get("properties", {}) for name, schema in published.items()}
    for struct in [*made.values()]:
        for field in struct["fields"].values():
            item = _struct_below(field)
            if not is_mapping(field):
                continue
            for key in cast("list[str]", field.get("keys", [])):
                if "default" in by_name.get(item, {}).get(key, {}):
                    made[item].setdefault("defaults", {})[key] = by_name[item][key]["default"]


def make() -> bytes:
    """Return the data file's content, unpacked."""
    schemas = definitions()
    names = schema_names(schemas)
    hand_kept = tomllib.loads((HERE / "hand_kept.toml").read_text())
    of_kinds = hand_kept["kinds"]
    table = read_table()
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
    cells = tomllib.loads((HERE / "cells.toml").read_text())
    for (group, version_name, kind_name), entry in entries.items():
        api_version = f"{group}/{version_name}" if group else version_name
        entry.update(of_kinds.pop(f"{api_version} {kind_name}", {}))
        entry["cells"] = cells.get(f"{entry['plural']}.{group}" if group else entry["plural"], {})
        _add_messages(types.made, table, entry["type"], table.kinds.pop((api_version, kind_name)))
    bodies: dict[str, str] = {}
    for (api_version, kind_name), message in table.kinds.items():
        group, _, version_name = api_version.rpartition("/")
        name = names.get((group, version_name, kind_name), _META + kind_name)
        types.add(name)
        bodies[f"{api_version} {kind_name}"] = short_name(name)
        _add_messages(types.made, table, short_name(name), message)
    if of_kinds:
        raise ValueError(f"hand_kept.toml has entries for kinds that there are not: {sorted(of_kinds)}")
    _add_key_defaults(types.made)
    _add_rules(types.made, hand_kept["off"])
    content = {
        "kubernetes": MINOR,
        "priorities": _all_observed()["priorities"],
        "kinds": [entries[key] for key in sorted(entries)],
        "bodies": bodies,
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
