"""Generate the structural schema of a class from its annotations, defaults and docstrings.

- A field without a default is required.
- ``X | None`` is nullable. Choices are then a pattern (``choices``).
- ``X | UnsetType = UNSET`` is optional and stays absent.
- A default or the result of a default factory is the schema's default, except for None and UNSET.
- ``int | str`` is an int-or-string. Other unions have no structural schema.
- ``Any`` and ``dict[str, Any]`` preserve all fields.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, cast, final, get_type_hints

from msgspec import NODEFAULT, UNSET, inspect

from deltaloop.api.json_values import mapping
from deltaloop.api.pydantic_models import is_model_class
from deltaloop.api.set_fields import set_fields, with_defaults
from deltaloop.crds.annotations import CLASS_RULES, RULES
from deltaloop.crds.choices import null_or_choice
from deltaloop.crds.docstrings import description_of, field_descriptions
from deltaloop.crds.errors import InvalidKindError
from deltaloop.crds.model_fields import keeps_all, model_fields

Fields = dict[str, Any]
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
IDENTITY: Final[dict[str, Fields]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
"""Fields of every object. A class may declare them, but the server uses its own schema."""
_NOT_IN_DEFINITIONS: Final = ("examples", "title", "default")
_OBJECTS: Final = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)
_LISTS: Final = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
# JSON format of each msgspec type.
_TEXTS: Final[dict[type[inspect.Type], str]] = {
    inspect.BytesType: "byte",
    inspect.DateTimeType: "date-time",
    inspect.DateType: "date",
    inspect.UUIDType: "uuid",
}
_ADVICE: Final[dict[type[inspect.Type], str]] = {
    inspect.TimeDeltaType: "Kubernetes writes spans such as 1h30m: use str, with the format 'duration'",
    inspect.TimeType: "a schema has no time without a date: use str with a pattern",
    inspect.DecimalType: "use str with a pattern, or crds.Quantity",
    inspect.TupleType: "items of a list have one type: use list[...], or a class with a field for each part",
    inspect.NamedTupleType: "it is a list in JSON, of parts of several types: use a class",
}


@final
@dataclasses.dataclass(frozen=True, slots=True)
class ClassSchema:
    """Schema of a class, with the class and field of each part by its path (``.properties[spec]``)."""

    schema: Fields
    places: dict[str, tuple[str, str]]

    def place(self, path: str) -> tuple[str, str]:
        """Return the class and the field of the innermost known part at a path."""
        known = [each for each in self.places if path == each or path.startswith((f"{each}.", f"{each}["))]
        return self.places[max(known, key=len, default="")]


def class_schema(cls: type) -> ClassSchema:
    """Return the schema of a Struct, dataclass, TypedDict or pydantic model, or raise InvalidKindError."""
    walk = _Walk(root=cls)
    kind = type_of(cls)
    if not isinstance(kind, _OBJECTS) and not _is_model(kind):
        what = "it is none of the classes that have fields: make it a msgspec.Struct or a dataclass"
        raise InvalidKindError(cls.__name__, "", what)
    schema = walk.of(kind, "", (cls.__name__, ""))
    return ClassSchema(schema, walk.places)


def type_of(cls: type) -> inspect.Type:
    """Return msgspec's description of a class, or raise InvalidKindError."""
    try:
        return inspect.type_info(cls)
    except NameError as error:
        what = f"an annotation names {error.name!r}, which is not defined there: define it above, in the module"
        raise InvalidKindError(cls.__name__, "", what) from None
    except (TypeError, ValueError) as error:
        place, field = _culprit(cls)
        raise InvalidKindError(place, field, f"{error}; use a type that has a structural schema") from None


def _culprit(cls: type) -> tuple[str, str]:
    """Return the class and the field with the annotation that msgspec cannot describe."""
    for name, hint in get_type_hints(cls, include_extras=True).items():
        try:
            inspect.type_info(hint)
        except (TypeError, ValueError):
            inner = [hint, *getattr(hint, "__args__", ())]
            for each in inner:
                if isinstance(each, type) and hasattr(each, "__annotations__"):
                    return _culprit(each)
            return cls.__name__, name
    return cls.__name__, ""


