"""Errors for invalid arguments, below ``deltaloop.errors.DeltaloopError``; they never contain object data."""

from __future__ import annotations

from deltaloop._internal.root_error import DeltaloopError, InvalidArgumentError

__all__ = [
    "DeltaloopError",
    "InvalidArgumentError",
    "InvalidKeyError",
    "InvalidPathError",
    "InvalidResourceVersionError",
    "InvalidSelectorError",
    "MalformedObjectError",
    "MissingExtraError",
    "UnknownResourceError",
]


class InvalidKeyError(InvalidArgumentError):
    """A key does not have the form ``namespace/name`` or ``name``.

    Attributes:
        key: Invalid key.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"unexpected key format: {key!r}; a key must be 'namespace/name' or 'name'")
        self.key = key


class InvalidSelectorError(InvalidArgumentError):
    """A label or field selector cannot be parsed, or contains a field that the server does not support."""


class InvalidResourceVersionError(InvalidArgumentError):
    """A resource version is not comparable: not a positive decimal number without leading zeros (KEP-5504).

    Attributes:
        resource_version: Invalid resource version.
    """

    def __init__(self, resource_version: str) -> None:
        super().__init__(
            f"resource version must be a positive decimal number without leading zeros, got {resource_version!r}."
        )
        self.resource_version = resource_version


class InvalidPathError(InvalidArgumentError):
    """A field path such as ``spec.nodeName`` cannot be parsed."""


class UnknownResourceError(InvalidArgumentError):
    """A name does not match a resource type.

    Attributes:
        name: Name that the server does not know. Empty if a part of the discovery failed, so that the name may exist.
    """

    def __init__(self, message: str = "", *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class MalformedObjectError(InvalidArgumentError):
    """A value is not a valid Kubernetes object: not JSON, or without metadata or name.

    Raised for objects from the caller and from the server. The message contains the location, but no data.

    Attributes:
        path: Path of the invalid value, or empty.
        given: Whether the caller passed the object, and must change it.
    """

    def __init__(self, message: str = "", *, path: str = "", given: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.given = given


class MissingExtraError(DeltaloopError, ImportError):
    """A feature requires an optional dependency that is not installed.

    Attributes:
        extra: Extra that installs the dependency.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} requires the extra {extra!r}: pip install 'deltaloop[{extra}]'")
        self.feature = feature
        self.extra = extra
