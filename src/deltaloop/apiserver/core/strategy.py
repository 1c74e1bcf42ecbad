"""What a kind does with its objects beyond what all kinds have in common, as one record.

``kinds`` has a module for each built-in kind with anything of its own, which exports one; custom resources have
another. What the server serves carries its strategy, so that nothing else asks which kind it is. Every function is
plain: it changes the object that it is given, or returns what it finds. The steps of a write, in their order:

    default          an object as sent gets what its author left out
    keep             an update gets what the server has added before, where it does not say it
    prepare          what the server sets in a new or a changed object that counts as written by its author
    validate         what is wrong with it: always, when it is new, when it changes, in its status
    warn             what its author is to be warned about
    finish           what the server adds last, which has no field manager; it may ask the store

Source: apiserver pkg/registry/rest ``RESTCreateStrategy``, ``RESTUpdateStrategy``, ``TableConvertor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from deltaloop.api.resource import Resource
from deltaloop.schemas.faults import FieldError

Fields: TypeAlias = dict[str, Any]


class Listed(Protocol):
    """Some objects."""

    @property
    def items(self) -> Sequence[Resource]:
        """The objects."""
        ...


class Stored(Protocol):
    """What a strategy may read of the store."""

    def get(self, resource: str, key: str) -> Resource | None:
        """Return an object, or None."""
        ...

    def list(self, resource: str) -> Listed:
        """Return a resource's objects."""
        ...


class Given(Protocol):
    """What a write takes from outside (``Stamp``)."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    @property
    def time(self) -> str:
        """The same, as objects have it."""
        ...

    @property
    def chance(self) -> float:
        """A number in [0, 1)."""
        ...


def _nothing(*_: object) -> None:
    return


def _none(*_: object) -> tuple[()]:
    return ()


def _no_cells(_obj: Mapping[str, Any], _now: float) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One kind's strategy; a kind says only what it has of its own.

    Attributes:
        default: Completes an object as sent.
        keep: Carries over, from the object as it is into the one that is to be, what the server has added.
        prepare_new: Sets what counts as written by a new object's author.
        validate: Finds what is wrong with an object, new or changed as a whole.
        validate_new: Finds what a new object may not have.
        validate_update: Finds what a change of the first object into the second may not change.
        validate_status: Finds what is wrong with an object whose status was written.
        warn_new: Finds what the author of a new object is to be warned about.
        warn_update: Finds what the author of a change of the first object into the second is to be warned about.
        finish_new: Adds what the server adds to a new object, and finds what it asks for and cannot have.
        finish_update: The same for a change of the first object into the second.
        cells: Computes the cells of an object by the names of its columns, but for those that all kinds have alike.
    """

    default: Callable[[Fields], None] = _nothing
    keep: Callable[[Fields, Fields], None] = _nothing
    prepare_new: Callable[[Fields], None] = _nothing
    validate: Callable[[Fields], Iterable[FieldError]] = _none
    validate_new: Callable[[Fields], Iterable[FieldError]] = _none
    validate_update: Callable[[Fields, Fields], Iterable[FieldError]] = _none
    validate_status: Callable[[Fields], Iterable[FieldError]] = _none
    warn_new: Callable[[Fields], Iterable[str]] = _none
    warn_update: Callable[[Fields, Fields], Iterable[str]] = _none
    finish_new: Callable[[Fields, Stored, Given], Iterable[FieldError]] = _none
    finish_update: Callable[[Fields, Fields, Stored, Given], Iterable[FieldError]] = _none
    cells: Callable[[Mapping[str, Any], float], dict[str, Any]] = _no_cells


PLAIN: Final = Strategy()
