"""Locks that a forked child can use, although another thread held them at the fork.

A fork copies memory but no threads: a lock that another thread held stays held in the child for ever, and what it
guarded may be half changed there. So the child begins with new locks, and whoever owns one is told whether it was held;
a queue or a store that was being changed refuses every use from then on, instead of giving wrong answers. Taking a
lock costs what it did: all the work is done at forks, in the child.

Locks of what a child never reaches (a reader's thread, a call that waits for the background loop) need none of this.

Source: the standard library does the same for its own (``logging``, ``threading``: ``os.register_at_fork``).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Final, NoReturn, Protocol, TypeVar, cast, final

from deltaloop._internal.root_error import DeltaloopError


class ForkedError(DeltaloopError, RuntimeError):
    """Something was being changed by another thread when this process was forked, and cannot be trusted in it.

    Make another one in the child; or fork before there are threads, or start processes by ``spawn``.

    Attributes:
        what: What it is.
    """

    def __init__(self, what: str) -> None:
        """Say what was being changed, and what to do."""
        super().__init__(
            f"{what} was being changed by another thread when this process was forked, so it cannot be used in the "
            "child; make another one here, fork before threads use it, or start processes by 'spawn'"
        )
        self.what = what


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def _at_fork_reinit(self) -> None: ...


L = TypeVar("L")

# By lock, the object whose method is called in a child, and the name of the method. Without WeakMethod, whose callbacks
# fail for objects that live until the interpreter ends.
_locks: Final[weakref.WeakKeyDictionary[_Lock, tuple[weakref.ref[object], str] | None]] = weakref.WeakKeyDictionary()


def fork_safe(lock: L, in_child: Callable[[bool], object] | None = None) -> L:
    """Return a lock of ``threading``, which a forked child finds unlocked, whoever held it.

    Args:
        lock: The lock that a forked process is to find free.
        in_child: A method that is called in each forked child, once the lock is free: with True if another thread held
            it at the fork, so that what it guards may be half changed. Its object is not kept alive by this.
    """
    known: _Lock = lock  # type: ignore[assignment]  # every lock of threading has it; the standard library uses it so
    if in_child is None:
        _locks[known] = None
    else:
        method = cast("MethodType", in_child)
        _locks[known] = weakref.ref(method.__self__), method.__name__
    return lock


@final
class Torn:
    """Stands in for what was half changed: whatever is done with it raises."""

    __slots__ = ("_error",)

    def __init__(self, what: str) -> None:
        """Say what it was."""
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
        # A re-entrant lock of the forking thread itself is still its own, and what it guards is as that thread left it.
        held = not lock.acquire(blocking=False)
        if held:
            lock._at_fork_reinit()  # noqa: SLF001 - the one way to free a lock of a thread that is gone
        else:
            lock.release()
        owner = None if hook is None else hook[0]()
        if hook is not None and owner is not None:
            getattr(owner, hook[1])(held)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_begin_anew)
