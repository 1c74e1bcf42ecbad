"""Declare classes as kinds of custom resources, and validate their definitions."""

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
from deltaloop.crds.class_schemas import IDENTITY, ClassSchema, InvalidKindError, class_schema, has_rules
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
    """Column in the output of ``kubectl get``.

    Attributes:
        name: Heading.
        json_path: Path of the value, for example ``.spec.replicas``.
        type: ``string``, ``integer``, ``number``, ``boolean`` or ``date``. "" uses the type of the field.
        description: Description of the column.
        format: OpenAPI format, for example ``date-time``, or "".
        priority: 0 for columns that are always shown. Columns with a larger number need ``-o wide``.
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
    """Fields for ``kubectl scale`` and autoscalers.

    Attributes:
        replicas: Path of the desired replicas below ``.spec``.
        ready_replicas: Path of the observed replicas below ``.status``.
        label_selector: Path of a label selector for the Pods as a string, or "".
    """

    replicas: str = ".spec.replicas"
    ready_replicas: str = ".status.replicas"
    label_selector: str = ""


class KindKeywords(TypedDict, total=False):
    """Options of ``custom_resource``.

    Attributes:
        short_names: Short names for ``kubectl``.
        categories: Groups of kinds that include this kind, for example ``all``.
        printer_columns: Columns of ``kubectl get``. Without columns, it shows the age.
        scale: Scale subresource, or None.
        selectable_fields: Fields for field selectors, for example ``.spec.class``.
        served: Whether the server serves the version.
        storage: Whether objects are stored in this version. Not needed for a kind with a single version.
        deprecated: Whether users of the version get a warning, or the text of the warning.
        annotations: Annotations of the definition, merged from all versions. Kubernetes' own groups need an approval,
            for example ``{"api-approved.kubernetes.io": "unapproved, an example"}``.
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
    type: ResourceType[Any]
    schema: dict[str, Any]
    keywords: KindKeywords

    @property
    def has_status(self) -> bool:
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
    """Declare a msgspec Struct, dataclass, TypedDict or pydantic model as a kind of custom resources.

    Clients, informers and listers then accept the class and return its instances, and ``generate_crd`` returns its
    definition. The class describes the whole object: it has a field ``spec``, and ``metadata: ObjectMeta`` if you read
    names. A field ``status`` becomes a subresource.

    Args:
        group: API group, which is a domain of yours, for example ``example.com``.
        version: Version, for example ``v1alpha1``.
        kind: Name of the kind. Defaults to the name of the class.
        plural: Name in URLs. Defaults to the English plural of the kind in lower case.
        namespaced: Whether objects belong to a namespace.
        keywords: Options of ``KindKeywords``.

    Raises:
        InvalidKindError: If a name, the type or default of a field, or a rule is invalid.
        InvalidArgumentError: If an option is unknown.
    """
    if unknown := sorted(keywords.keys() - KindKeywords.__optional_keys__):
        known = ", ".join(sorted(KindKeywords.__optional_keys__))
        raise InvalidArgumentError(
            f"must be one of {known}, got {unknown[0]!r}.", argument="keyword of custom_resource()"
        )

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
    """Return the declaration of a class, or raise InvalidArgumentError if it is not decorated."""
    found = definition_of(cls)
    if not isinstance(found, DeclaredKind):
        raise InvalidArgumentError(
            "must be a kind. Decorate the class with @custom_resource(...).", argument=cls.__name__
        )
    return found


def is_kind(value: object) -> TypeGuard[type]:
    return isinstance(value, type) and isinstance(definition_of(value), DeclaredKind)


def by_kind(classes: Iterable[type]) -> list[list[type]]:
    """Group the versions of each kind, in the order of their classes."""
    kinds: dict[tuple[str, str], list[type]] = {}
    for cls in dict.fromkeys(classes):
        found = declared_kind(cls).type
        kinds.setdefault((found.group, found.kind), []).append(cls)
    return [*kinds.values()]


def plural_of(kind: str) -> str:
    low = kind.lower()
    if low.endswith(("s", "x", "ch", "sh")):
        return f"{low}es"
    return f"{low[:-1]}ies" if low.endswith("y") and low[-2:-1] not in "aeiou" else f"{low}s"


