"""Who made a change that comes back as an event: reconciles of this very program are recognised by what they wrote.

A write gives an object a version that nobody else can give it, so ``(uid, version)`` names the write; a deletion is
named by the uid alone. The events of own writes are labelled and never dropped: an echo may be merged with what
somebody else did, and whoever swallows the one loses the other.

The label is looked up when a reconcile begins, not when its event comes: the event can be faster than the answer to the
write, and until the writing reconcile has ended both are here.

An event is an *echo* for a key if runs of the key wrote everything between the two versions that the event shows. After
a new list, one event may stand for several writes; so the versions are followed back from write to write.

Bounded: the oldest writes are forgotten first; their events are then labelled as anybody's.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

import msgspec

from deltaloop.api.references import Trigger

LIMIT: Final = 10_000
_DELETED: Final = ""
_CHANGES: Final = ("add", "update", "delete", "delete-missed")
"""Verbs of events that a write causes; a resync or a first list shows an object that was there before."""


class _Write(NamedTuple):
    controller: str
    number: int
    key: str
    base: str | None


@final
class Attribution:
    """The latest writes of one program."""

    def __init__(self) -> None:
        """Begin without writes; at most ``LIMIT`` are kept."""
        self._writers: dict[tuple[str, str], _Write] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def wrote(
        self, uid: str, version: str, *, controller: str, number: int, key: str = "", base: str | None = None
    ) -> None:
        """Remember that a reconcile of a controller gave an object a version.

        Args:
            uid: UID of the object.
            version: The version that it got.
            controller: Name of the controller.
            number: The reconcile's number.
            key: Key that was reconciled.
            base: The version before the write; empty if the write created the object, None if it is unknown.
        """
        self._remember((uid, version), _Write(controller, number, key, None if base == version else base))

    def deleted(self, uid: str, *, controller: str, number: int, key: str = "") -> None:
        """Remember that a reconcile of a controller deleted an object."""
        self._remember((uid, _DELETED), _Write(controller, number, key, None))

    def writer(self, uid: str, version: str) -> tuple[str, int] | None:
        """Return the controller and the number of the reconcile that wrote a version; None if it was not this program.

        Args:
            uid: Of the object.
            version: The version that it got; empty for its deletion.
        """
        found = self._writers.get((uid, version))
        return None if found is None else (found.controller, found.number)

    def is_echo(self, trigger: Trigger, *, controller: str, key: str, since: int) -> bool:
        """Tell whether runs of a key caused all that a trigger shows.

        Args:
            trigger: The trigger.
            controller: Name of the controller.
            key: Key of the runs.
            since: Number of the first of these runs.
        """
        if trigger.reference is None or trigger.verb not in _CHANGES:
            return False
        uid, version = trigger.reference.uid, trigger.new_resource_version
        for _ in range(LIMIT):
            found = self._writers.get((uid, version))
            if found is None or (found.controller, found.key) != (controller, key) or found.number < since:
                return False
            if version == _DELETED or found.base is None or found.base == trigger.old_resource_version:
                return True
            version = found.base
            if not version:
                return False
        return False

    def label(self, trigger: Trigger, *, controller: str) -> Trigger:
        """Return a trigger with its ``origin``: ``self, reconcile 41``, or ``NAME, reconcile 7``; else as it is."""
        if trigger.reference is None:
            return trigger
        found = self.writer(trigger.reference.uid, trigger.new_resource_version)
        if found is None:
            return trigger
        who = "self" if found[0] == controller else found[0]
        return msgspec.structs.replace(trigger, origin=f"{who}, reconcile {found[1]}")

    def _remember(self, write: tuple[str, str], by: _Write) -> None:
        if not write[0]:
            return
        self._writers[write] = by
        while len(self._writers) > LIMIT:
            del self._writers[next(iter(self._writers))]
