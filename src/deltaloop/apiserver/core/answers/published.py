"""The published schemas of the built-in kinds, as OpenAPI v3 writes them: found by kind, each converted once.

Source: kube-openapi pkg/schemaconv; the JSON schemas are those of Kubernetes' releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text

_DEFS: Final = "#/$defs/"
COMPONENTS: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXAMPLE: Final = "io.k8s.api.core.v1.ConfigMap"  # its metadata is described as that of most kinds is
Schema = dict[str, object]


@final
class PublishedSchemas:
    """Schemas by name; none of them may change."""

    def __init__(self, definitions: Mapping[str, object], additions: Mapping[str, object] | None = None) -> None:
        """Take the schemas as they are published, in JSON schema, by name.

        Args:
            definitions: The published schemas by their names.
            additions: What a server says beside them, such as enums and defaults, by name, shaped as they are.
        """
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
        """Return the name of a kind's schema; None if it is not there."""
        return self._names.get((group, version, kind))

    def add_to(self, schemas: dict[str, object], name: str) -> None:
        """Add a schema and all that it refers to."""
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
    """Return what every object has, or every list: apiVersion, kind and metadata; and add what these refer to.

    Args:
        published: The published schemas; without them metadata is any object.
        schemas: The schemas of the document.
        of_list: Whether the metadata is that of a list.
    """
    if published is None:
        return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    published.add_to(schemas, _META + ("ListMeta" if of_list else "ObjectMeta"))
    example: dict[str, object] = {}
    published.add_to(example, _EXAMPLE + ("List" if of_list else ""))
    fields = mapping(at(example[_EXAMPLE + ("List" if of_list else "")], "properties"))
    without_default = {name: inner for name, inner in mapping(fields["metadata"]).items() if name != "default"}
    return {"apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": without_default}


def _as_served(schema: Schema, more: Schema) -> Schema:
    """Return a published schema as a server has it: apiVersion and kind may have any value there."""
    result = _with(schema, more)
    if "x-kubernetes-group-version-kind" in result:
        fields = dict(mapping(result.get("properties")))
        for name in fields.keys() & {"apiVersion", "kind"}:
            fields[name] = {word: value for word, value in mapping(fields[name]).items() if word != "enum"}
        result["properties"] = fields
    return result


def _with(schema: Schema, more: Schema) -> Schema:
    """Add words to a schema and to those inside; a description lists the values of an enum."""
    result: Schema = {**schema}
    for name, value in more.items():
        old = result.get(name)
        result[name] = _with(old, value) if is_mapping(old) and is_mapping(value) else value
    if "description" in schema and isinstance(values := more.get("enum"), list):
        lines = "\n".join(f' - `"{value}"`' for value in cast("list[object]", values))
        result["description"] = f"{schema['description']}\n\nPossible enum values:\n{lines}"
    return result


def _in_openapi(value: object, references: list[str]) -> object:
    """Turn JSON schema into OpenAPI: references lead to components, null is no type of its own."""
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
            # Their names are the kind's own; one of them may be called like a keyword.
            result[name] = {field: _in_openapi(below, references) for field, below in mapping(inner).items()}
        else:
            result[name] = _in_openapi(inner, references)
    return result
