"""Predicates: which changes are worth a reconcile, as pure functions of the old and the new object.

Those named ``...Changed`` look at updates only: what is new or gone always passes, because there is nothing to compare
with. Combine them with ``&``, ``|`` and ``~``; ``~`` turns everything around, also what it says of new objects.

A path predicate decodes the fields that it names and no others; the rest of the object stays bytes.

Source: controller-runtime pkg/predicate.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import LabelSelector


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an object.

    Attributes:
        verb: ``initial``, ``add``, ``update``, ``delete`` or ``delete-missed``.
        old: The object before; None if it is new.
        new: The object after; None if it is gone.
    """

    verb: str
    old: Resource | None
    new: Resource | None

    @property
    def subject(self) -> Resource | None:
        """The object as it is now, or as it was last."""
        return self.new if self.new is not None else self.old


class Predicate(ABC):
    """Says which changes pass.

    Made to be a base class; ``allows`` must be quick and change nothing.
    """

    __slots__ = ()

    @abstractmethod
    def allows(self, change: Change) -> bool:
        """Tell whether a change is worth a reconcile."""

    def __and__(self, other: Predicate) -> Predicate:
        return And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return Or(self, other)

    def __invert__(self) -> Predicate:
        return Not(self)


class _Compares(Predicate):
    """Passes everything but updates that leave one aspect of the object as it was."""

    __slots__ = ()

    @abstractmethod
    def aspect(self, obj: Resource) -> Any:
        """Return what is compared."""

    def allows(self, change: Change) -> bool:
        """Tell whether an update changed the aspect; what is no update passes."""
        if change.old is None or change.new is None:
            return True
        return bool(self.aspect(change.old) != self.aspect(change.new))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@final
class GenerationChanged(_Compares):
    """Passes updates of what users ask for (``metadata.generation``), not of status, labels or annotations.

    Not for kinds whose generation does not grow, such as ConfigMap: their updates would never pass.
    """

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the generation."""
        return obj.generation


@final
class ResourceVersionChanged(_Compares):
    """Passes every real update, and no resync."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the resource version."""
        return obj.resource_version


@final
class LabelsChanged(_Compares):
    """Passes updates that change a label."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the labels."""
        return dict(obj.labels)


@final
class AnnotationsChanged(_Compares):
    """Passes updates that change an annotation."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the annotations."""
        return dict(obj.annotations)


@final
class PathChanged(_Compares):
    """Passes updates that change one of the given fields, such as ``PathChanged("spec.replicas")``."""

    __slots__ = ("paths",)

    def __init__(self, *paths: str | Path) -> None:
        """Name the fields.

        Raises:
            InvalidPathError: If a path cannot be read.
            ValueError: If there is none.
        """
        if not paths:
            raise ValueError("PathChanged needs a path, such as 'spec.replicas'")
        self.paths: tuple[Path, ...] = tuple(path if isinstance(path, Path) else Path(path) for path in paths)

    def aspect(self, obj: Resource) -> Any:
        """Return the fields' values."""
        return [path.get(obj) for path in self.paths]

    def __repr__(self) -> str:
        return f"PathChanged({', '.join(repr(path.text) for path in self.paths)})"


@final
class HasLabels(Predicate):
    """Passes changes of objects that a label selector selects, before the change or after it.

    An object that leaves the selection passes once more, so that its controller can let go of it.
    """

    __slots__ = ("selector",)

    def __init__(self, selector: str | LabelSelector) -> None:
        """Select, such as by ``app=web,!canary``.

        Raises:
            InvalidSelectorError: If the selector cannot be parsed.
        """
        self.selector: LabelSelector = LabelSelector.parse(selector) if isinstance(selector, str) else selector

    def allows(self, change: Change) -> bool:
        """Tell whether the object is, or was, selected."""
        return any(self.selector.matches(obj.labels) for obj in (change.old, change.new) if obj is not None)

    def __repr__(self) -> str:
        return f"HasLabels({str(self.selector)!r})"


def _require_plain(name: str, function: object) -> None:
    if inspect.iscoroutinefunction(function):
        raise InvalidArgumentError(f"{name}.function is `async`: make it a plain function of what it is given")


@final
class Where(Predicate):
    """Passes changes of objects for which a function holds, before the change or after it."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Resource], bool]) -> None:
        """Ask ``function`` about the old and the new object.

        Raises:
            InvalidArgumentError: If it is ``async``: what it returns would always be true.
        """
        _require_plain("Where", function)
        self.function: Callable[[Resource], bool] = function

    def allows(self, change: Change) -> bool:
        """Tell whether the function holds for one of the two."""
        return any(self.function(obj) for obj in (change.old, change.new) if obj is not None)

    def __repr__(self) -> str:
        return f"Where({getattr(self.function, '__name__', 'function')})"


@final
class When(Predicate):
    """Passes the changes for which a function holds; it gets the whole ``Change``."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Change], bool]) -> None:
        """Ask ``function`` about each change.

        Raises:
            InvalidArgumentError: If it is ``async``: what it returns would always be true.
        """
        _require_plain("When", function)
        self.function: Callable[[Change], bool] = function

    def allows(self, change: Change) -> bool:
        """Ask the function."""
        return self.function(change)

    def __repr__(self) -> str:
        return f"When({getattr(self.function, '__name__', 'function')})"


@final
class And(Predicate):
    """Passes what all of its predicates pass; without any, everything."""

    __slots__ = ("predicates",)

    def __init__(self, *predicates: Predicate) -> None:
        """Combine."""
        self.predicates: tuple[Predicate, ...] = predicates

    def allows(self, change: Change) -> bool:
        """Ask one after the other, until one refuses."""
        return all(predicate.allows(change) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.predicates))})"


@final
class Or(Predicate):
    """Passes what at least one of its predicates passes; without any, nothing."""

    __slots__ = ("predicates",)

    def __init__(self, *predicates: Predicate) -> None:
        """Combine."""
        self.predicates: tuple[Predicate, ...] = predicates

    def allows(self, change: Change) -> bool:
        """Ask one after the other, until one agrees."""
        return any(predicate.allows(change) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.predicates))})"


@final
class Not(Predicate):
    """Passes what its predicate does not pass, new and deleted objects included."""

    __slots__ = ("predicate",)

    def __init__(self, predicate: Predicate) -> None:
        """Turn ``predicate`` around."""
        self.predicate: Predicate = predicate

    def allows(self, change: Change) -> bool:
        """Ask, and say the opposite."""
        return not self.predicate.allows(change)

    def __repr__(self) -> str:
        return f"~{self.predicate!r}"
