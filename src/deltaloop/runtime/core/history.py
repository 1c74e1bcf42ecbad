"""History of the last reconciles of each object, for ``deltaloop why``.

It keeps at most ``LIMIT`` keys, and ``EACH`` reconciles per key. Keys that have been idle for longest are forgotten
first. Objects of the latest ``MOST_BYTES`` are kept, and changed fields are compared on demand.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from deltaloop.api.references import Trigger
from deltaloop.runtime.core.outcomes import Action
from deltaloop.runtime.core.own_writes import OwnWrite

LIMIT: Final = 1000
EACH: Final = 8
MOST_ANSWERS: Final = 50
MOST_BYTES: Final = 2 * 1024 * 1024
_OVERHEAD: Final = 1024  # per object in addition to its JSON
_AT_ONCE: Final = 64  # reconciles; sorting many together needs fewer accesses to uncached memory


class Reconciled(msgspec.Struct, frozen=True, gc=False):
    """An ended reconcile, without object data; ``ended_at`` is in monotonic seconds.

    ``error`` is the type of the exception (empty if there was none), because its text can contain data.
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
    action: Action = Action.FORGET
    cleanup: bool = False
    range: str = ""

    def to_dict(self, now: float) -> dict[str, Any]:
        """Return the JSON form, with times relative to ``now``."""
        return {
            "controller": self.controller,
            "key": self.key,
            "reconcile": self.number,
            "secondsAgo": round(max(0.0, now - self.ended_at), 3),
            "seconds": round(self.seconds, 6),
            "attempt": self.attempt,
            "cleanup": self.cleanup,
            "result": self.result,
            "decision": self.action.value,
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
            **({"range": self.range} if self.range else {}),
        }


class History:
    """Latest reconciles of each object; ``on_add`` is called with each reconcile, unless it is None."""

    def __init__(self) -> None:
        self.on_add: Callable[[Reconciled], object] | None = None
        # Idle for longest first. In a plain dict, the search for the first key passes all deleted keys.
        self._keys: OrderedDict[tuple[str, str], list[Reconciled]] = OrderedDict()
        self._changes: deque[tuple[tuple[OwnWrite, ...], int]] = deque()
        self._bytes = 0
        self._recent: list[Reconciled] = []  # not in the keys yet

    def __len__(self) -> int:
        return len(self._sorted())

    def add(self, reconciled: Reconciled) -> None:
        if self.on_add is not None:
            self.on_add(reconciled)
        recent, writes, size = self._recent, reconciled.writes, 0
        recent.append(reconciled)
        for write in writes:
            if write.before is not None and write.after is not None:
                stored = write.after.stored
                size += _OVERHEAD + len(stored if type(stored) is bytes else write.after.raw)
        if size:
            self._changes.append((writes, 2 * size))
            self._bytes += 2 * size
            while self._bytes > MOST_BYTES:
                writes, size = self._changes.popleft()
                self._bytes -= size
                for write in writes:
                    if write.before is not None:
                        write.before, write.after, write.forgotten = None, None, True
        if len(recent) >= _AT_ONCE:
            self._sorted()

    def _sorted(self) -> Mapping[tuple[str, str], list[Reconciled]]:
        keys, recent = self._keys, self._recent
        for reconciled in recent:
            name = reconciled.controller, reconciled.key
            if name in keys:
                runs = keys[name]
                if len(runs) >= EACH:
                    del runs[0]
                runs.append(reconciled)  # a tuple would be copied, which accesses all runs
                keys.move_to_end(name)
            else:
                keys[name] = [reconciled]  # an empty deque needs half a KiB
                if len(keys) > LIMIT:
                    keys.popitem(last=False)
        recent.clear()
        return keys

    def latest(self, controller: str, key: str) -> Reconciled | None:
        runs = self._sorted().get((controller, key))
        return runs[-1] if runs else None

    def all(self) -> tuple[Reconciled, ...]:
        return tuple(sorted((run for runs in self._sorted().values() for run in runs), key=lambda run: run.ended_at))

    def about(self, kind: str, keys: frozenset[str]) -> tuple[Reconciled, ...]:
        """Return an object's own reconciles, and those that it triggered or that wrote it, latest first.

        ``kind`` is the name of a controller, or a kind such as ``Foo``, ``deployment`` or ``apps/v1/Deployment``, or
        empty for any. ``keys`` has ``namespace/name`` or the name, or both if the scope is unknown.
        """
        wanted = kind.lower()
        found = [run for runs in self._sorted().values() for run in runs if _concerns(run, wanted, keys)]
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
    """Return whether ``deployment``, ``deployments`` or ``apps/v1/deployment`` means the kind."""
    full = kind.lower()
    short = full.rpartition("/")[2]
    return wanted in (full, short, f"{short}s", f"{short}es", f"{short[:-1]}ies")
