"""Attribution of events to the program's own writes.

The events of own writes are labeled and never dropped. Labels are computed when a reconcile begins, because an event
can arrive before the response to the write.

An event is an *echo* for a key if reconciles of the key wrote all versions between the two that it shows. The oldest
tenth of the writes is forgotten at once, and its events are then not labeled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, final

import msgspec
from msgspec.structs import replace

from deltaloop.api.references import Trigger

LIMIT: Final = 10_000
_DELETED: Final = ""
_CHANGES: Final = ("add", "update", "delete", "delete-missed")
"""Verbs of events that a write causes. A resync or a first list shows an object that already existed."""


class _Write(msgspec.Struct, frozen=True, gc=False):
    controller: str
    number: int
    key: str
    base: str | None


@final
class Attribution:
    def __init__(self) -> None:
        """Create an empty record for at most ``LIMIT`` writes."""
        self._writers: dict[tuple[str, str], _Write] = {}
        self.range_of: Callable[[str], str] | None = None  # in a sharded program

    def __len__(self) -> int:
        return len(self._writers)

    def wrote(
        self, uid: str, version: str, controller: str, number: int, key: str = "", base: str | None = None
    ) -> None:
        """Record that a reconcile of a controller produced a version of an object.

        ``base`` is the version before the write: empty for a new object, None if unknown.
        """
        if not uid:
            return
        self._writers[uid, version] = _Write(controller, number, key, None if base == version else base)
        if len(self._writers) > LIMIT:  # forget many at once: the search passes all places of forgotten ones
            for oldest in [*islice(self._writers, LIMIT // 10)]:
                del self._writers[oldest]

    def deleted(self, uid: str, controller: str, number: int, key: str = "") -> None:
        self.wrote(uid, _DELETED, controller, number, key)

    def is_echo(self, trigger: Trigger, *, controller: str, key: str, since: int) -> bool:
        """Return whether reconciles of a key, from number ``since`` on, caused all changes of a trigger."""
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

    def labelled(self, triggers: Iterable[object], controller: str) -> tuple[Trigger, ...]:
        """Set the ``origin`` of triggers from own writes, for example ``self, reconcile 41`` or ``NAME, reconcile 7``.

        Other triggers stay unchanged, and objects that are not a ``Trigger`` are omitted.
        """
        writers = self._writers
        found: tuple[Trigger, ...] = ()
        for trigger in triggers:
            if type(trigger) is not Trigger:
                continue
            about = trigger.reference if writers else None
            if about is not None and (write := (about.uid, trigger.new_resource_version)) in writers:
                by = writers[write]
                who = "self" if by.controller == controller else by.controller
                origin = f"{who}, reconcile {by.number}"
                if self.range_of is not None and (name := self.range_of(by.key)):
                    origin += f", range {name}"
                trigger = replace(trigger, origin=origin)  # noqa: PLW2901
            found += (trigger,)
        return found