def column_of(column: PrinterColumn, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a column as it appears in a definition. The type defaults to the type of the field."""
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
        what = f"group must be a domain with a dot, like 'example.com', got {group!r}."
        raise InvalidKindError(cls.__name__, "", what, option="group")
    names = [("version", version, "v1"), ("kind", kind.lower(), "Database"), ("plural", plural, "databases")]
    names += [("short_names", each, "db") for each in keywords.get("short_names", ())]
    names += [("categories", each, "all") for each in keywords.get("categories", ())]
    for what, name, example in names:
        if label_problems(name):
            rule = f"{what} must be letters, digits and '-', like {example!r}, got {name!r}."
            raise InvalidKindError(cls.__name__, "", rule, option=what)
    if isinstance(keywords.get("short_names"), str) or isinstance(keywords.get("categories"), str):
        raise InvalidKindError(
            cls.__name__, "", "short_names and categories must be lists, like ['db'].", option="short_names"
        )
    if f".{group}".endswith(_PROTECTED) and not keywords.get("annotations", {}).get(_APPROVED):
        what = (
            f"group must not be a group of Kubernetes, got {group!r}. Use your domain, or add "
            f"annotations={{{_APPROVED!r}: 'https://...'}} with the URL of the approval."
        )
        raise InvalidKindError(cls.__name__, "", what, option="group")


def _check(cls: type, made: ClassSchema, declared: DeclaredKind) -> None:
    schema, keywords = declared.schema, declared.keywords
    if declared.has_status and "status" in items(schema.get("required")):
        what = "must have a default, like None or msgspec.UNSET, because objects are created without a status."
        raise InvalidKindError(cls.__name__, "status", what)
    errors = schema_errors(schema, "", with_status=declared.has_status, expressions=_expressions(schema))
    if errors:
        worst = errors[0]
        rest = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidKindError(*made.place(worst.field), f"{_in_words(worst, schema)}{rest}")
    for column in keywords.get("printer_columns", ()):
        if not isinstance(column, PrinterColumn):
            raise InvalidKindError(
                cls.__name__,
                "",
                f"printer_columns must be like PrinterColumn('Name', '.path'), got {column!r}.",
                option="printer_columns",
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
    """Return the checks of a class's rules, or None. Programs without rules do not load CEL."""
    if not has_rules(schema):
        return None
    from deltaloop.crds.rules.definitions import RuleChecks

    return RuleChecks()


def _in_words(error: SchemaError, schema: dict[str, Any]) -> str:
    head, found, tail = error.field.rpartition(RULES)
    if not found:
        return _of_default(error)
    rules = items(_at(schema, head.removesuffix(".")).get(RULES))
    place, _, part = tail.removeprefix("[").partition("].")
    if not place.isdigit():
        return error.text
    rule = text(mapping(rules[int(place)]).get(part)) or text(mapping(rules[int(place)]).get("rule"))
    _, _, why = error.text.rpartition("}: ") if "}: " in error.text else ("", "", error.text)
    return f"rule {rule!r} is invalid: {why}"


def _of_default(error: SchemaError) -> str:
    """Return the message of an error, which mentions the default if it is about one."""
    _, of_default, part = error.field.partition(".default")
    return f"default{part} is invalid: {error.text.replace(':  in body ', ': ')}" if of_default else error.text


def _at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    while path:
        if path.startswith(".properties["):
            name, _, path = path.removeprefix(".properties[").partition("]")
            schema = mapping(mapping(schema.get("properties")).get(name))
        else:
            word = path[1:].split(".", 1)[0].split("[", 1)[0]
            schema, path = mapping(schema.get(word)), path[1 + len(word) :]
    return schema


def _check_path(cls: type, what: str, path: str, schema: dict[str, Any]) -> None:
    """Reject a simple path to a missing field. The server checks paths into lists or metadata."""
    simple = path.startswith(".") and "[" not in path and not path.startswith(".metadata.")
    if simple and (why := described_field(path, schema).why):
        parts = path.strip(".").split(".")
        if not _is_open(schema, parts):
            raise InvalidKindError(
                cls.__name__, "", f"the path {path} of {what} {why}. Use a field of the class.", option=what
            )


def _is_open(schema: dict[str, Any], steps: list[str]) -> bool:
    for step in steps:
        if schema.get("x-kubernetes-preserve-unknown-fields") is True:
            return True
        schema = mapping(mapping(schema.get("properties")).get(step)) or mapping(schema.get("additionalProperties"))
    return False


def _refuse(cls: type, what: str, errors: Any) -> None:
    for error in errors:
        raise InvalidKindError(
            cls.__name__, "", f"{what}: {msgspec.structs.replace(error, field='').text}", option=what
        )
