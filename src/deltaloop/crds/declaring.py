"""Makes a class a kind of custom resources: what its definition says beside its fields, checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, TypeGuard, TypeVar, Unpack, final

import msgspec

from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import items, mapping, text
from deltaloop.api.resource_type import ResourceType, definition_of, put_definition, put_resource_type
from deltaloop.crds.annotations import RULES
from deltaloop.crds.class_schemas import IDENTITY, ClassSchema, class_schema, has_rules
from deltaloop.crds.errors import InvalidKindError
from deltaloop.crds.fields import column_errors, scale_errors, selectable_errors
from deltaloop.schemas.described_fields import described_field
from deltaloop.schemas.field_errors import SchemaError
from deltaloop.schemas.schema_rules import ExpressionChecks, schema_errors

T = TypeVar("T")
_TYPES_OF_COLUMNS: Final = ("boolean", "integer", "number", "string")
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_APPROVED: Final = "api-approved.kubernetes.io"
_OF_METADATA: Final = {".metadata.creationTimestamp": "date", ".metadata.deletionTimestamp": "date"}


@final
@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of what ``kubectl get`` prints.

    Attributes:
        name: Its heading.
        json_path: Where the value is, such as ``.spec.replicas``.
        type: ``string``, ``integer``, ``number``, ``boolean`` or ``date``; "" is what the field is.
        description: What it shows.
        format: How it is written, such as ``date-time``; "" is as it is.
        priority: 0 is always shown, more only with ``-o wide``.
    """

    name: str
    json_path: str
    type: str = ""
    description: str = ""
    format: str = ""
    priority: int = 0


@final
@dataclass(frozen=True, slots=True)
class ScaleSubresource:
    """The fields that ``kubectl scale`` and autoscalers use.

    Attributes:
        replicas: How many are wanted, below ``.spec``.
        ready_replicas: How many there are, below ``.status``.
        label_selector: Which Pods they are, as a text; "" for nobody to know.
    """

    replicas: str = ".spec.replicas"
    ready_replicas: str = ".status.replicas"
    label_selector: str = ""


class KindKeywords(TypedDict, total=False):
    """What a definition says beside names and fields.

    Attributes:
        short_names: What ``kubectl`` knows it by, too.
        categories: Groups of kinds that it is listed with, such as ``all``.
        printer_columns: What ``kubectl get`` prints; without any, the age.
        scale: The scale subresource; None for none.
        selectable_fields: Fields that lists can be selected by, such as ``.spec.class``.
        served: Whether the version is served.
        storage: Whether objects are stored in this version; a kind of one version needs no word of it.
        deprecated: Whether users of the version are warned, or in which words.
        annotations: Of the definition itself, such as ``{"api-approved.kubernetes.io": "unapproved, an example"}``,
            which a group of Kubernetes' own needs; those of all versions are put together.
    """

    short_names: Sequence[str]
    categories: Sequence[str]
    printer_columns: Sequence[PrinterColumn]
    scale: ScaleSubresource | None
    selectable_fields: Sequence[str]
    served: bool
    storage: bool
    deprecated: bool | str
    annotations: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class DeclaredKind:
    """A class as one version of a kind.

    Attributes:
        type: Its resource type.
        schema: The schema of its objects.
        keywords: What its author said beside.
    """

    type: ResourceType[Any]
    schema: dict[str, Any]
    keywords: KindKeywords

    @property
    def has_status(self) -> bool:
        """Whether status is a subresource."""
        return "status" in mapping(self.schema.get("properties"))


def custom_resource(
    *,
    group: str,
    version: str,
    kind: str = "",
    plural: str = "",
    namespaced: bool = True,
    **keywords: Unpack[KindKeywords],
) -> Callable[[type[T]], type[T]]:
    """Make a class a kind of custom resources: a Struct of msgspec, a dataclass, a TypedDict or a model of pydantic.

    Clients, informers and listers then take the class and give objects of it, and ``generate_crd`` makes its
    definition. Its fields are those of the whole object: ``spec``, and ``metadata: ObjectMeta`` to read names; if it
    has a field ``status``, that is a subresource.

    Args:
        group: The API group, a domain of yours, such as ``example.com``.
        version: The version, such as ``v1alpha1``.
        kind: The kind; the class's own name by default.
        plural: Its name in URLs; by default the kind's English plural, in small letters.
        namespaced: Whether objects live in a namespace.
        keywords: Names, columns and subresources; see ``KindKeywords``.

    Raises:
        InvalidKindError: If a name, a field's type, a default or a rule is wrong; the error names class and field.
        InvalidArgumentError: If there is no such keyword.
    """
    if unknown := sorted(keywords.keys() - KindKeywords.__optional_keys__):
        known = ", ".join(sorted(KindKeywords.__optional_keys__))
        raise InvalidArgumentError(f"custom_resource() knows no {unknown[0]!r}; beside names there are {known}")

    def decorate(cls: type[T]) -> type[T]:
        name = kind or cls.__name__
        _check_names(cls, group, version, name, plural or plural_of(name), keywords)
        made = class_schema(cls)
        schema = made.schema
        schema["properties"] = {**IDENTITY, **mapping(schema.get("properties"))}
        if required := [each for each in items(schema.pop("required", None)) if each not in IDENTITY]:
            schema["required"] = required
        found = ResourceType[T](group, version, name, plural or plural_of(name), namespaced, cls)
        declared = DeclaredKind(found, schema, keywords)
        _check(cls, made, declared)
        put_definition(cls, declared)
        return put_resource_type(cls, found)

    return decorate