@dataclasses.dataclass(slots=True)
class _Walk:
    root: type
    places: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict[str, tuple[str, str]])
    above: list[type] = dataclasses.field(default_factory=list[type])

    def of(self, kind: inspect.Type, path: str, place: tuple[str, str]) -> Fields:
        """Return the schema of a type at a path, which belongs to the class and field ``place``."""
        self.places[path] = place
        extra: Fields = {}
        while isinstance(kind, inspect.Metadata):
            extra = {**_said(kind), **extra}
            kind = kind.type
        schema = self._bare(kind, path, place)
        rules = [*schema.get(RULES, ()), *extra.pop(RULES, ())]
        schema |= {name: value for name, value in extra.items() if name not in _NOT_IN_DEFINITIONS}
        _without_other_lists(schema)
        return {**schema, RULES: rules} if rules else schema

    def _bare(self, kind: inspect.Type, path: str, place: tuple[str, str]) -> Fields:
        if isinstance(kind, inspect.UnionType):
            return self._union(kind, path, place)
        if isinstance(kind, inspect.AnyType | inspect.RawType):
            return {_OPEN: True}
        if isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.TypedDictType) or _is_model(kind):
            return self._object(kind, path, place)
        if isinstance(kind, inspect.DictType):
            return self._mapping(kind, path, place)
        if isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType | inspect.FrozenSetType):
            return self._list(kind, path, place)
        if isinstance(kind, inspect.EnumType | inspect.LiteralType):
            return _choice(kind, place)
        return _scalar(kind, place)

    def _union(self, kind: inspect.UnionType, path: str, place: tuple[str, str]) -> Fields:
        members = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        nullable: Fields = {"nullable": True} if len(members) < len(kind.types) else {}
        if len(members) == 1:
            schema = self.of(members[0], path, place)
            return null_or_choice(schema) if nullable else schema
        bare = {type(_bare(each)) for each in members}
        if bare == {inspect.IntType, inspect.StrType}:
            # Bounds only apply to numbers, and patterns and lengths only to strings, so one schema can have both.
            limits = {name: said for each in members for name, said in self.of(each, path, place).items()}
            return {_INT_OR_STRING: True, **{name: limits[name] for name in limits if name != "type"}, **nullable}
        if bare == {inspect.IntType, inspect.FloatType}:
            return {"type": "number", **nullable}
        shown = " | ".join(_named(each) for each in members)
        what = (
            f"the union {shown} has no structural schema: use a class with an optional field for each of them and "
            "class_rules(...) that says which may be set, or Any"
        )
        raise InvalidKindError(*place, what)

    def _object(self, kind: Any, path: str, place: tuple[str, str]) -> Fields:
        cls: type = kind.cls
        if cls in self.above:
            what = f"{cls.__name__} is inside itself, which no schema of Kubernetes can say: use Any for the inner one"
            raise InvalidKindError(*place, what)
        if getattr(kind, "array_like", False) or getattr(kind, "tag", None) is not None:
            what = "array_like and tag change what is written: leave them out of classes of a kind"
            raise InvalidKindError(cls.__name__, "", what)
        self.above.append(cls)
        said, properties = field_descriptions(cls), dict[str, Fields]()
        required: list[str] = []
        for field in model_fields(cls) if _is_model(kind) else kind.fields:
            if cls is self.root and field.encode_name in IDENTITY:
                properties[field.encode_name] = {**IDENTITY[field.encode_name]}
                continue
            here = f"{path}.properties[{field.encode_name}]"
            schema = self.of(field.type, here, (cls.__name__, field.name))
            if said.get(field.name) and not _says_what_it_is(field.type):
                schema = {**schema, "description": said[field.name]}
            if field.required:
                required.append(field.encode_name)
            if (default := _default(field, schema, (cls.__name__, field.name))) is not None:
                schema["default"] = default
            properties[field.encode_name] = schema
        self.above.pop()
        result: Fields = {"description": description_of(cls), "type": "object"}
        if properties:
            result["properties"] = properties
        if required:
            result["required"] = required
        if _is_model(kind) and keeps_all(cls):
            result[_OPEN] = True
        if rules := cls.__dict__.get(CLASS_RULES):
            result[RULES] = [*rules]
            self.places |= {f"{path}.{RULES}[{number}]": (cls.__name__, "") for number in range(len(rules))}
        return result if result["description"] else {name: result[name] for name in result if name != "description"}

    def _mapping(self, kind: inspect.DictType, path: str, place: tuple[str, str]) -> Fields:
        key = kind.key_type
        if key not in (inspect.StrType(), inspect.AnyType()):
            what = "keys of objects are texts, of which a schema says nothing: use dict[str, ...] and field_rules(...)"
            raise InvalidKindError(*place, what)
        limits = _limits(kind, minProperties="min_length", maxProperties="max_length")
        if isinstance(kind.value_type, inspect.AnyType):
            return {"type": "object", _OPEN: True, **limits}
        inner = self.of(kind.value_type, f"{path}.additionalProperties", place)
        return {"type": "object", "additionalProperties": inner, **limits}

    def _list(self, kind: Any, path: str, place: tuple[str, str]) -> Fields:
        schema: Fields = {"type": "array", "items": self.of(kind.item_type, f"{path}.items", place)}
        schema |= _limits(kind, minItems="min_length", maxItems="max_length")
        if isinstance(kind, inspect.SetType | inspect.FrozenSetType):
            schema["x-kubernetes-list-type"] = "set"
        return schema


