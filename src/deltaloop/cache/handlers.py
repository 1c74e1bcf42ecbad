"""Handlers for added, updated and deleted objects.

Source: client-go tools/cache/controller.go (``ResourceEventHandler``, ``ResourceEventHandlerFuncs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.cache.core.notification_buffer import BufferPolicy

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import ResourceEventHandler

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


def takes_resources(handler: object) -> bool:
    return getattr(handler, "takes_resources", False) is True


class _Functions(Generic[T]):
    __slots__ = ("_on_add", "_on_delete", "_on_update")

    _on_add: Callable[..., object] | None
    _on_update: Callable[[T, T], object] | None
    _on_delete: Callable[..., object] | None

    def on_update(self, old: T, new: T) -> object:
        """Call ``on_update``."""
        return self._on_update(old, new) if self._on_update is not None else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {handler_name(self)}>"

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """Functions of the handler."""
        return tuple(function for function in (self._on_add, self._on_update, self._on_delete) if function is not None)


@final
class HandlerFuncs(_Functions[T]):
    """Handler that consists of plain or async functions.

    All are optional.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        on_add: Callable[[T], object] | None = None,
        on_update: Callable[[T, T], object] | None = None,
        on_delete: Callable[[T], object] | None = None,
    ) -> None:
        """Create a handler.

        Args:
            on_add: Function called with the object.
            on_update: Function called with the old and the new object.
            on_delete: Function called with the last known state.
        """
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Call ``on_add``."""
        del is_in_initial_list
        return self._on_add(obj) if self._on_add is not None else None

    def on_delete(self, obj: T, *, final_state_known: bool) -> object:
        """Call ``on_delete``."""
        del final_state_known
        return self._on_delete(obj) if self._on_delete is not None else None


@final
class DetailedHandlerFuncs(_Functions[T]):
    """Handler like ``HandlerFuncs`` whose functions receive more details.

    Source: client-go tools/cache/controller.go, ``ResourceEventHandlerDetailedFuncs``.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        on_add: Callable[[T, bool], object] | None = None,
        on_update: Callable[[T, T], object] | None = None,
        on_delete: Callable[[T, bool], object] | None = None,
    ) -> None:
        """Create a handler.

        Args:
            on_add: Function called with the object, and whether it existed when the informer or this handler started.
            on_update: Function called with the old and the new object.
            on_delete: Function called with the last known state, and whether it is final. It is not if the deletion was
                missed.
        """
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Call ``on_add``."""
        return self._on_add(obj, is_in_initial_list) if self._on_add is not None else None

    def on_delete(self, obj: T, *, final_state_known: bool) -> object:
        """Call ``on_delete``."""
        return self._on_delete(obj, final_state_known) if self._on_delete is not None else None


@final
class FilteringResourceEventHandler(Generic[T]):
    """Handler that passes only matching objects to another handler.

    An object that starts to match is an addition outside the initial list. An object that stops matching is a deletion
    with its old state. The filter must depend only on the object, because it is called once or twice for each state and
    its results are not stored.

    Source: client-go tools/cache/controller.go, ``FilteringResourceEventHandler``.
    """

    __slots__ = ("_handler", "_lets_through")

    def __init__(self, lets_through: Callable[[T], bool], handler: ResourceEventHandler[T]) -> None:
        """Create a filter for a handler.

        Args:
            lets_through: Function that returns whether an object matches.
            handler: Handler for matching objects.
        """
        self._lets_through = lets_through
        self._handler = handler

    @property
    def handler(self) -> ResourceEventHandler[T]:
        """Handler behind the filter."""
        return self._handler

    def on_add(self, obj: T, *, is_in_initial_list: bool) -> object:
        """Pass the object on if it matches."""
        if not self._lets_through(obj):
            return None
        return self._handler.on_add(obj, is_in_initial_list=is_in_initial_list)

    def on_update(self, old: T, new: T) -> object:
        """Pass the change on as an update, addition or deletion, if one of the states matches."""
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
        """Pass the object on if it matches."""
        if not self._lets_through(obj):
            return None
        return self._handler.on_delete(obj, final_state_known=final_state_known)

    def __repr__(self) -> str:
        return f"<FilteringResourceEventHandler {handler_name(self)}>"


class HandlerOptions(Options, frozen=True, kw_only=True):
    """Options of a handler.

    Attributes:
        resync_period: Seconds between resyncs of all cached objects. 0 disables resyncs; the minimum is 1. None means
            the informer's period. Objects with pending notifications are skipped.
        buffer: Policy for notifications while the handler is busy. ``BOUNDED`` stops the whole informer, including its
            cache and other handlers, while the buffer is full, and logs a warning. Use it only for handlers that must
            see each state.
        buffer_size: Size of a ``BOUNDED`` buffer. The initial objects and resyncs can exceed it.
    """

    resync_period: float | None = None
    buffer: BufferPolicy = BufferPolicy.UNBOUNDED
    buffer_size: int = 1024

    def __post_init__(self) -> None:
        check_types(self)
        require_not_negative("HandlerOptions", resync_period=self.resync_period or 0.0)
        require_positive("HandlerOptions", buffer_size=self.buffer_size)


def handler_name(handler: object) -> str:
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
