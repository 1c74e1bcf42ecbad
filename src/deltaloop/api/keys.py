"""Keys that identify objects in caches and queues.

Source: client-go tools/cache/store.go (``MetaNamespaceKeyFunc``, ``SplitMetaNamespaceKey``, ``ExplicitKey``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast, final, runtime_checkable

from deltaloop.api.errors import InvalidKeyError, MalformedObjectError


@final
class ExplicitKey(str):
    """Key that ``meta_namespace_key`` returns unchanged."""

    __slots__ = ()


@runtime_checkable
class HasObjectName(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...


class ObjectName(NamedTuple):
    """Namespace and name of a key."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """Key as a string."""
        return join_key(self.namespace, self.name)


def join_key(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def meta_namespace_key(obj: object) -> str:
    """Return the key of an object.

    Args:
        obj: ``ExplicitKey``, object with ``name`` and ``namespace``, object with such a ``metadata``, or mapping with
            ``metadata.name`` and optionally ``metadata.namespace``.

    Raises:
        MalformedObjectError: If the metadata or the name is missing.

    Source: client-go tools/cache/store.go, ``MetaNamespaceKeyFunc``.
    """
    # Fast path: this runs several times per event, mostly for a Resource.
    if _has_name_by_class(type(obj)):  # type: ignore[arg-type]  # mypy takes object's __hash__ for that of type
        own: Any = obj
        name, namespace = own.name, own.namespace
        if name:
            return f"{namespace}/{name}" if namespace else name
    if isinstance(obj, ExplicitKey):
        return str(obj)
    named = _named(obj)
    if not named.name:
        raise MalformedObjectError(f"an object of type {type(obj).__name__} must have metadata.name, got none.")
    return named.key


@lru_cache(maxsize=256)
def _has_name_by_class(kind: type[object]) -> bool:
    """Return whether all objects of a class have ``name`` and ``namespace``, and need no special handling."""
    return hasattr(kind, "name") and hasattr(kind, "namespace") and not issubclass(kind, (ExplicitKey, Mapping))


def _named(obj: object) -> ObjectName:
    if isinstance(obj, Mapping):
        metadata = cast("Mapping[str, Any]", obj).get("metadata")
        if not isinstance(metadata, Mapping):
            raise MalformedObjectError("an object must have metadata, got none.")
        fields = cast("Mapping[str, Any]", metadata)
        name, namespace = fields.get("name") or "", fields.get("namespace") or ""
        if not isinstance(name, str) or not isinstance(namespace, str):
            raise MalformedObjectError("metadata.name and metadata.namespace must be strings.")
        return ObjectName(namespace, name)
    if isinstance(obj, HasObjectName):
        return ObjectName(obj.namespace or "", obj.name or "")
    metadata = getattr(obj, "metadata", None)
    if isinstance(metadata, HasObjectName):
        return ObjectName(metadata.namespace or "", metadata.name or "")
    raise MalformedObjectError(f"an object of type {type(obj).__name__} must have metadata, got none.")


def split_meta_namespace_key(key: str) -> ObjectName:
    """Split a key into namespace and name.

    The namespace is empty for a bare name.

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
