"""The type of objects, compiled to one tree: of a built-in kind from its table, of a custom one from its schema.

Every step that reads an object walks it and this tree side by side, and reads neither table nor JSON schema again. Such
a visitor is one module beside this one:

    reading       wrong types, nulls, what is empty, bytes and times in their own form
    converting    the same of what a merge has made
    pruning       fields that no type names
    completing    defaults of built-in kinds
    defaulting    defaults of schemas
    validating    the rules of schemas
    checking      the rules of built-in kinds (by a plan of their own: ``type_table``)

The form of a value:

    object                            named fields, a type for all others (``other``), or both; a struct has a name
    list                              of ``items``
    string boolean                    scalars
    int32 int64 integer number        whole numbers of 32 and 64 bits, of any size, and any number
    bytes time micro_time             texts: in base64, RFC 3339 to the second, and with six digits below it
    quantity intstr                   a number or a text
    schema                            a schema of a CRD, or what can stand in its place: a boolean, or a list of them
    any                               anything

How it merges when it is applied:

    scalar    one value; a list or an object that is atomic is one, too, and may say what is in it
    map       an object: fields with types of their own, and ``element`` for all other names
    keyed     a list whose items are told apart by some of their fields
    set       a list of unlike plain values
    free      nothing is said about it: objects merge field by field, lists are one value

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
    """One type. Types may contain themselves; they are never changed once they are compiled.

    Attributes:
        form: Which of JSON's forms the value has.
        name: Of a struct, as the table has it, such as ``core.v1.PodSpec``.
        fields: Types of the named fields.
        other: Type of all other fields, if there is one.
        items: Type of a list's items.
        open: Whether fields that no type names are kept.
        types: JSON types that a value may have by its schema; empty means any.
        nullable: Whether null is a value.
        embedded: Whether the value is a whole Kubernetes object.
        default: What a missing field becomes; ``NO_DEFAULT`` without one.
        default_size: Bytes of the default as JSON, and some more for the work of copying it.
        has_defaults: Whether this type or one below has a default.
        list_type: ``atomic``, ``set``, ``map`` or "".
        list_keys: Fields that identify an item of a ``map``.
        checks_lists: Whether this type or one below is a set, a map or an embedded object.
        rules: What else a schema asks for; None if nothing.
        completion: What is written into a struct of a built-in kind; None if nothing.
        merging: How a patch or an apply merges it.
        accepts: What a value that merges as a scalar may be: ``string``, ``integer``, ``number``, ``boolean``,
            ``list``, ``map``, ``scalar`` for any of the first four, or "" for anything.
        merge_fields: Named fields of an object as it merges; a whole object has its metadata there.
        element: Type of the other keys of an object, or of a list's items, as it merges; None if there are none.
        keys: The fields that tell items of a ``keyed`` list apart.
        key_defaults: Values of keys that an item need not have.
        zero: What Go has where nobody has set anything: the parts of it that are objects or null.
        patch_key: Of a list that a strategic merge patch merges, the field that tells its items apart, "" for plain
            values; None means that the list is replaced.
        replaced: Whether a strategic merge patch replaces an object instead of merging it.
        numbers: Names and types of the fields by their numbers in protobuf, in Go's order; "" stands for some of the
            fields, which are in a message of their own.
        carrier: The message that carries the value in protobuf, if JSON has it otherwise.
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
        """Return the type of a field, or of that field of a list's items; what nothing is said of is free."""
        holder = self.items or self
        return holder.fields.get(name) or FREE


class Rules(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a schema asks for beyond types, by the words of JSON schema."""

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
    """What the server writes into a struct.

    Attributes:
        fill: Fields that nobody set, what they get, and whether that replaces a zero, too.
        zeros: Fields that Go always writes, and the zero that they have then.
        omitted: Fields that Go never writes when they are zero.
        rule: Defaults that depend on other fields.
        quantities: Fields that hold quantities, or maps of them.
        below: Fields in whose structs there is something to write.
    """

    fill: tuple[tuple[str, object, bool], ...] = ()
    zeros: dict[str, object] = {}
    omitted: tuple[str, ...] = ()
    rule: Callable[..., object] | None = None
    quantities: list[str] = []
    below: dict[str, TypeNode] = {}


FREE: Final = TypeNode(open=True)
"""Nothing is said about it."""
NOTHING: Final = TypeNode(nullable=True)
"""Any value, but no fields in it, however deep in lists: what a list has whose items have no type."""


@final
class Schema:
    """The type of what is served, compiled when it is first asked for.

    Attributes:
        source: The schema in JSON that it comes from; b"" if it comes from the table of the built-in kinds, or if there
            is none.
    """

    __slots__ = ("_compile", "_name", "_tree", "source")

    def __init__(self, name: Hashable, compile_: Callable[[], TypeNode], *, source: bytes = b"") -> None:
        """Keep what compiles it; of one name there is one type."""
        self.source: bytes = source
        self._name = name
        self._compile = compile_
        self._tree: TypeNode | None = None

    @property
    def tree(self) -> TypeNode:
        """The root of its tree."""
        if self._tree is None:
            self._tree = self._compile()
        return self._tree

    def __eq__(self, other: object) -> bool:
        """Two of one name are the same."""
        return isinstance(other, Schema) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"Schema({self._name!r})"