def _is_model(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.CustomType) and is_model_class(kind.cls)


def _said(kind: inspect.Metadata) -> Fields:
    return mapping(cast("object", kind.extra_json_schema))  # pyright: ignore[reportUnknownMemberType] - msgspec: dict


def _says_what_it_is(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_says_what_it_is(each) for each in kind.types)
    if not isinstance(kind, inspect.Metadata):
        return False
    return "description" in _said(kind) or _says_what_it_is(kind.type)


def _without_other_lists(schema: Fields) -> None:
    """Remove the keywords of ``atomic`` that do not fit the type."""
    kind = schema.get("type")
    if kind == "object":
        schema.pop("x-kubernetes-list-type", None)
    elif kind == "array" and schema.get("x-kubernetes-list-type") == "atomic":
        schema.pop("x-kubernetes-map-type", None)


def _bare(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _named(kind: inspect.Type) -> str:
    bare = _bare(kind)
    cls = getattr(bare, "cls", None)
    return cls.__name__ if isinstance(cls, type) else type(bare).__name__.removesuffix("Type").lower()


def _limits(kind: object, **names: str) -> Fields:
    found = {keyword: getattr(kind, name) for keyword, name in names.items()}
    return {keyword: value for keyword, value in found.items() if value is not None}


def _scalar(kind: inspect.Type, place: tuple[str, str]) -> Fields:
    if isinstance(kind, inspect.BoolType):
        return {"type": "boolean"}
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "integer" if isinstance(kind, inspect.IntType) else "number"
        limits = _limits(kind, minimum="ge", maximum="le", multipleOf="multiple_of")
        if kind.gt is not None:
            limits |= {"minimum": kind.gt, "exclusiveMinimum": True}
        if kind.lt is not None:
            limits |= {"maximum": kind.lt, "exclusiveMaximum": True}
        return {"type": name, **limits}
    if isinstance(kind, inspect.StrType):
        return {"type": "string", **_limits(kind, minLength="min_length", maxLength="max_length", pattern="pattern")}
    if type(kind) in _TEXTS:
        return {"type": "string", "format": _TEXTS[type(kind)]}
    advice = _ADVICE.get(type(kind), "use a class, a list, a dict, str, int, float, bool, a Literal or an enumeration")
    raise InvalidKindError(*place, f"the type {_named(kind)} has no structural schema: {advice}")


def _choice(kind: inspect.EnumType | inspect.LiteralType, place: tuple[str, str]) -> Fields:
    if isinstance(kind, inspect.EnumType):
        values: list[Any] = [each.value for each in kind.cls]
    else:
        values = [each for each in kind.values if each is not None]
    types: set[type] = {type(each) for each in values}
    if types not in ({str}, {int}):
        what = "the values to choose from are not all texts, or not all whole numbers: use one of both"
        raise InvalidKindError(*place, what)
    schema: Fields = {"type": "string" if types == {str} else "integer", "enum": values}
    null = isinstance(kind, inspect.LiteralType) and None in kind.values
    return null_or_choice(schema) if null else schema


def has_rules(schema: Fields) -> bool:
    inner = [*mapping(schema.get("properties")).values(), schema.get("items"), schema.get("additionalProperties")]
    return RULES in schema or any(has_rules(mapping(each)) for each in inner if each)


def _default(field: inspect.Field, schema: Fields, place: tuple[str, str]) -> Any:
    """Return the default of a field in JSON, or None.

    With rules it must be complete, because they precede defaulting.
    """
    default = field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    if default is NODEFAULT or default is UNSET or default is None:
        return None
    try:
        return with_defaults(default) if has_rules(schema) else set_fields(default)
    except (TypeError, ValueError) as error:
        raise InvalidKindError(*place, f"its default cannot be written as JSON: {error}") from None