def declared_kind(cls: type) -> DeclaredKind:
    """Return what ``custom_resource`` found out about a class.

    Raises:
        InvalidArgumentError: If the class is not decorated.
    """
    found = definition_of(cls)
    if not isinstance(found, DeclaredKind):
        raise InvalidArgumentError(f"class {cls.__name__} is no kind; decorate it with @custom_resource(...)")
    return found


def is_kind(value: object) -> TypeGuard[type]:
    """Tell whether a value is a class that ``custom_resource`` made a kind."""
    return isinstance(value, type) and isinstance(definition_of(value), DeclaredKind)


def by_kind(classes: Iterable[type]) -> list[list[type]]:
    """Put the classes of each kind together, its versions, in the order in which they come.

    Raises:
        InvalidArgumentError: If a class is no kind.
    """
    kinds: dict[tuple[str, str], list[type]] = {}
    for cls in dict.fromkeys(classes):
        found = declared_kind(cls).type
        kinds.setdefault((found.group, found.kind), []).append(cls)
    return [*kinds.values()]


def plural_of(kind: str) -> str:
    """Return a kind's English plural, as the names in URLs have it."""
    low = kind.lower()
    if low.endswith(("s", "x", "ch", "sh")):
        return f"{low}es"
    return f"{low[:-1]}ies" if low.endswith("y") and low[-2:-1] not in "aeiou" else f"{low}s"


