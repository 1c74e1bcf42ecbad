"""The last reconciles of each object: why each ran, what it wrote, how it ended. For ``deltaloop why``.

Bounded twice: ``LIMIT`` keys, those that have not run for longest forgotten first, and ``EACH`` reconciles of a key.
What is told has no data of objects in it: names, versions, times, and the paths of fields that changed. Few ask for
these paths, and every write would pay for them; so the objects before and after a write are kept, the latest
``MOST_BYTES`` of them, and compared when somebody asks.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from deltaloop.api.references import Trigger
from deltaloop.runtime.core.own_writes import OwnWrite

LIMIT: Final = 1000
EACH: Final = 8
MOST_ANSWERS: Final = 50
MOST_BYTES: Final = 2 * 1024 * 1024
_OVERHEAD: Final = 1024  # of an object beside its JSON


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """A reconcile that has ended.

    Attributes:
        controller: Name of the controller that ran.
        kind: The kind that the controller reconciles: ``apps/v1/Deployment``.
        key: Of the object that was reconciled.
        number: Its number in its controller.
        ended_at: Seconds on the monotonic clock.
        seconds: How long it took.
        attempt: Which try it was.
        result: How it ended, as the metric has it.
        error: Type of what it raised; empty if nothing. Never its text, which may hold data.
        triggers: Why it ran.
        triggers_dropped: How many triggers there were beyond those kept.
        writes: What it wrote.
        writes_dropped: How many writes there were beyond those kept.
        cleanup: Whether it was a clean-up of an object that is being deleted.
    """

    controller: str
    kind: str
    key: str
    number: int
    ended_at: float
    seconds: float
    attempt: int
    result: str
    error: str
    triggers: tuple[Trigger, ...]
    triggers_dropped: int
    writes: tuple[OwnWrite, ...]
    writes_dropped: int
    cleanup: bool = False

    def to_dict(self, now: float) -> dict[str, Any]:
        """Return it as JSON has it; times count back from ``now``."""
        return {
            "controller": self.controller,
            "key": self.key,
            "reconcile": self.number,
            "secondsAgo": round(max(0.0, now - self.ended_at), 3),
            "seconds": round(self.seconds, 6),
            "attempt": self.attempt,
            "cleanup": self.cleanup,
            "result": self.result,
            "error": self.error,
            "triggers": [str(trigger) for trigger in self.triggers],
            "triggersDropped": self.triggers_dropped,
            "writes": [
                {
                    "verb": write.verb,
                    "kind": write.kind,
                    "key": write.key,
                    "subresource": write.subresource,
                    "version": write.version if write.effective else "",
                    "paths": None if (paths := write.paths) is None else [*paths],
                }
                for write in self.writes
            ],
            "writesDropped": self.writes_dropped,
        }


class History:
    """The last reconciles of one program."""

    def __init__(self) -> None:
        """Begin without any."""
        self._keys: OrderedDict[tuple[str, str], tuple[Reconciled, ...]] = OrderedDict()
        self._changes: deque[tuple[OwnWrite, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, reconciled: Reconciled) -> None:
        """Remember a reconcile."""
        name = (reconciled.controller, reconciled.key)
        if name in self._keys:
            self._keys[name] = (*self._keys[name], reconciled)[-EACH:]  # an empty deque takes half a KiB
            self._keys.move_to_end(name)
        else:
            self._keys[name] = (reconciled,)
            if len(self._keys) > LIMIT:
                self._keys.popitem(last=False)
        for write in reconciled.writes:
            if write.before is not None and write.after is not None:
                size = 2 * _OVERHEAD
                for stored in (write.before.stored, write.after.stored):
                    size += len(stored if type(stored) is bytes else stored.data)  # type: ignore[union-attr]
                self._changes.append((write, size))
                self._bytes += size
        while self._bytes > MOST_BYTES:
            write, size = self._changes.popleft()
            self._bytes -= size
            write.before, write.after, write.forgotten = None, None, True

    def latest(self, controller: str, key: str) -> Reconciled | None:
        """Return the last reconcile of a key by a controller; None if none is remembered."""
        runs = self._keys.get((controller, key))
        return runs[-1] if runs else None

    def about(self, kind: str, keys: frozenset[str]) -> tuple[Reconciled, ...]:
        """Return what is known about an object: its own reconciles, and those that it triggered or that wrote it.

        Args:
            kind: A controller's name, or a kind as people write it: ``Foo``, ``deployment``, ``apps/v1/Deployment``;
                empty means the objects that are reconciled, whatever their kind.
            keys: ``namespace/name`` or the name; several if it is not known whether the kind has namespaces.

        Returns:
            The latest first, and not more than ``MOST_ANSWERS``.
        """
        wanted = kind.lower()
        found = [run for runs in self._keys.values() for run in runs if _concerns(run, wanted, keys)]
        found.sort(key=lambda run: run.ended_at, reverse=True)
        return tuple(found[:MOST_ANSWERS])


def _concerns(run: Reconciled, wanted: str, keys: frozenset[str]) -> bool:
    if run.key in keys and (not wanted or wanted == run.controller.lower() or _is_kind(run.kind, wanted)):
        return True
    return bool(wanted) and any(key in keys and _is_kind(kind, wanted) for kind, key in _others(run))


def _others(run: Reconciled) -> Iterator[tuple[str, str]]:
    for trigger in run.triggers:
        if trigger.reference is not None:
            yield f"{trigger.reference.api_version}/{trigger.reference.kind}", trigger.reference.key
    for write in run.writes:
        yield write.kind, write.key


def _is_kind(kind: str, wanted: str) -> bool:
    """Tell whether ``deployment``, ``deployments`` or ``apps/v1/deployment`` means a kind."""
    full = kind.lower()
    short = full.rpartition("/")[2]
    return wanted in (full, short, f"{short}s", f"{short}es", f"{short[:-1]}ies")
