"""Locks that stay usable in a forked process.

A fork copies memory but no threads, so a lock that another thread held would stay locked in the child, and its data can
be inconsistent.

Source: the standard library does the same for ``logging`` and ``threading`` (``os.register_at_fork``).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar, cast, final

from deltaloop._internal.root_error import DeltaloopError


class ForkedError(DeltaloopError, RuntimeError):
    """Another thread was changing an object when this process was forked, so the object cannot be used.

    Create a new object in the child, fork before you start threads, or start processes with ``spawn``.

    Attributes:
        what: Description of the object.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is not usable after the fork, because another thread was changing it. Create a new object in the "
            "child, fork before you start threads, or start processes with 'spawn'."
        )
        self.what = what


if TYPE_CHECKING:

    class _Lock(Protocol):
        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
        def release(self) -> None: ...
        def _at_fork_reinit(self) -> None: ...


L = TypeVar("L")

# For each lock, the object and the name of the method to call in a child. WeakMethod is not used, because its callbacks
# fail for objects that live until the interpreter exits.
_locks: Final[weakref.WeakKeyDictionary[_Lock, tuple[weakref.ref[object], str] | None]] = weakref.WeakKeyDictionary()


def fork_safe(lock: L, in_child: Callable[[bool], object] | None = None) -> L:
    """Register and return a lock of ``threading``, so that a forked process finds it unlocked.

    ``in_child`` is called with True if another thread held the lock; deltaloop keeps a weak reference to its object.
    """
    known: _Lock = lock  # type: ignore[assignment]  # all locks of threading have _at_fork_reinit
    if in_child is None:
        _locks[known] = None
    else:
        method = cast("MethodType", in_child)
        _locks[known] = weakref.ref(method.__self__), method.__name__
    return lock


@final
class Torn:
    """Placeholder for inconsistent data that raises ``ForkedError`` on every use."""

    __slots__ = ("_error",)

    def __init__(self, what: str) -> None:
        self._error = ForkedError(what)

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error

    def __len__(self) -> int:
        raise self._error

    def __iter__(self) -> NoReturn:
        raise self._error

    def __contains__(self, item: object) -> bool:
        raise self._error


def _begin_anew() -> None:
    for lock, hook in list(_locks.items()):
        # The forking thread still owns its own reentrant locks, and their data is consistent.
        held = not lock.acquire(blocking=False)
        if held:
            lock._at_fork_reinit()  # noqa: SLF001 - the only way to release a lock of a missing thread
        else:
            lock.release()
        owner = None if hook is None else hook[0]()
        if hook is not None and owner is not None:
            getattr(owner, hook[1])(held)


if hasattr(os, "register_at_fork"):  # missing on Windows
    os.register_at_fork(after_in_child=_begin_anew)
