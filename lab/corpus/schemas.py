"""The kinds that a CRD defines, and the nodes of their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deltaloop.api.json_values import at, is_mapping, items, json_type, mapping, string_map, text

Schema = Mapping[str, Any]
# Of a property its name, of a list's item its number, of a map's value its key.
Path = tuple[str | int, ...]

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
RULES: Final = "x-kubernetes-validations"
BRANCHES: Final = ("allOf", "anyOf", "oneOf")
# What tells two nodes apart only for a reader.
_WORDS: Final = frozenset({"description", "title", "example", "externalDocs", "properties", "items"})


@dataclass(frozen=True)
class Kind:
    """One version of a kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    schema: Schema
    status: bool = False
    scale: Mapping[str, str] | None = None
    stored: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str) -> str:
        """Return the path of its objects."""
        where = f"namespaces/{namespace}/" if self.namespaced else ""
        return f"/api{'s' if self.group else ''}/{self.api_version}/{where}{self.plural}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}"


def kinds_of(crd: Mapping[str, Any]) -> list[Kind]:
    """Return each version that a CRD serves, as far as the CRD can be read."""
    spec = mapping(crd.get("spec"))
    names = mapping(spec.get("names"))
    found: list[Kind] = []
    for version in map(mapping, items(spec.get("versions"))):
        if not version.get("served"):
            continue
        subresources = mapping(version.get("subresources"))
        found.append(
            Kind(
                group=text(spec.get("group")),
                version=text(version["name"]),
                kind=text(names.get("kind")),
                plural=text(names.get("plural")),
                namespaced=spec.get("scope") == "Namespaced",
                schema=mapping(at(version, "schema", "openAPIV3Schema")),
                status="status" in subresources,
                scale=string_map(subresources["scale"]) if "scale" in subresources else None,
                stored=version.get("storage") is True,
            )
        )
    return found


def kind_served(api_version: str, kind: str, discovery: Mapping[str, Any]) -> Kind | None:
    """Return a kind by what a server says that it serves in its version; None if it is not among it."""
    group, _, version = api_version.rpartition("/")
    resources = [mapping(each) for each in items(discovery.get("resources"))]
    names = [text(each.get("name")) for each in resources]
    for each in resources:
        name = text(each.get("name"))
        if each.get("kind") == kind and "/" not in name and "create" in items(each.get("verbs")):
            namespaced = each.get("namespaced") is True
            return Kind(group, version, kind, name, namespaced, schema={}, status=f"{name}/status" in names)
    return None


@dataclass(frozen=True)
class Place:
    """A part of an object, and what its schema says about it."""

    path: Path
    schema: Schema
    required: bool = False


def child(schema: Schema, step: str | int) -> Schema | None:
    """Return the schema of a property, an item or a map's value; None if nothing is said about it."""
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = mapping(schema.get("properties")).get(step, schema.get("additionalProperties"))
    return inner if is_mapping(inner) else None


def places_of(schema: Schema, value: Any, path: Path = (), *, required: bool = False) -> Iterator[Place]:
    """Yield each part of an object that its schema describes, the outermost first; of a long list the first items."""
    yield Place(path, schema, required)
    parts: Sequence[tuple[str | int, Any]]
    parts = list(value.items()) if is_mapping(value) else list(enumerate(items(value)[:2]))
    names = schema.get("required") or ()
    for step, part in parts:
        inner = child(schema, step)
        if inner is not None:
            yield from places_of(inner, part, (*path, step), required=step in names)


def paths_of(schema: Schema, path: Path = ()) -> Iterator[Place]:
    """Yield each node of a schema as a place in an object: a list has one item, a map the key ``key``."""
    yield Place(path, schema)
    for name, inner in mapping(schema.get("properties")).items():
        yield from paths_of(mapping(inner), (*path, name))
    for step, name in ((0, "items"), ("key", "additionalProperties")):
        inner = schema.get(name)
        if is_mapping(inner):
            yield from paths_of(inner, (*path, step))


def features_of(schema: Schema) -> frozenset[str]:
    """Return what a node makes use of, in words that have nothing of the project: ``type: string``, ``pattern``..."""
    found: set[str] = set()
    for name, value in schema.items():
        if name in _WORDS:
            continue
        if name in ("type", "format", LIST_TYPE, "x-kubernetes-map-type"):
            found.add(f"{name}: {value}")
        elif name == "additionalProperties":
            found.add(name if is_mapping(value) else f"{name}: {str(value).lower()}")
        elif name == "enum":
            found.add("enum" if all(isinstance(each, str) for each in value) else "enum: not of strings")
        elif name == "default":
            found.add(f"default: {value_type(value)}")
        elif isinstance(value, bool):
            found.add(name if value else f"{name}: false")
        elif name in BRANCHES or name == "not":
            branches = items(value) or [value]
            found.add(f"{name}: {', '.join(sorted({key for each in branches for key in mapping(each)}))}")
        else:
            found.add(name)
    if schema.get("properties"):
        found.add("properties")
    return frozenset(found)


def value_type(value: object) -> str:
    """Return what a schema calls the type of a value."""
    found = json_type(value)
    if found == "number":
        return "integer" if isinstance(value, int) else found
    return "boolean" if found == "bool" else found


def plain_path(path: Path) -> str:
    """Write a path as the field of a cause, with ``[]`` for numbers and keys."""
    return "".join("[]" if isinstance(step, int) or step == "key" else f".{step}" for step in path).lstrip(".")
