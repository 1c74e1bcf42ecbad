"""Changes of objects and their filters."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from deltaloop.api.resource import Resource


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an object.

    Attributes:
        verb: ``initial``, ``add``, ``update``, ``delete`` or ``delete-missed``.
        old: Object before the change; None if it is new.
        new: Object after the change; None if it is gone.
    """

    verb: str
    old: Resource | None
    new: Resource | None

    @property
    def subject(self) -> Resource | None:
        """Return the present object, or its last state."""
        return self.new if self.new is not None else self.old


class Predicate(ABC):
    """Base class for filters of changes.

    You can subclass it. ``allows`` must be fast and must not change anything.
    """

    __slots__ = ()

    @abstractmethod
    def allows(self, change: Change) -> bool:
        """Return whether a change can trigger a reconcile."""

    def __and__(self, other: Predicate) -> Predicate:
        from deltaloop.runtime.core.predicates import And  # after this module

        return And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        from deltaloop.runtime.core.predicates import Or

        return Or(self, other)

    def __invert__(self) -> Predicate:
        from deltaloop.runtime.core.predicates import Not

        return Not(self)
