"""A kind as verbs use it: found out once, and from then on looked up by the very object that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind


@final
class BoundKind:
    """What is known of one kind.

    Attributes:
        given: What names it in a call of a verb; it is kept, so that nothing else gets its ``id``.
        type: The kind as the server serves it.
        untyped: The same kind, whose objects come as they are.
        namespaced: Whether its objects live in a namespace.
        text: Such as ``apps/v1/Deployment``.
        decode: Makes what a verb returns of an object; None if that is the object itself.
    """

    __slots__ = ("decode", "given", "namespaced", "text", "type", "untyped")

    def __init__(self, given: TypedKind[Any] | str, type: ResourceType[Any]) -> None:  # noqa: A002 - what it is
        """Bind ``given`` to the kind that it names."""
        self.given: TypedKind[Any] | str = given
        self.type: ResourceType[Any] = type
        self.untyped: ResourceType[Resource] = untyped(type)
        self.namespaced: bool = type.namespaced
        self.text: str = str(type)
        self.decode: Callable[[Resource], Any] | None = None if type.model in (None, Resource) else decoder(type)
