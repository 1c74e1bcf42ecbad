"""Published schemas of the built-in kinds, converted to OpenAPI v3 on demand.

Source: kube-openapi pkg/schemaconv; the JSON schemas are those of Kubernetes' releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text

_DEFS: Final = "#/$defs/"
COMPONENTS: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXAMPLE: Final = "io.k8s.api.core.v1.ConfigMap"  # has the same metadata description as most kinds
Schema = dict[str, object]


@final
class PublishedSchemas:
    """Published schemas by name. They are shared and must not be changed."""

    def __init__(self, definitions: Mapping[str, object], additions: Mapping[str, object] | None = None) -> None:
        """Index the published schemas, and the server-side additions to them, for example enums and defaults."""
        more = additions or {}
        self.definitions: Mapping[str, object] = {
            name: _as_served(mapping(schema), mapping(more.get(name))) for name, schema in definitions.items()
        }
        self._names: dict[tuple[str, str, str], str] = {}
        for name, schema in definitions.items():
            for kind in items(mapping(schema).get("x-kubernetes-group-version-kind")):
                said = mapping(kind)
                key = text(said.get("group")), text(said.get("version")), text(said.get("kind"))
                self._names.setdefault(key, name)
        self._converted: dict[str, tuple[Schema, tuple[str, ...]]] = {}

    def name_of(self, group: str, version: str, kind: str) -> str | None:
        return self._names.get((group, version, kind))

    def add_to(self, schemas: dict[str, object], name: str) -> None:
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current not in schemas and current in self.definitions:
                schemas[current], references = self._find(current)
                waiting += references

    def _find(self, name: str) -> tuple[Schema, tuple[str, ...]]:
        found = self._converted.get(name)
        if found is None:
            references: list[str] = []
            converted = mapping(_in_openapi(self.definitions[name], references))
            found = self._converted[name] = converted, tuple(references)
        return found


def identity_fields(published: PublishedSchemas | None, schemas: dict[str, object], *, of_list: bool = False) -> Schema:
    """Return apiVersion, kind and metadata of objects or lists."""
    if published is None:
        return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    published.add_to(schemas, _META + ("ListMeta" if of_list else "ObjectMeta"))
    example: dict[str, object] = {}
    published.add_to(example, _EXAMPLE + ("List" if of_list else ""))
    fields = mapping(at(example[_EXAMPLE + ("List" if of_list else "")], "properties"))
    without_default = {name: inner for name, inner in mapping(fields["metadata"]).items() if name != "default"}
    return {"apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": without_default}


def _as_served(schema: Schema, more: Schema) -> Schema:
    """Return a published schema like the server's, in which apiVersion and kind accept all values."""
    result = _with(schema, more)
    if "x-kubernetes-group-version-kind" in result:
        fields = dict(mapping(result.get("properties")))
        for name in fields.keys() & {"apiVersion", "kind"}:
            fields[name] = {word: value for word, value in mapping(fields[name]).items() if word != "enum"}
        result["properties"] = fields
    return result


def _with(schema: Schema, more: Schema) -> Schema:
    """Merge additions into a schema, and list enum values in its description."""
    result: Schema = {**schema}
    for name, value in more.items():
        old = result.get(name)
        result[name] = _with(old, value) if is_mapping(old) and is_mapping(value) else value
    if "description" in schema and isinstance(values := more.get("enum"), list):
        lines = "\n".join(f' - `"{value}"`' for value in cast("list[object]", values))
        result["description"] = f"{schema['description']}\n\nPossible enum values:\n{lines}"
    return result


def _in_openapi(value: object, references: list[str]) -> object:
    """Convert JSON schema to OpenAPI: references point to components, and null is not a type."""
    if isinstance(value, list):
        return [_in_openapi(item, references) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    source = cast("Schema", value)
    result: Schema = {}
    for name, inner in source.items():
        if name == "$ref" and isinstance(inner, str):
            target = inner.removeprefix(_DEFS)
            references.append(target)
            reference = {"$ref": COMPONENTS + target}
            result.update(reference if len(source) == 1 else {"allOf": [reference]})
        elif name == "type" and isinstance(inner, list):
            result[name] = next(kind for kind in cast("list[str]", inner) if kind != "null")
        elif name == "properties":
            # Property names can be equal to keywords.
            result[name] = {field: _in_openapi(below, references) for field, below in mapping(inner).items()}
        else:
            result[name] = _in_openapi(inner, references)
    return result
