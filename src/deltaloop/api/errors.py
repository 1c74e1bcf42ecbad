"""The errors of what a caller hands in, below the one root of ``deltaloop.errors``.

    DeltaloopError
    ├── InvalidArgumentError        the caller's value is wrong: the message says what, where and what to do
    │   ├── InvalidKeyError
    │   ├── InvalidSelectorError
    │   ├── InvalidResourceVersionError
    │   ├── InvalidPathError
    │   ├── UnknownResourceError
    │   └── MalformedObjectError (also raised for what a server sent)
    ├── MissingExtraError        an optional dependency is not installed: the message names the extra
    └── ApiError                 the API server answered with a Status (deltaloop.api.status)

Other rooms add theirs below the same root. Errors carry fields, not only text, and never carry object data.
"""

from __future__ import annotations

from deltaloop._internal.root_error import DeltaloopError

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


class InvalidArgumentError(DeltaloopError, ValueError):
    """A value given by the caller cannot be used; the caller has to change it."""


class InvalidKeyError(InvalidArgumentError):
    """A key is not of the form ``namespace/name`` or ``name``.

    Attributes:
        key: The key as given.
    """

    def __init__(self, key: str) -> None:
        """Keep the key and say what a key looks like."""
        super().__init__(f"unexpected key format: {key!r}; a key is 'namespace/name' or, without a namespace, 'name'")
        self.key = key


class InvalidSelectorError(InvalidArgumentError):
    """A label or field selector cannot be parsed, or names a field that the server does not know."""


class InvalidResourceVersionError(InvalidArgumentError):
    """A resource version is not comparable: not a positive decimal number without leading zeros (KEP-5504).

    Attributes:
        resource_version: The value as given.
    """

    def __init__(self, resource_version: str) -> None:
        """Keep the offending value."""
        super().__init__(
            f"resource version {resource_version!r} is not comparable: "
            "a positive decimal number without leading zeros is needed"
        )
        self.resource_version = resource_version


class InvalidPathError(InvalidArgumentError):
    """A field path such as ``spec.nodeName`` cannot be parsed."""


class UnknownResourceError(InvalidArgumentError):
    """No resource type is known under a name; the message lists where was looked.

    Attributes:
        name: Name that no server serves; empty if part of the discovery failed, so that the name may be served.
    """

    def __init__(self, message: str = "", *, name: str = "") -> None:
        """Keep the name."""
        super().__init__(message)
        self.name = name


class MalformedObjectError(InvalidArgumentError):
    """Something that should be a Kubernetes object is not one: no JSON, no metadata, or no name.

    Raised for objects from the caller and for objects from a server. The message names the place, never the data.

    Attributes:
        path: Where in the object, if one value in it is what JSON cannot say; else empty.
        given: Whether the object was given to be written, so that the caller has to change it.
    """

    def __init__(self, message: str = "", *, path: str = "", given: bool = False) -> None:
        """Keep the path."""
        super().__init__(message)
        self.path = path
        self.given = given


class MissingExtraError(DeltaloopError, ImportError):
    """A feature needs an optional dependency that is not installed.

    Attributes:
        extra: The extra that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        """Say which feature needs which extra."""
        super().__init__(f"{feature} needs the extra {extra!r}: pip install 'deltaloop[{extra}]'")
        self.feature = feature
        self.extra = extra
