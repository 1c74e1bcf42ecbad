"""The built-in kinds of the shapes, with schemas from a server's OpenAPI v3 documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from deltaloop.api.json_values import items, mapping, text
from deltaloop.api.yaml_reader import read_yaml_documents
from lab.corpus.schemas import Kind, Schema, kind_served
from lab.corpus.sending import LiveServer

SHAPES: Final = Path(__file__).parents[3] / "tests" / "conformance" / "shapes.yaml"
# The tail of a reference names the types whose values are written as text or as a number.
QUANTITY, INT_OR_STRING, TIME = "Quantity", "IntOrString", "Time"


def read_shapes(path: Path = SHAPES) -> list[dict[str, Any]]:
    """Read the objects of the corpus."""
    return list(read_yaml_documents(path.read_text(), source=path.name))


async def kinds_of_shapes(server: LiveServer, shapes: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Kind]:
    """Return the kind of each shape by API version and kind."""
    found: dict[tuple[str, str], Kind] = {}
    documents: dict[str, Mapping[str, Any]] = {}
    for api_version, kind in sorted({(shape["apiVersion"], shape["kind"]) for shape in shapes}):
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        if path not in documents:
            documents[path] = (await server.caller.get(f"/openapi/v3/{path}")).json["components"]["schemas"]
        served = kind_served(api_version, kind, (await server.caller.get(f"/{path}")).json)
        assert served is not None, f"{api_version} {kind} is not served"
        found[api_version, kind] = replace(served, schema=_schema_of(served, documents[path]))
    return found


def _schema_of(kind: Kind, schemas: Mapping[str, Any]) -> Schema:
    for name, schema in schemas.items():
        for each in items(schema.get("x-kubernetes-group-version-kind")):
            named = mapping(each)
            if (named.get("group"), named.get("version"), named.get("kind")) == (kind.group, kind.version, kind.kind):
                return _inlined({"$ref": f"/{name}"}, schemas, ())
    raise LookupError(f"no schema of {kind}")


def _inlined(schema: Schema, schemas: Mapping[str, Any], within: tuple[str, ...]) -> Schema:
    """Return a schema with the schemas that it refers to; one that is within itself is left out."""
    parts = [schema, *map(mapping, items(schema.get("allOf"))[:1])]
    reference = next((text(part["$ref"]) for part in parts if "$ref" in part), "")
    if reference:
        name = reference.rpartition("/")[2]
        if name in within:
            return {}
        inner = _inlined(schemas[name], schemas, (*within, name))
        return {**inner, "title": name.rpartition(".")[2]}
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {
            name: _inlined(mapping(inner), schemas, within) for name, inner in mapping(made["properties"]).items()
        }
    for part in ("items", "additionalProperties"):
        if isinstance(made.get(part), dict):
            made[part] = _inlined(made[part], schemas, within)
    return made
