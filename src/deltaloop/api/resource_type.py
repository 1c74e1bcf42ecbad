"""Resource types: group, version, kind, plural and scope, with the class of their objects."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import is_unicode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_ATTRIBUTE = "__resource_type__"
_DEFINED: Final = "__custom_resource__"
_PLAIN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"


class ResourceType(msgspec.Struct, Generic[T_co], frozen=True, eq=False, dict=True):
    """Resource of the API, such as ``ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)``.

    Equality ignores ``model``.

    Attributes:
        group: API group, empty for the core group.
        version: API version, such as ``v1``.
        kind: Kind, such as ``Deployment``.
        plural: Name in URLs, such as ``deployments``.
        namespaced: Whether objects have a namespace.
        model: Class of the decoded objects. None means ``Resource``.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    model: type[T_co] | None = None

    def __post_init__(self) -> None:
        """Reject names that are invalid in a URL."""
        for name, value in (("version", self.version), ("kind", self.kind), ("plural", self.plural)):
            if not value or "/" in value:
                raise InvalidArgumentError(
                    f"must be a name without '/', got {value!r}.", argument=f"ResourceType.{name}"
                )
        if "/" in self.group:
            raise InvalidArgumentError(
                f"must not contain the version, got {self.group!r}.", argument="ResourceType.group"
            )

    @cached_property
    def api_version(self) -> str:
        """``group/version``, or only the version for the core group, as in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def group_resource(self) -> str:
        """``plural.group``, or only the plural for the core group, as in error messages and CRD names."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of a collection, an object or a subresource.

        Args:
            namespace: Namespace. None or empty means all namespaces, and is invalid for a single namespaced object.
            name: Name of an object. None means the collection.
            subresource: Subresource, such as ``status``. It requires a name.

        Raises:
            InvalidArgumentError: If the arguments are invalid or cannot be combined.
        """
        is_usual = name and namespace and self.namespaced and namespace[0] != "." != name[0]
        if is_usual and not f"{namespace}{name}".encode("ascii", "replace").translate(None, _PLAIN):  # fast path
            path = f"{self._root}/namespaces/{namespace}/{self.plural}/{name}"
            return f"{path}/{_segments(subresource)}" if subresource else path
        if namespace and not self.namespaced:
            raise InvalidArgumentError(f"must be None for {self}, got {namespace!r}.", argument="namespace")
        if name is not None and self.namespaced and not namespace:
            raise InvalidArgumentError(f"must be set for {self} {name!r}.", argument="namespace")
        path = self._root
        if namespace:
            path = f"{path}/namespaces/{_segment(namespace, 'namespace')}"
        path = f"{path}/{self.plural}"
        if name is not None:
            path = f"{path}/{_segment(name, 'name')}"
        if subresource:
            if name is None:
                raise InvalidArgumentError(f"must be set for subresource {subresource!r}.", argument="name")
            path = f"{path}/{_segments(subresource)}"
        return path

    if TYPE_CHECKING:

        def _accepts(self, obj: Any) -> T_co:  # type of objects to write, which the stubs of built-in kinds narrow
            ...

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, ResourceType) and self._identity == cast("ResourceType[Any]", other)._identity

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        # Do not pickle the cached hash, because string hashes differ between processes.
        return type(self), (self.group, self.version, self.kind, self.plural, self.namespaced, self.model)

    @cached_property
    def _identity(self) -> tuple[str, str, str, str, bool]:
        return (self.group, self.version, self.kind, self.plural, self.namespaced)

    @cached_property
    def _root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    @cached_property
    def _text(self) -> str:
        return f"{self.api_version}/{self.kind}"

    @classmethod
    def of(cls, model: type[T]) -> ResourceType[T]:
        """Return the resource type of a class from ``custom_resource``.

        Raises:
            InvalidArgumentError: If the class has no resource type.
        """
        found = resource_type_of(model)
        if found is None:
            raise InvalidArgumentError(
                "must be a kind. Decorate it with @custom_resource.", argument=f"class {model.__name__}"
            )
        return found

    @classmethod
    def untyped(cls, api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Self:
        """Create a resource type from an ``apiVersion``.

        Its objects decode to ``Resource``.
        """
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind, plural, namespaced)


def _segment(text: str, what: str) -> str:
    if text in ("", ".", "..") or "/" in text or not is_unicode(text):
        raise InvalidArgumentError(f"must be a valid path segment, got {text!r}.", argument=what)
    return quote(text, safe="")


@lru_cache(maxsize=64)
def _segments(subresource: str) -> str:
    if subresource.isascii() and subresource.isalpha():
        return subresource
    for part in subresource.split("/"):
        if part in ("", ".", "..") or not is_unicode(part):
            raise InvalidArgumentError(f"must be a valid name, got {subresource!r}.", argument="subresource")
    return quote(subresource, safe="/")


TypedKind: TypeAlias = ResourceType[T] | type[T]
"""Kind whose objects decode to ``T``: a resource type, or a class from ``custom_resource``."""

Kind: TypeAlias = ResourceType[Any] | type[Any] | str
"""Kind of object: a resource type, a class that ``custom_resource`` registered, or a name such as ``v1/Pod``."""


def resource_type_of(model: type[T]) -> ResourceType[T] | None:
    found = vars(model).get(_ATTRIBUTE)
    return cast("ResourceType[T]", found) if isinstance(found, ResourceType) else None


def as_kind(kind: ResourceType[T] | type[T] | str) -> ResourceType[T] | str:
    """Return the resource type of a class, or raise InvalidArgumentError. Resource types and names are unchanged."""
    return ResourceType.of(kind) if isinstance(kind, type) else kind


def put_definition(model: type, definition: object) -> None:
    """Store the definition that ``custom_resource`` derived from a class."""
    setattr(model, _DEFINED, definition)


def definition_of(model: type) -> object:
    """Return the definition that ``custom_resource`` derived from this class itself, or None."""
    return vars(model).get(_DEFINED)


def put_resource_type(model: type[T], found: ResourceType[T]) -> type[T]:
    """Store a resource type in a class, so that clients and informers decode objects to it, and return the class."""
    setattr(model, _ATTRIBUTE, found)
    return model
