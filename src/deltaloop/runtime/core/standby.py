"""Which keys in line a standby gives up: those of objects that are gone, but for the latest.

Nobody empties the queue of a process that does not lead. It has a key for each object that there is, which is what a
successor has to look at; without this it would also have one for each object that there ever was.

A key is given up if its object is not in the cache and one of its triggers says that the key names such an object: an
event of the object itself, or of one that it owned. What a source or a mapping of the program's own asks for stays. The
latest stay, too: a leader that died may not have seen those deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltaloop.api.references import Trigger

SPARE: Final = 200
_OF_OBJECTS: Final = frozenset({"informer", "owner"})


def names_gone_object(key: str, triggers: Sequence[object], is_cached: Callable[[str], bool]) -> bool:
    """Tell whether a key is that of an object which was there and is not any more."""
    named = any(isinstance(trigger, Trigger) and trigger.source in _OF_OBJECTS for trigger in triggers)
    return named and not is_cached(key)


def surplus(queued: int, cached: int) -> int:
    """Return how many keys of objects that are gone are given up, the oldest first.

    None, until more wait than twice the spare beyond those of cached objects; then what is beyond the spare itself. The
    spare is a tenth of the cache, ``SPARE`` at least: a large queue is not gone through for a few keys.

    Args:
        queued: How many keys wait.
        cached: How many objects there are.
    """
    spare = max(SPARE, cached // 10)
    return queued - cached - spare if queued > cached + 2 * spare else 0
