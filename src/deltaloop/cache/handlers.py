"""Who is told when an object is added, updated or deleted: the handlers of users.

Source: client-go tools/cache/controller.go (``ResourceEventHandler``, ``ResourceEventHandlerFuncs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import BufferPolicy

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ResourceEventHandler(Protocol[T_contra]):
    """Told about every change of the objects of one informer, in order, one at a time.

    The methods run on the event loop. A plain one must return quickly; one that waits is ``async def``: it holds up
    its own further calls and no other handler's. What a handler raises is logged with its name; that item counts as
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
        """Handle a change.

        ``old is new`` for a resync; different uids mean deleted and made again in between.
        """
        ...

    def on_delete(self, obj: T_contra, *, final_state_known: bool) -> object:
        """Handle a deletion.

        Args:
            obj: The last known state.
            final_state_known: False if the deletion itself was missed, so that ``obj`` may be older than the object's
                end.
        """
        ...


class ReceivedObjectHandler(ResourceEventHandler[Resource], Protocol):
    """A handler of objects as they came, as ``Resource``, also where their kind has a class."""

    @property
    def takes_resources(self) -> bool:
        """True: that says so to the informer."""
        ...


def takes_resources(handler: object) -> bool:
    """Tell whether a handler is one of objects as they came."""
    return getattr(handler, "takes_resources", False) is True


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


@final
class DetailedHandlerFuncs(Generic[T]):
    """As ``HandlerFuncs``, for those who also want to know what else there is to know about an addition or deletion.

    Source: client-go tools/cache/controller.go, ``ResourceEventHandlerDetailedFuncs``.
    """

    __slots__ = ("_on_add", "_on_delete", "_on_update")

    def __init__(
        self,
        *,
        on_add: Callable[[T, bool], object] | None = None,
        on_update: Callable[[T, T], object] | None = None,
        on_delete: Callable[[T, bool], object] | None = None,
    ) -> None:
        """Make a handler.

        Args:
            on_add: Called with the object, and whether it was there when the informer, or this handler, began.
            on_update: Called with the old and the new object.
            on_delete: Called with the last known state, and whether it is the final one: False if the deletion itself
                was missed.
        """
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Call ``on_add``."""
        return self._on_add(obj, is_in_initial_list) if self._on_add is not None else None

    def on_update(self, old: T, new: T) -> object:
        """Call ``on_update``."""
        return self._on_update(old, new) if self._on_update is not None else None

    def on_delete(self, obj: T, *, final_state_known: bool) -> object:
        """Call ``on_delete``."""
        return self._on_delete(obj, final_state_known) if self._on_delete is not None else None

    def __repr__(self) -> str:
        return f"<DetailedHandlerFuncs {handler_name(self)}>"

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """The callables that are there."""
        return tuple(function for function in (self._on_add, self._on_update, self._on_delete) if function is not None)


@final
class FilteringResourceEventHandler(Generic[T]):
    """Tells another handler about the objects that a function lets through, and of nothing else.

    An object that begins to fit is told as an addition (not one of the initial list), one that ceases to fit as a
    deletion whose object is the old state. The function sees each state once or twice and must answer from the object
    alone: the handler keeps no memory of what it let through.

    Source: client-go tools/cache/controller.go, ``FilteringResourceEventHandler``.
    """

    __slots__ = ("_handler", "_lets_through")

    def __init__(self, lets_through: Callable[[T], bool], handler: ResourceEventHandler[T]) -> None:
        """Put a filter before a handler.

        Args:
            lets_through: Whether the handler is to hear of an object in this state.
            handler: Gets the notifications.
        """
        self._lets_through = lets_through
        self._handler = handler

    @property
    def handler(self) -> ResourceEventHandler[T]:
        """The handler behind the filter."""
        return self._handler

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Tell it if it fits."""
        if not self._lets_through(obj):
            return None
        return self._handler.on_add(obj, is_in_initial_list=is_in_initial_list)

    def on_update(self, old: T, new: T) -> object:
        """Tell it as what it is to the handler: an update, an addition, a deletion, or nothing."""
        match self._lets_through(old), self._lets_through(new):
            case True, True:
                return self._handler.on_update(old, new)
            case False, True:
                return self._handler.on_add(new, is_in_initial_list=False)
            case True, False:
                return self._handler.on_delete(old, final_state_known=True)
            case _:
                return None

    def on_delete(self, obj: T, *, final_state_known: bool) -> object:
        """Tell it if it fits."""
        if not self._lets_through(obj):
            return None
        return self._handler.on_delete(obj, final_state_known=final_state_known)

    def __repr__(self) -> str:
        return f"<FilteringResourceEventHandler {handler_name(self)}>"


class HandlerOptions(Options, frozen=True, kw_only=True):
    """How one handler is served.

    Attributes:
        resync_period: Every so many seconds the handler is told all objects again, from the cache; 0 is never, less
            than 1 is 1; None is the informer's own period. An object for which something waits already is left out.
        buffer: How notifications wait while the handler is busy. ``BOUNDED`` stalls the whole informer, cache and
            other handlers included, while the buffer is full: nothing is read from the server until the handler has
            caught up, and a warning names it. Choose it only for handlers that must see every state.
        buffer_size: How many may wait under ``BOUNDED``. What is told at the beginning and by resyncs may go beyond.
    """

    resync_period: float | None = None
    buffer: BufferPolicy = BufferPolicy.UNBOUNDED
    buffer_size: int = 1024

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        check_types(self)
        require_not_negative("HandlerOptions", resync_period=self.resync_period or 0.0)
        require_positive("HandlerOptions", buffer_size=self.buffer_size)


def handler_name(handler: object) -> str:
    """Return a readable name: the class of a handler, or the functions that it is made of."""
    if isinstance(handler, FilteringResourceEventHandler):
        return handler_name(handler.handler)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(handler, HandlerFuncs | DetailedHandlerFuncs):
        names = [_qualified(function) for function in handler.functions]  # pyright: ignore[reportUnknownMemberType]
        return "+".join(dict.fromkeys(names)) or "no functions"
    return f"{type(handler).__module__}.{type(handler).__qualname__}"


def _qualified(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else str(name)
