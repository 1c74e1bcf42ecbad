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

from collections.abc import Iterable
from typing import Final, final

import msgspec

from deltaloop.api.references import Trigger

LIMIT: Final = 10_000
_DELETED: Final = ""
_CHANGES: Final = ("add", "update", "delete", "delete-missed")
"""Verbs of events that a write causes; a resync or a first list shows an object that was there before."""


class _Write(msgspec.Struct, frozen=True, gc=False):
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
        if not uid:
            return
        self._writers[uid, version] = _Write(controller, number, key, None if base == version else base)
        if len(self._writers) > LIMIT:
            del self._writers[next(iter(self._writers))]

    def deleted(self, uid: str, *, controller: str, number: int, key: str = "") -> None:
        """Remember that a reconcile of a controller deleted an object."""
        self.wrote(uid, _DELETED, controller=controller, number=number, key=key)

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

    def labelled(self, triggers: Iterable[object], *, controller: str) -> tuple[Trigger, ...]:
        """Return triggers with the ``origin`` of own writes: ``self, reconcile 41``, or ``NAME, reconcile 7``.

        Others are as they were; what is no ``Trigger`` is left out.
        """
        writers, found = self._writers, list[Trigger]()
        for trigger in triggers:
            if type(trigger) is not Trigger:
                continue
            about = trigger.reference
            write = ("", "") if about is None else (about.uid, trigger.new_resource_version)
            if write in writers:
                by = writers[write]
                who = "self" if by.controller == controller else by.controller
                trigger = msgspec.structs.replace(trigger, origin=f"{who}, reconcile {by.number}")  # noqa: PLW2901
            found.append(trigger)
        return tuple(found)
