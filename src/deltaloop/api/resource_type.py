"""One name for a kind: group, version, kind, plural and scope together, and the class its objects decode to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import is_unicode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_ATTRIBUTE = "__resource_type__"
_DEFINED: Final = "__custom_resource__"
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*/[A-Za-z0-9][A-Za-z0-9._~-]*")


@dataclass(frozen=True)  # no slots: Python 3.11 sets __orig_class__ on generics and survives only AttributeError
class ResourceType(Generic[T_co]):
    """A resource of the API, such as ``ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)``.

    Two are equal if they name the same resource, whatever class they decode to.

    Attributes:
        group: API group; the empty string is the core group.
        version: API version, such as ``v1``.
        kind: Name of one object's type, such as ``Deployment``.
        plural: Name in URLs, such as ``deployments``.
        namespaced: Whether objects live in a namespace.
        model: The class that objects decode to; None stands for ``Resource``.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    model: type[T_co] | None = None

    def __post_init__(self) -> None:
        """Refuse names that cannot be put into a URL."""
        for name, value in (("version", self.version), ("kind", self.kind), ("plural", self.plural)):
            if not value or "/" in value:
                raise InvalidArgumentError(f"ResourceType.{name} is {value!r}; a non-empty name without '/' is needed")
        if "/" in self.group:
            raise InvalidArgumentError(f"ResourceType.group is {self.group!r}; give group and version apart")

    @cached_property
    def api_version(self) -> str:
        """``group/version``, or the bare version for the core group, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def group_resource(self) -> str:
        """``plural.group``, as error messages and CRD names have it; the bare plural for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, of one object, or of an object's subresource.

        Args:
            namespace: Namespace; None or empty means all namespaces, and is not allowed for one namespaced object.
            name: Name of one object; None means the collection.
            subresource: Such as ``status``; needs a name.

        Raises:
            InvalidArgumentError: If the parts do not fit together.
        """
        if name and namespace and self.namespaced and _PLAIN_KEY.fullmatch(f"{namespace}/{name}"):  # nearly always
            path = f"{self._root}/namespaces/{namespace}/{self.plural}/{name}"
            return f"{path}/{_segments(subresource)}" if subresource else path
        if namespace and not self.namespaced:
            raise InvalidArgumentError(f"{self} has no namespaces, but namespace {namespace!r} was given")
        if name is not None and self.namespaced and not namespace:
            raise InvalidArgumentError(f"{self} lives in namespaces: give one for {name!r}")
        path = self._root
        if namespace:
            path = f"{path}/namespaces/{_segment(namespace, 'the name of a namespace')}"
        path = f"{path}/{self.plural}"
        if name is not None:
            path = f"{path}/{_segment(name, 'the name of an object')}"
        if subresource:
            if name is None:
                raise InvalidArgumentError(f"subresource {subresource!r} needs the name of an object")
            path = f"{path}/{_segments(subresource)}"
        return path

    if TYPE_CHECKING:

        def _accepts(self, obj: Any) -> T_co:  # what may be written: the types of built-in kinds narrow it
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
        # Not as it is: the hash of a text is another one in another process.
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
        """Return the resource type that ``custom_resource`` put on a class.

        Raises:
            InvalidArgumentError: If the class carries none.
        """
        found = resource_type_of(model)
        if found is None:
            raise InvalidArgumentError(
                f"class {model.__name__} carries no resource type; decorate it with @custom_resource"
            )
        return found

    @classmethod
    def untyped(cls, api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Self:
        """Make one from an ``apiVersion`` as objects carry it; objects decode to ``Resource``."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind, plural, namespaced)


def _segment(text: str, what: str) -> str:
    """Return a part of a path as a URL has it.

    Raises:
        InvalidArgumentError: If it is none; the message says what it should be.
    """
    if text in ("", ".", "..") or "/" in text or not is_unicode(text):
        raise InvalidArgumentError(f"{text!r} is not {what}")
    return quote(text, safe="")


@lru_cache(maxsize=64)
def _segments(subresource: str) -> str:
    for part in subresource.split("/"):
        if part in ("", ".", "..") or not is_unicode(part):
            raise InvalidArgumentError(f"{subresource!r} is not a subresource")
    return quote(subresource, safe="/")


TypedKind: TypeAlias = ResourceType[T] | type[T]
"""A kind whose objects come as ``T``: its resource type, or the class itself if ``custom_resource`` made it a kind."""


def resource_type_of(model: type[T]) -> ResourceType[T] | None:
    """Return the resource type that ``custom_resource`` put on a class; None if the class is no kind."""
    found = vars(model).get(_ATTRIBUTE)
    return cast("ResourceType[T]", found) if isinstance(found, ResourceType) else None


def as_kind(kind: ResourceType[T] | type[T] | str) -> ResourceType[T] | str:
    """Return the resource type of a class; a resource type or a name is returned as it is.

    Raises:
        InvalidArgumentError: If the class is no kind.
    """
    return ResourceType.of(kind) if isinstance(kind, type) else kind


def put_definition(model: type, definition: object) -> None:
    """Put on a class what ``custom_resource`` found out about it."""
    setattr(model, _DEFINED, definition)


def definition_of(model: type) -> object:
    """Return what ``custom_resource`` found out about a class; None if the class itself is not decorated."""
    return vars(model).get(_DEFINED)


def put_resource_type(model: type[T], found: ResourceType[T]) -> type[T]:
    """Put a resource type on a class, so that clients and informers decode objects to it; the class is given back."""
    setattr(model, _ATTRIBUTE, found)
    return model
