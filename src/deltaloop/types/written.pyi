"""Types accepted instead of a typed dict in writes, and protocols by which type checkers select them."""

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, final

import msgspec

T_co = TypeVar("T_co", covariant=True)
W_contra = TypeVar("W_contra", contravariant=True)

@final
class NotAFieldOfThisKind:
    """Nothing is of this class: a checker that names it means that a dict has a field that its kind has not.

    Or a field of another type. ``Any`` can be assigned to it, so that a ``dict[str, Any]`` is taken for what it may be.
    """

AnyFields: TypeAlias = Mapping[str, NotAFieldOfThisKind]
Texts: TypeAlias = list[str] | tuple[str, ...]

class DataclassObject(Protocol):
    """An object of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

Written: TypeAlias = msgspec.Struct | DataclassObject | AnyFields
"""What is taken for any kind: a ``Resource`` or another typed object, and mappings to anything."""

class KindOf(Protocol[T_co, W_contra]):
    """A resource type whose objects come as ``T`` and may be written as ``W``: any ``ResourceType[T]`` is one."""

    def _accepts(self, obj: W_contra) -> T_co: ...
