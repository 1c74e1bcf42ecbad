"""Which keys in line a standby gives up: those of objects that are gone, but for the latest.

Nobody empties the queue of a process that does not lead. It has a key for each object that there is, which is what a
successor has to look at; without this it would also have one for each object that there ever was.

A key is given up if its object is not in the cache and one of its triggers says that the key names such an object: an
event of the object itself, or of one that it owned. What a source or a mapping of the program's own asks for stays.
The ``KEPT`` last ones stay, too: a leader that died may not have seen those deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from deltaloop.api.references import Trigger

K = TypeVar("K")

KEPT: Final = 200
_OF_OBJECTS: Final = frozenset({"informer", "owner"})


def names_gone_object(key: str, triggers: Sequence[object], is_cached: Callable[[str], bool]) -> bool:
    """Tell whether a key is that of an object which was there and is not any more."""
    named = any(isinstance(trigger, Trigger) and trigger.source in _OF_OBJECTS for trigger in triggers)
    return named and not is_cached(key)


def given_up(gone: Sequence[K], *, kept: int = KEPT) -> Sequence[K]:
    """Return which of the keys of objects that are gone, the oldest first, are given up."""
    return gone[: max(0, len(gone) - kept)]
