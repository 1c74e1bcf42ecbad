"""Selection of queued keys that a standby drops because their objects are gone.

A key is dropped if its object is not cached and a trigger shows that the key names an object: an event of the object or
of an object that it owned. The latest keys also stay, because a crashed leader may not have seen those deletions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltaloop.api.references import Trigger

SPARE: Final = 200
_OF_OBJECTS: Final = frozenset({"informer", "owner"})


def names_gone_object(key: str, triggers: Sequence[object], is_cached: Callable[[str], bool]) -> bool:
    named = any(isinstance(trigger, Trigger) and trigger.source in _OF_OBJECTS for trigger in triggers)
    return named and not is_cached(key)


def surplus(queued: int, cached: int) -> int:
    """Return the number of keys of deleted objects to drop, oldest first.

    The spare is a tenth of the cache, but at least ``SPARE``. Keys beyond the spare are dropped only if the queue
    exceeds the cache by more than twice the spare, because scanning a large queue for a few keys is expensive.
    """
    spare = max(SPARE, cached // 10)
    return queued - cached - spare if queued > cached + 2 * spare else 0
