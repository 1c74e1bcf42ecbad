"""Predicates that filter changes before they trigger a reconcile.

Predicates named ``...Changed`` filter only updates. Combine predicates with ``&``, ``|`` and ``~``, which inverts the
whole result, including new objects.

Source: controller-runtime pkg/predicate.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.list_options import parsed_selector
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource
from deltaloop.runtime.core.changes import Change, Predicate

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector


class _Compares(Predicate):
    """Pass all changes except updates that leave one aspect of the object unchanged."""

    __slots__ = ()

    @abstractmethod
    def aspect(self, obj: Resource) -> Any:
        """Return the value to compare."""

    def allows(self, change: Change) -> bool:
        """Return whether an update changed the aspect; other changes pass."""
        if change.old is None or change.new is None:
            return True
        return bool(self.aspect(change.old) != self.aspect(change.new))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@final
class GenerationChanged(_Compares):
    """Pass updates that change ``metadata.generation``, which status, labels and annotations do not affect.

    Do not use it for kinds without a growing generation, such as ConfigMap, because their updates would never pass.
    """

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the generation."""
        return obj.generation


@final
class ResourceVersionChanged(_Compares):
    """Pass updates with a new resource version, which excludes resyncs."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the resource version."""
        return obj.resource_version


@final
class LabelsChanged(_Compares):
    """Pass updates that change a label."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the labels."""
        return dict(obj.labels)


@final
class AnnotationsChanged(_Compares):
    """Pass updates that change an annotation."""

    __slots__ = ()

    def aspect(self, obj: Resource) -> Any:
        """Return the annotations."""
        return dict(obj.annotations)


@final
class PathChanged(_Compares):
    """Pass updates that change one of the given fields, for example ``PathChanged("spec.replicas")``."""

    __slots__ = ("paths",)

    def __init__(self, *paths: str | Path) -> None:
        """Set the fields.

        Raises:
            InvalidPathError: If a path is invalid.
            ValueError: If there is no path.
        """
        if not paths:
            raise InvalidArgumentError("must contain a path, such as 'spec.replicas'.", argument="PathChanged.paths")
        self.paths: tuple[Path, ...] = tuple(path if isinstance(path, Path) else Path(path) for path in paths)

    def aspect(self, obj: Resource) -> Any:
        """Return the values of the fields."""
        return [path.get(obj) for path in self.paths]

    def __repr__(self) -> str:
        return f"PathChanged({', '.join(repr(path.text) for path in self.paths)})"


@final
class HasLabels(Predicate):
    """Pass changes of objects that match a label selector before or after the change.

    An object that stops matching passes once more, so that its controller can release it.
    """

    __slots__ = ("selector",)

    def __init__(self, selector: str | LabelSelector) -> None:
        """Set the label selector, for example ``app=web,!canary``.

        Raises:
            InvalidSelectorError: If the selector cannot be parsed.
        """
        self.selector: LabelSelector = parsed_selector(selector)

    def allows(self, change: Change) -> bool:
        """Return whether the object matches or matched."""
        return any(self.selector.matches(obj.labels) for obj in (change.old, change.new) if obj is not None)

    def __repr__(self) -> str:
        return f"HasLabels({str(self.selector)!r})"


def _require_plain(name: str, function: object) -> None:
    if inspect.iscoroutinefunction(function):
        raise InvalidArgumentError("must be a plain function, got `async`.", argument=f"{name}.function")


@final
class Where(Predicate):
    """Pass changes of objects for which a function returns True, before or after the change."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Resource], bool]) -> None:
        """Set the function, which is called with the old and the new object.

        Raises:
            InvalidArgumentError: If the function is ``async``, because a coroutine is always true.
        """
        _require_plain("Where", function)
        self.function: Callable[[Resource], bool] = function

    def allows(self, change: Change) -> bool:
        """Return whether the function accepts one of the two objects."""
        return any(self.function(obj) for obj in (change.old, change.new) if obj is not None)

    def __repr__(self) -> str:
        return f"Where({getattr(self.function, '__name__', 'function')})"


@final
class When(Predicate):
    """Pass changes for which a function of the whole ``Change`` returns True."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Change], bool]) -> None:
        """Set the function, which is called with each change.

        Raises:
            InvalidArgumentError: If the function is ``async``, because a coroutine is always true.
        """
        _require_plain("When", function)
        self.function: Callable[[Change], bool] = function

    def allows(self, change: Change) -> bool:
        """Call the function."""
        return self.function(change)

    def __repr__(self) -> str:
        return f"When({getattr(self.function, '__name__', 'function')})"


@final
class And(Predicate):
    """Pass changes that all predicates pass; without predicates, all changes."""

    __slots__ = ("predicates",)

    def __init__(self, *predicates: Predicate) -> None:
        self.predicates: tuple[Predicate, ...] = predicates

    def allows(self, change: Change) -> bool:
        """Evaluate the predicates until one rejects the change."""
        return all(predicate.allows(change) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.predicates))})"


@final
class Or(Predicate):
    """Pass changes that at least one predicate passes; without predicates, none."""

    __slots__ = ("predicates",)

    def __init__(self, *predicates: Predicate) -> None:
        self.predicates: tuple[Predicate, ...] = predicates

    def allows(self, change: Change) -> bool:
        """Evaluate the predicates until one passes the change."""
        return any(predicate.allows(change) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.predicates))})"


@final
class Not(Predicate):
    """Pass changes that a predicate rejects, including new and deleted objects."""

    __slots__ = ("predicate",)

    def __init__(self, predicate: Predicate) -> None:
        self.predicate: Predicate = predicate

    def allows(self, change: Change) -> bool:
        """Return the inverted result."""
        return not self.predicate.allows(change)

    def __repr__(self) -> str:
        return f"~{self.predicate!r}"
