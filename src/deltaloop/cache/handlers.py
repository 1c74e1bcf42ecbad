"""Who is told when an object is added, updated or deleted: the handlers of users.

Source: client-go tools/cache/controller.go (``ResourceEventHandler``, ``ResourceEventHandlerFuncs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, final

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ResourceEventHandler(Protocol[T_contra]):
    """Told about every change of the objects of one informer, in order, one at a time.

    The methods run on the event loop. A plain one must return quickly; one that waits is ``async def``: it holds up
    its own further calls and nobody else's. What a handler raises is logged with its name; that item counts as
    delivered.
    """

    def on_add(self, obj: T_contra, *, is_in_initial_list: bool) -> object:
        """Handle an object that is new here; it may have existed for long.

        Args:
            obj: The object. Reading only.
            is_in_initial_list: Whether it was there when the informer, or this handler, began.
        """
        ...

    def on_update(self, old: T_contra, new: T_contra) -> object:
        """Handle a change. ``old is new`` for a resync; different uids mean deleted and made again in between."""
        ...

    def on_delete(self, obj: T_contra, *, final_state_known: bool) -> object:
        """Handle a deletion.

        Args:
            obj: The last known state.
            final_state_known: False if the deletion itself was missed, so that ``obj`` may be older than the object's
                end.
        """
        ...


@final
class HandlerFuncs(Generic[T]):
    """A handler made of plain callables, or ``async def`` ones; those left out are not called."""

    __slots__ = ("_on_add", "_on_delete", "_on_update")

    def __init__(
        self,
        *,
        on_add: Callable[[T], object] | None = None,
        on_update: Callable[[T, T], object] | None = None,
        on_delete: Callable[[T], object] | None = None,
    ) -> None:
        """Make a handler.

        Args:
            on_add: Called with the object.
            on_update: Called with the old and the new object.
            on_delete: Called with the last known state.
        """
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Call ``on_add``."""
        del is_in_initial_list
        return self._on_add(obj) if self._on_add is not None else None

    def on_update(self, old: T, new: T) -> object:
        """Call ``on_update``."""
        return self._on_update(old, new) if self._on_update is not None else None

    def on_delete(self, obj: T, *, final_state_known: bool) -> object:
        """Call ``on_delete``."""
        del final_state_known
        return self._on_delete(obj) if self._on_delete is not None else None

    def __repr__(self) -> str:
        return f"<HandlerFuncs {handler_name(self)}>"

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """The callables that are there."""
        return tuple(function for function in (self._on_add, self._on_update, self._on_delete) if function is not None)


def handler_name(handler: object) -> str:
    """Return a readable name: the class of a handler, or the functions that it is made of."""
    if isinstance(handler, HandlerFuncs):
        names = [_qualified(function) for function in handler.functions]  # pyright: ignore[reportUnknownMemberType]
        return "+".join(dict.fromkeys(names)) or "no functions"
    return f"{type(handler).__module__}.{type(handler).__qualname__}"


def _qualified(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else str(name)
