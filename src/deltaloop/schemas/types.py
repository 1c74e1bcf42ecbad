"""Type tree of an object, compiled from the table of built-in kinds or from the schema of a custom resource.

Forms of a value: ``integer`` has any size. ``bytes``, ``time`` and ``micro_time`` are strings in base64, in RFC 3339 to
the second, and with six decimal digits. ``quantity`` and ``intstr`` are a number or a string. ``schema`` is a schema of
a CRD, or a boolean or list in its place.

An apply merges a ``scalar`` as one value, including atomic lists and objects; a ``map`` by field; a ``keyed`` list by
fields that identify its items; and a ``set`` as a list of distinct plain values. A ``free`` value has no type.

Source: apiextensions-apiserver pkg/apiserver/schema/structural.go; structured-merge-diff schema/elements.go;
kube-openapi pkg/schemaconv.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.schemas.patterns.matching import Pattern

Form: TypeAlias = Literal[
    "object", "list", "string", "boolean", "int32", "int64", "integer", "number", "bytes", "time", "micro_time",
    "quantity", "intstr", "schema", "any",
]  # fmt: skip
Merging: TypeAlias = Literal["scalar", "map", "keyed", "set", "free"]

NO_DEFAULT: Final = object()


class TypeNode(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One type. Types can contain themselves, and do not change after their compilation.

    Attributes:
        name: Name of a struct in the table, for example ``core.v1.PodSpec``.
        other: Type of all other fields, or None.
        open: Whether unknown fields are kept.
        types: JSON types that the schema allows. Empty means any.
        embedded: Whether the value is a whole Kubernetes object.
        default: Default of a missing field, or ``NO_DEFAULT``.
        default_size: Bytes of the default as JSON, plus an allowance for the work of copying it.
        has_defaults: Whether this type or a descendant has a default.
        checks_lists: Whether this type or a descendant is a set, a map or an embedded object.
        completion: Defaults of a struct of a built-in kind, or None.
        accepts: Allowed type of a scalar: ``string``, ``integer``, ``number``, ``boolean``, ``list``, ``map``,
            ``scalar`` for any of the first four, or "" for any.
        merge_fields: Named fields for merging, which include the metadata of a whole object.
        element: Type of the other keys or of the items for merging, or None.
        keys: Fields that identify items of a ``keyed`` list.
        zero: Go's zero value, reduced to the parts that are objects or null.
        patch_key: Merge key of a list for strategic merge patch, or "" for plain values. None replaces the list.
        replaced: Whether a strategic merge patch replaces an object instead of merging it.
        numbers: Names and types of the fields by protobuf number, in Go's order. "" is a nested message.
        carrier: Protobuf message of the value, if it differs from JSON.
    """

    form: Form = "any"
    name: str = ""
    fields: dict[str, TypeNode] = {}
    other: TypeNode | None = None
    items: TypeNode | None = None
    open: bool = False
    types: tuple[str, ...] = ()
    nullable: bool = False
    embedded: bool = False
    default: object = NO_DEFAULT
    default_size: int = 0
    has_defaults: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    checks_lists: bool = False
    rules: Rules | None = None
    completion: Completion | None = None
    merging: Merging = "free"
    accepts: str = ""
    merge_fields: dict[str, TypeNode] = {}
    element: TypeNode | None = None
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, object] = {}
    zero: dict[str, object] | None = None
    patch_key: str | None = None
    replaced: bool = False
    numbers: dict[int, tuple[str, TypeNode]] = {}
    carrier: TypeNode | None = None

    def below(self, name: str) -> TypeNode:
        """Return the type of a field, or of that field in a list's items. Unknown fields are free."""
        holder = self.items or self
        return holder.fields.get(name) or FREE


class Rules(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Restrictions of a schema beyond types, named like the JSON schema keywords."""

    required: tuple[str, ...] = ()
    enum: tuple[object, ...] | None = None
    enum_values: frozenset[object] | None = None
    minimum: float | None = None
    exclusive_minimum: bool = False
    maximum: float | None = None
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: Pattern | None = None
    pattern_text: str = ""
    format: str = ""
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    closed: bool = False
    all_of: tuple[TypeNode, ...] = ()
    any_of: tuple[TypeNode, ...] = ()
    one_of: tuple[TypeNode, ...] = ()
    not_: TypeNode | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Defaults that the server writes into a struct."""

    fill: tuple[tuple[str, object, bool], ...] = ()
    zeros: dict[str, object] = {}
    omitted: tuple[str, ...] = ()
    rule: Callable[..., object] | None = None
    quantities: list[str] = []
    below: dict[str, TypeNode] = {}


FREE: Final = TypeNode(open=True)
"""Value without a type."""
NOTHING: Final = TypeNode(nullable=True)
"""Any value without fields, also inside lists: the type of items without a type."""


@final
class Schema:
    """Type of a served resource, compiled on first use. Schemas of the same name are equal."""

    __slots__ = ("_compile", "_name", "_tree", "source")

    def __init__(self, name: Hashable, compile_: Callable[[], TypeNode], *, source: bytes = b"") -> None:
        self.source: bytes = source
        self._name = name
        self._compile = compile_
        self._tree: TypeNode | None = None

    @property
    def tree(self) -> TypeNode:
        if self._tree is None:
            self._tree = self._compile()
        return self._tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"Schema({self._name!r})"
