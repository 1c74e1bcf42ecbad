"""Kubernetes object as JSON bytes with decoded metadata.

The Structs use ``gc=False``, because they never form reference cycles. A null field is treated as missing, as in Go.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from sys import intern
from typing import Any, Final, NoReturn, TypeVar, cast, final, get_origin

import msgspec
from msgspec.structs import force_setattr, replace

from deltaloop.api.compressed import Compressed, Compressor
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import type_of
from deltaloop.api.json_writing import write_json
from deltaloop.api.keys import join_key
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.resource_version import VERSION_LIMIT
from deltaloop.api.views import READ_ONLY, ReadOnlyMap, freeze

T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Owner of an object.

    ``controller`` is true for at most one owner.
    """

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ReceivedMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Metadata that is decoded when an object arrives.

    Use ``labels`` to read the labels, because it is read-only.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    label_map: dict[str, str] | None = msgspec.field(default=None, name="labels")
    deletion_timestamp: str | None = None

    @property
    def labels(self) -> Mapping[str, str]:
        """Read-only labels, empty if the object has none."""
        return ReadOnlyMap(self.label_map) if self.label_map else _EMPTY


class Envelope(msgspec.Struct, gc=False):
    """Object whose metadata is decoded. Other fields are only validated as JSON."""

    metadata: ReceivedMetadata


class _LateMeta(msgspec.Struct, gc=False, rename="camel"):
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    creation_timestamp: str | None = None


class _LateEnvelope(msgspec.Struct, gc=False):
    metadata: _LateMeta


