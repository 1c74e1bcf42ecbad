"""Who made a change that comes back as an event: reconciles of this very program are recognised by what they wrote.

A write gives an object a version that nobody else can give it, so ``(uid, version)`` names the write; a deletion is
named by the uid alone. The events of own writes are labelled and never dropped: an echo may be merged with what
somebody else did, and whoever swallows the one loses the other.

The label is looked up when a reconcile begins, not when its event comes: the event can be faster than the answer to the
write, and until the writing reconcile has ended both are here.

Bounded: the oldest writes are forgotten first; their events are then labelled as anybody's.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from deltaloop.api.references import Trigger

LIMIT: Final = 10_000
_DELETED: Final = ""


@final
class Attribution:
    """The latest writes of one program."""

    def __init__(self) -> None:
        """Begin without writes; at most ``LIMIT`` are kept."""
        self._writers: dict[tuple[str, str], tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def wrote(self, uid: str, version: str, *, controller: str, number: int) -> None:
        """Remember that a reconcile of a controller gave an object a version."""
        self._remember((uid, version), (controller, number))

    def deleted(self, uid: str, *, controller: str, number: int) -> None:
        """Remember that a reconcile of a controller deleted an object."""
        self._remember((uid, _DELETED), (controller, number))

    def writer(self, uid: str, version: str) -> tuple[str, int] | None:
        """Return the controller and the number of the reconcile that wrote a version; None if it was not this program.

        Args:
            uid: Of the object.
            version: The version that it got; empty for its deletion.
        """
        return self._writers.get((uid, version))

    def label(self, trigger: Trigger, *, controller: str) -> Trigger:
        """Return a trigger with its ``origin``: ``self, reconcile 41``, or ``NAME, reconcile 7``; else as it is."""
        if trigger.reference is None:
            return trigger
        found = self.writer(trigger.reference.uid, trigger.new_resource_version)
        if found is None:
            return trigger
        who = "self" if found[0] == controller else found[0]
        return msgspec.structs.replace(trigger, origin=f"{who}, reconcile {found[1]}")

    def _remember(self, write: tuple[str, str], by: tuple[str, int]) -> None:
        if not write[0]:
            return
        self._writers[write] = by
        while len(self._writers) > LIMIT:
            del self._writers[next(iter(self._writers))]