def column_of(column: PrinterColumn, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a column as a definition has it; a type that nobody said is what the field is."""
    kind = column.type or _OF_METADATA.get(column.json_path) or _type_at(column.json_path, schema) or "string"
    said = {
        "name": column.name,
        "type": kind,
        "jsonPath": column.json_path,
        "description": column.description,
        "format": column.format,
        "priority": column.priority,
    }
    return {name: value for name, value in said.items() if value or name in ("name", "type", "jsonPath")}


def scale_of(scale: ScaleSubresource) -> dict[str, str]:
    """Return a scale subresource as a definition has it."""
    paths = {"specReplicasPath": scale.replicas, "statusReplicasPath": scale.ready_replicas}
    return paths | ({"labelSelectorPath": scale.label_selector} if scale.label_selector else {})


def _type_at(path: str, schema: dict[str, Any]) -> str:
    found = described_field(path, schema)
    if found.schema.get("format") in ("date-time", "date"):
        return "date"
    kind = text(found.schema.get("type"))
    return kind if kind in _TYPES_OF_COLUMNS else ""


def _check_names(cls: type, group: str, version: str, kind: str, plural: str, keywords: KindKeywords) -> None:
    if "." not in group or subdomain_problems(group):
        what = f"its group {group!r} is no domain name with a dot; give one of yours, such as 'example.com'"
        raise InvalidKindError(cls.__name__, "", what)
    names = [("version", version, "v1"), ("kind", kind.lower(), "Database"), ("plural", plural, "databases")]
    names += [("short name", each, "db") for each in keywords.get("short_names", ())]
    names += [("category", each, "all") for each in keywords.get("categories", ())]
    for what, name, example in names:
        if label_problems(name):
            advice = f"use letters, digits and '-', such as {example!r}"
            raise InvalidKindError(cls.__name__, "", f"its {what} {name!r} is no name that a server takes; {advice}")
    if isinstance(keywords.get("short_names"), str) or isinstance(keywords.get("categories"), str):
        raise InvalidKindError(cls.__name__, "", "short_names and categories are lists: give ['db'] for 'db'")
    if f".{group}".endswith(_PROTECTED) and not keywords.get("annotations", {}).get(_APPROVED):
        advice = (
            f"use a domain of yours, or annotations={{{_APPROVED!r}: 'https://...'}} with the address of its approval"
        )
        raise InvalidKindError(cls.__name__, "", f"its group {group!r} is one of Kubernetes' own: {advice}")


def _check(cls: type, made: ClassSchema, declared: DeclaredKind) -> None:
    """Raise for what is wrong with the schema, its defaults and rules, and with paths into it.

    Raises:
        InvalidKindError: For the first of them.
    """
    schema, keywords = declared.schema, declared.keywords
    if declared.has_status and "status" in items(schema.get("required")):
        what = "objects are created without a status: give it a default, such as None or msgspec.UNSET"
        raise InvalidKindError(cls.__name__, "status", what)
    errors = schema_errors(schema, "", with_status=declared.has_status, expressions=_expressions(schema))
    if errors:
        worst = errors[0]
        rest = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidKindError(*made.place(worst.field), f"{_in_words(worst, schema)}{rest}")
    for column in keywords.get("printer_columns", ()):
        if not isinstance(column, PrinterColumn):
            raise InvalidKindError(
                cls.__name__, "", f"{column!r} is no printer column: use PrinterColumn('Name', '.path')"
            )
        _check_path(cls, f"printer column {column.name!r}", column.json_path, schema)
        _refuse(cls, f"printer column {column.name!r}", column_errors("", column_of(column, schema)))
    if (scale := keywords.get("scale")) is not None:
        for path in scale_of(scale).values():
            _check_path(cls, "the scale subresource", path, schema)
        _refuse(cls, "the scale subresource", scale_errors("", scale_of(scale)))
    fields = [{"jsonPath": each} for each in keywords.get("selectable_fields", ())]
    _refuse(cls, "selectable_fields", selectable_errors("", fields, schema))


def _expressions(schema: dict[str, Any]) -> ExpressionChecks | None:
    """Return what looks at the rules of a class: a program whose classes have none does not load the language."""
    if not has_rules(schema):
        return None
    from deltaloop.crds.rules.definitions import RuleChecks

    return RuleChecks()


def _in_words(error: SchemaError, schema: dict[str, Any]) -> str:
    """Return what is wrong, with the rule that it is about."""
    head, found, tail = error.field.rpartition(RULES)
    if not found:
        return _of_default(error)
    rules = items(_at(schema, head.removesuffix(".")).get(RULES))
    place, _, part = tail.removeprefix("[").partition("].")
    if not place.isdigit():
        return error.text
    rule = text(mapping(rules[int(place)]).get(part)) or text(mapping(rules[int(place)]).get("rule"))
    _, _, why = error.text.rpartition("}: ") if "}: " in error.text else ("", "", error.text)
    return f"the rule {rule!r} is wrong: {why}"


def _of_default(error: SchemaError) -> str:
    """Return the text of an error; one about a default says so."""
    _, of_default, part = error.field.partition(".default")
    return f"its default{part} is not valid: {error.text.replace(':  in body ', ': ')}" if of_default else error.text


def _at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the part of a schema at a place as errors name it."""
    while path:
        if path.startswith(".properties["):
            name, _, path = path.removeprefix(".properties[").partition("]")
            schema = mapping(mapping(schema.get("properties")).get(name))
        else:
            word = path[1:].split(".", 1)[0].split("[", 1)[0]
            schema, path = mapping(schema.get(word)), path[1 + len(word) :]
    return schema


def _check_path(cls: type, what: str, path: str, schema: dict[str, Any]) -> None:
    """Refuse a simple path that leads to no field; what looks into lists or metadata is the server's to judge."""
    simple = path.startswith(".") and "[" not in path and not path.startswith(".metadata.")
    if simple and (why := described_field(path, schema).why):
        parts = path.strip(".").split(".")
        if not _is_open(schema, parts):
            raise InvalidKindError(cls.__name__, "", f"{what} shows {path}, which {why}; name one that the class has")


def _is_open(schema: dict[str, Any], steps: list[str]) -> bool:
    """Tell whether a path leads into a part that keeps whatever it is given."""
    for step in steps:
        if schema.get("x-kubernetes-preserve-unknown-fields") is True:
            return True
        schema = mapping(mapping(schema.get("properties")).get(step)) or mapping(schema.get("additionalProperties"))
    return False


def _refuse(cls: type, what: str, errors: Any) -> None:
    for error in errors:
        raise InvalidKindError(cls.__name__, "", f"{what}: {msgspec.structs.replace(error, field='').text}")