class _TypeMeta(msgspec.Struct, gc=False, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


class _Name(msgspec.Struct, gc=False):
    name: str
    namespace: str | None = None


class _Named(msgspec.Struct, gc=False):
    metadata: _Name


class _Loose(msgspec.Struct, gc=False):
    metadata: dict[str, Any] | None = None


_CHANGES_A_DICT: Final = ("clear", "pop", "popitem", "setdefault", "update")


@final
class _Missing:
    """Method of a dict that resources lack. A ``__getattr__`` would make each access to a field twice as slow."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, obj: object, owner: type) -> NoReturn:
        what = f"{owner.__name__!r} object has no attribute {self._name!r}: {READ_ONLY}"
        raise AttributeError(what, name=self._name, obj=obj)


def _refuse_to_change(obj: object, name: str, *_: object) -> NoReturn:
    raise AttributeError(f"{type(obj).__name__}.{name} cannot be changed: {READ_ONLY}")


# The message of msgspec's own __setattr__ ("immutable type") does not contain a remedy.
for _frozen in (OwnerReference, ReceivedMetadata):
    _frozen.__setattr__ = _frozen.__delattr__ = _refuse_to_change  # type: ignore[method-assign]

# Rejects null fields in the metadata, which servers do not write. Resource.from_json supports them.
_decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
_decode_late: Final = msgspec.json.Decoder(_LateEnvelope).decode
_BEFORE_METADATA: Final = rb'\s*\{\s*(?:"(?:kind|apiVersion)"\s*:\s*"[^"\\]*"\s*,\s*)*"metadata"\s*:\s*'
_decode_dict: Final = msgspec.json.Decoder(dict[str, Any]).decode
_NOT_TEXT: Final = ValueError("not UTF-8")
# RecursionError is raised for objects that are nested deeper than the interpreter's stack.
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def is_text(raw: bytes) -> bool:
    """Return whether JSON that is not ASCII is UTF-8, because decoding the metadata does not check other fields."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


_VIEWS_KEPT: Final = 64
_viewed: Final[deque[Resource]] = deque()  # objects with cached decoded fields, oldest first


class Resource(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Immutable object, which tasks and threads can share.

    Create it with ``from_json`` or ``from_dict``. Equality compares the content. The hash uses namespace, name, uid and
    resource version. The ``repr`` contains no data except the name. You can pickle it.

    Attributes:
        stored: JSON bytes, plain or compressed. ``raw`` reads both forms.
        key: ``namespace/name`` or ``name``.
        name: ``metadata.name``, empty for a bookmark.
        namespace: ``metadata.namespace``, or empty.
        uid: ``metadata.uid``, which distinguishes the object from a later object with the same name.
        resource_version: ``metadata.resourceVersion``.
        version: Resource version as a number, or -1 if it is not comparable (KEP-5504).
        generation: ``metadata.generation``, or 0 for kinds without it.
        label_map: Labels. Use ``labels`` to read them, because it is read-only.
        deletion_timestamp: ``metadata.deletionTimestamp`` as a string, or None if the deletion was not requested.
        resource_type: Kind of the object, or None if unknown. List items of built-in kinds do not contain their kind.
    """

    stored: bytes | Compressed
    key: str
    name: str
    namespace: str
    uid: str
    resource_version: str
    version: int
    generation: int
    label_map: dict[str, str] | None
    deletion_timestamp: str | None
    resource_type: ResourceType[Any] | None = None
    _fields: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, raw: bytes | bytearray | memoryview, resource_type: ResourceType[Any] | None = None) -> Resource:
        """Create a resource from JSON, and decode its metadata.

        Raises:
            MalformedObjectError: If it is not a JSON object with ``metadata``, or not UTF-8. The message contains no
                data except the name.
        """
        kept = bytes(raw)
        if not (kept.isascii() or is_text(kept)):
            raise _malformed(_NOT_TEXT, kept, resource_type)
        try:
            metadata = _decode_envelope(kept).metadata
        except DECODE_ERRORS as error:
            metadata = _without_nulls(error, kept, resource_type, ReceivedMetadata)
        return make_resource(kept, metadata, resource_type)

    @classmethod
    def from_dict(
        cls, fields: Mapping[str, Any] | Resource, resource_type: ResourceType[Any] | None = None
    ) -> Resource:
        """Create a resource from a mapping, which is copied, or from another resource with a different type.

        Raises:
            MalformedObjectError: If ``metadata`` is missing, or JSON cannot represent a value.
        """
        plain = fields.to_dict() if isinstance(fields, Resource) else fields
        return cls.from_json(write_json(plain, "the object"), resource_type)

    def __setitem__(self, key: str, value: object) -> NoReturn:
        raise TypeError(READ_ONLY)

    def __delitem__(self, key: str) -> NoReturn:
        raise TypeError(READ_ONLY)

    @property
    def raw(self) -> bytes:
        """JSON bytes as received.

        Raises:
            MalformedObjectError: If the compressed data is damaged. All accesses to fields outside ``metadata`` can
                raise it.
        """
        stored = self.stored
        return stored if type(stored) is bytes else stored.decompress()  # type: ignore[union-attr]

    @property
    def stored_size(self) -> int:
        """Size of the stored JSON in bytes, less than ``len(raw)`` if it is compressed."""
        stored = self.stored
        return len(stored) if type(stored) is bytes else len(stored.data)  # type: ignore[union-attr]

    @property
    def metadata(self) -> ReceivedMetadata:
        """Decoded metadata, created at each access.

        Its fields are also attributes of the resource.
        """
        return ReceivedMetadata(
            self.name,
            self.namespace,
            self.uid,
            self.resource_version,
            self.generation,
            self.label_map,
            self.deletion_timestamp,
        )

    @property
    def labels(self) -> Mapping[str, str]:
        """Read-only ``metadata.labels``, empty if the object has none."""
        return ReadOnlyMap(self.label_map) if self.label_map else _EMPTY

    @property
    def annotations(self) -> Mapping[str, str]:
        """Read-only ``metadata.annotations``, decoded at each access.

        Raises:
            MalformedObjectError: If the annotations are not strings. This applies to all fields that are decoded on
                access.
        """
        return ReadOnlyMap(self._late().annotations or {})

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        """``metadata.ownerReferences``, decoded at each access."""
        return self._late().owner_references or ()

    @property
    def controller_owner(self) -> OwnerReference | None:
        """Controlling owner, or None (``metav1.GetControllerOf``)."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """``metadata.finalizers``, decoded at each access."""
        return self._late().finalizers or ()

    @property
    def creation_timestamp(self) -> str | None:
        """``metadata.creationTimestamp`` as a string, decoded at each access."""
        return self._late().creation_timestamp

    @property
    def api_version(self) -> str:
        """``apiVersion`` of the object, otherwise of its resource type."""
        return self._type().api_version or (self.resource_type.api_version if self.resource_type else "")

    @property
    def kind(self) -> str:
        """``kind`` of the object, otherwise of its resource type."""
        return self._type().kind or (self.resource_type.kind if self.resource_type else "")

    def view(self) -> ReadOnlyMap:
        """Return a deep read-only view of the object."""
        return ReadOnlyMap(self._decoded())

    def get(self, field: str, default: Any = None) -> Any:
        """Return a top-level field as a read-only view, or ``default``."""
        return freeze((self._fields or self._decoded()).get(field, default))

    def __getitem__(self, field: str) -> Any:
        value = (self._fields or self._decoded())[field]
        return ReadOnlyMap(value) if type_of(value) is dict else freeze(value)

    def __contains__(self, field: object) -> bool:
        return field in self._decoded()

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def edit(self) -> dict[str, Any]:
        """Return a mutable copy that you can change and send back."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return a mutable copy, including ``apiVersion`` and ``kind`` if the server omitted them.

        Raises:
            MalformedObjectError: If a field that has not been read before is invalid. ``view`` and field accesses raise
                it as well.
        """
        stored = self.stored
        try:
            fields = _decode_dict(stored if type(stored) is bytes else self.raw)
        except DECODE_ERRORS as error:
            raise _malformed(error, self.raw, self.resource_type) from None
        kind = self.resource_type
        if kind is not None:
            if "apiVersion" not in fields or not fields["apiVersion"]:
                fields["apiVersion"] = kind.api_version
            if "kind" not in fields or not fields["kind"]:
                fields["kind"] = kind.kind
        return fields

    def decode(self, model: type[T]) -> T:
        """Decode to a typed object: a Struct, dataclass, pydantic model, or another type that msgspec supports.

        Raises:
            MalformedObjectError: If the object does not match the type. The message names the field.
        """
        from deltaloop.api.pydantic_models import model_of

        try:
            return msgspec.json.decode(self.raw, type=model, dec_hook=model_of)
        except DECODE_ERRORS as error:
            name = getattr(model, "__name__", str(model))
            problem = f"{self!r} does not fit {name}: {without_data(error)}"
            raise MalformedObjectError(problem, path=_place_of(error)) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        if self is other or (self.raw == other.raw and self.resource_type == other.resource_type):
            return True
        return hash(self) == hash(other) and self._canonical() == other._canonical()

    def __ne__(self, other: object) -> bool:
        # msgspec's __ne__ compares identities and would take precedence.
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash((self.namespace, self.name, self.uid, self.resource_version))

    def __repr__(self) -> str:
        try:
            kind = str(self.resource_type or self.kind or "object")
        except MalformedObjectError:
            kind = "object"
        return f"<Resource {kind} {self.key} resourceVersion={self.resource_version or '-'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Resource.from_json, (self.raw, self.resource_type)

    def __copy__(self) -> Resource:
        return self

    def __deepcopy__(self, memo: object) -> Resource:
        return self

    def _decoded(self) -> dict[str, Any]:
        """Return the decoded fields, which are cached for the most recent objects."""
        fields = self._fields
        if fields is None:
            fields = self.to_dict()
            force_setattr(self, "_fields", fields)
            _viewed.append(self)
            if len(_viewed) > _VIEWS_KEPT:
                force_setattr(_viewed.popleft(), "_fields", None)
        return fields

    def _late(self) -> _LateMeta:
        stored = self.stored
        try:
            return _decode_late(stored if type(stored) is bytes else self.raw).metadata
        except DECODE_ERRORS as error:
            return _without_nulls(error, self.raw, self.resource_type, _LateMeta)

    def _type(self) -> _TypeMeta:
        try:
            return msgspec.json.decode(self.raw, type=_TypeMeta)
        except DECODE_ERRORS as error:
            raise _malformed(error, self.raw, self.resource_type) from None

    def _canonical(self) -> bytes:
        # Compare as text, because 1, 1.0 and True are equal in Python.
        return msgspec.json.encode(self.to_dict(), order="sorted")


_EMPTY: Final = ReadOnlyMap({})


Resource.__setattr__ = Resource.__delattr__ = _refuse_to_change  # type: ignore[method-assign]
for _method in _CHANGES_A_DICT:
    setattr(Resource, _method, _Missing(_method))


def with_stored(obj: Resource, stored: bytes | Compressed) -> Resource:
    return replace(obj, stored=stored, _fields=None)


def make_resource(
    stored: bytes | Compressed, metadata: ReceivedMetadata, resource_type: ResourceType[Any] | None = None
) -> Resource:
    """Return a resource with metadata that was decoded from its bytes."""
    name, namespace, resource_version = metadata.name, metadata.namespace, metadata.resource_version
    key = name
    if namespace:
        namespace = intern(namespace)  # most objects share a few namespaces
        key = f"{namespace}/{name}"
    try:  # inlined version_number, because this runs for each object
        version = int(resource_version)
    except ValueError:
        version = -1
    if not 0 < version < VERSION_LIMIT or f"{version}" != resource_version:
        version = -1
    return Resource(
        stored,
        key,
        name,
        namespace,
        metadata.uid,
        resource_version,
        version,
        metadata.generation,
        metadata.label_map,
        metadata.deletion_timestamp,
        resource_type,
    )


def decode_plain(raw: bytes, resource_type: ResourceType[Any] | None) -> Resource | None:
    """Decode an object, or return None for an unusual or invalid object."""
    try:
        metadata = _decode_envelope(raw).metadata
    except DECODE_ERRORS:
        return None
    return make_resource(raw, metadata, resource_type) if raw.isascii() or is_text(raw) else None


def _without_nulls(error: Exception, raw: bytes, resource_type: ResourceType[Any] | None, model: type[T]) -> T:
    """Decode metadata without its null fields, or raise the original error."""
    try:
        metadata = msgspec.json.decode(raw, type=_Loose).metadata
    except DECODE_ERRORS:
        metadata = None
    if metadata is not None:
        try:
            return msgspec.convert({name: _zero(item) for name, item in metadata.items() if item is not None}, model)
        except msgspec.ValidationError as second:
            error = msgspec.ValidationError(str(second).replace("`$", "`$.metadata"))
    raise _malformed(error, raw, resource_type) from None


def _zero(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "" if item is None else item for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        # Owner references are objects whose null fields are dropped. Finalizers are strings.
        return [
            {name: part for name, part in cast("dict[str, Any]", item).items() if part is not None}
            if isinstance(item, dict)
            else item
            for item in cast("list[Any]", value)
            if item is not None
        ]
    return value


def _malformed(error: Exception, raw: bytes, resource_type: ResourceType[Any] | None) -> MalformedObjectError:
    what = f"{resource_type} object" if resource_type else "object"
    text = "it has no metadata" if _has_no_metadata(raw) else without_data(error)
    key = key_in(raw)
    return MalformedObjectError(f"{what}{f' {key}' if key else ''} of {len(raw)} bytes cannot be read: {text}")


def key_in(raw: bytes) -> str | None:
    """Return the key of an unreadable object, or None; later metadata may belong to a nested object."""
    try:
        found = msgspec.json.decode(raw, type=_Named).metadata
    except DECODE_ERRORS:
        begin = re.match(_BEFORE_METADATA, raw)
        if begin is None:
            return None
        try:
            text = raw[begin.end() :].decode(errors="replace")
            from json import JSONDecoder

            found = msgspec.convert(JSONDecoder().raw_decode(text)[0], _Name)
        except (msgspec.ValidationError, ValueError, RecursionError):
            return None
    return join_key(found.namespace or "", found.name) if found.name and "\ufffd" not in found.name else None


def _has_no_metadata(raw: bytes) -> bool:
    try:
        return msgspec.json.decode(raw, type=_Loose).metadata is None
    except DECODE_ERRORS:
        return False


def without_data(error: Exception) -> str:
    """Return msgspec's message without the value, which it quotes for enums and tags."""
    if error is _NOT_TEXT or isinstance(error, UnicodeDecodeError):
        return "its text is not UTF-8"
    return re.sub(r"(?<= value )('.*'|\".*\"|-?[0-9.]+)", "<value>", str(error), flags=re.DOTALL)


def _place_of(error: Exception) -> str:
    return re.sub(r"^(?:.* - at `\$\.?([^`]*)`|.*)$", r"\1", str(error), flags=re.DOTALL)


def compress_in_place(obj: Resource, codec: Compressor) -> None:
    """Compress the JSON of an object if this reduces its size. Thread-safe for readers."""
    stored = obj.stored
    if isinstance(stored, bytes):
        data = codec.compress(stored)
        if data is not None:
            force_setattr(obj, "stored", Compressed(data, codec))


def decode_object(resource_type: ResourceType[T], raw: bytes | bytearray | memoryview) -> T:
    """Decode an object to the class of its resource type, or to ``Resource`` if it has no class."""
    obj: Any = Resource.from_json(raw, resource_type)
    return obj if resource_type.model is None else typed(resource_type, obj)


def typed(resource_type: ResourceType[T], obj: Resource) -> T:
    """Return an object as the class of its resource type, if any, or raise MalformedObjectError."""
    model: Any = resource_type.model
    found: Any = obj
    return found if model is None or model is Resource else decoder(resource_type)(obj)


def decoder(resource_type: ResourceType[T]) -> Callable[[Resource], T]:
    """Return the function that converts a ``Resource`` to the class of its type, or to ``dict`` or ``bytes``."""
    model: Any = resource_type.model
    if model is None or model is Resource:
        return cast("Callable[[Resource], T]", as_it_came)
    if model is dict or get_origin(model) is dict:
        return cast("Callable[[Resource], T]", Resource.to_dict)
    if model is bytes:
        return cast("Callable[[Resource], T]", _raw)
    return lambda obj: obj.decode(model)


def untyped(resource_type: ResourceType[Any]) -> ResourceType[Resource]:
    """Return the same kind without a class."""
    if resource_type.model is None:
        return resource_type
    kind = resource_type
    return ResourceType[Resource](kind.group, kind.version, kind.kind, kind.plural, kind.namespaced)


def as_it_came(obj: Resource) -> Resource:
    """Return the object itself (the ``decoder`` of kinds without a class)."""
    return obj


def _raw(obj: Resource) -> bytes:
    return obj.raw
