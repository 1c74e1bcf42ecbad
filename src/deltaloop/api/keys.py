"""Keys: how an object is named in caches and queues.

A key is ``namespace/name``, or ``name`` for objects without a namespace.

Source: client-go tools/cache/store.go (``MetaNamespaceKeyFunc``, ``SplitMetaNamespaceKey``, ``ExplicitKey``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast, final, runtime_checkable

from deltaloop.api.errors import InvalidKeyError, MalformedObjectError


@final
class ExplicitKey(str):
    """A key given as such: ``meta_namespace_key`` returns it unchanged, without looking for metadata."""

    __slots__ = ()


@runtime_checkable
class HasObjectName(Protocol):
    """Anything with a name and a namespace: a ``Resource``, an ``ObjectReference``, a typed object."""

    @property
    def name(self) -> str:
        """Name, never empty for a stored object."""
        ...

    @property
    def namespace(self) -> str:
        """Namespace, or the empty string for objects that have none."""
        ...


class ObjectName(NamedTuple):
    """A key in two parts."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """The key as one string."""
        return join_key(self.namespace, self.name)


def join_key(namespace: str | None, name: str) -> str:
    """Make a key from its parts; an empty or missing namespace leaves the bare name."""
    return f"{namespace}/{name}" if namespace else name


def meta_namespace_key(obj: object) -> str:
    """Return the key of an object.

    Args:
        obj: An ``ExplicitKey``, an object with ``name`` and ``namespace``, an object with such a ``metadata``, or a
            mapping with ``metadata.name`` (and ``metadata.namespace``).

    Raises:
        MalformedObjectError: If there is no metadata or no name to make a key from.

    Source: client-go tools/cache/store.go, ``MetaNamespaceKeyFunc``.
    """
    # Several calls for each event: a Resource must not pay for what else may come.
    if _has_name_by_class(type(obj)):  # type: ignore[arg-type]  # mypy takes object's __hash__ for that of type
        own: Any = obj
        name, namespace = own.name, own.namespace
        if name:
            return f"{namespace}/{name}" if namespace else name
    if isinstance(obj, ExplicitKey):
        return str(obj)
    named = _named(obj)
    if not named.name:
        raise MalformedObjectError(f"object of type {type(obj).__name__} has no metadata.name: it cannot have a key")
    return named.key


@lru_cache(maxsize=256)
def _has_name_by_class(kind: type[object]) -> bool:
    """Say whether all objects of a class have ``name`` and ``namespace``, and are nothing that is looked at first."""
    return hasattr(kind, "name") and hasattr(kind, "namespace") and not issubclass(kind, (ExplicitKey, Mapping))


def _named(obj: object) -> ObjectName:
    if isinstance(obj, Mapping):
        metadata = cast("Mapping[str, Any]", obj).get("metadata")
        if not isinstance(metadata, Mapping):
            raise MalformedObjectError("object has no metadata: it cannot have a key")
        fields = cast("Mapping[str, Any]", metadata)
        name, namespace = fields.get("name") or "", fields.get("namespace") or ""
        if not isinstance(name, str) or not isinstance(namespace, str):
            raise MalformedObjectError("metadata.name and metadata.namespace must be strings")
        return ObjectName(namespace, name)
    if isinstance(obj, HasObjectName):
        return ObjectName(obj.namespace or "", obj.name or "")
    metadata = getattr(obj, "metadata", None)
    if isinstance(metadata, HasObjectName):
        return ObjectName(metadata.namespace or "", metadata.name or "")
    raise MalformedObjectError(f"object of type {type(obj).__name__} has no metadata: it cannot have a key")


def split_meta_namespace_key(key: str) -> ObjectName:
    """Split a key into namespace and name; the namespace is empty for a bare name.

    Raises:
        InvalidKeyError: If the key has more than one slash.

    Source: client-go tools/cache/store.go, ``SplitMetaNamespaceKey``.
    """
    parts = key.split("/")
    if len(parts) == 1:
        return ObjectName("", parts[0])
    if len(parts) == 2:
        return ObjectName(parts[0], parts[1])
    raise InvalidKeyError(key)
