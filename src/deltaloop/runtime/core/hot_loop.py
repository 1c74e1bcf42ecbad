"""Detection of hot keys: reconciles that trigger themselves, and two writers of one field.

A *strike* of a key against an object is a reconcile that changed the object without an external cause:

    SELF     all triggers are writes of this program, and the reconcile wrote again
    FIGHT    another writer changed a field after the key's last write, and the reconcile changed the same
             field again; or the object was deleted, and the reconcile created it again

    CALM ── ``threshold`` strikes against one object within ``window`` seconds ──▶ HOT
    HOT  ── SELF: the echo of an own write is reconciled without a write
         ── either: no strike for ``reset_after`` seconds ──▶ CALM

A hot key runs once per ``interval``, which starts at ``min_interval`` and doubles with each further strike, up to
``max_interval``. Its reconciles are delayed, never dropped.

Objects with generated names count as one object with five times the threshold, because creating many of them is
legitimate. Only the server's ``managedFields`` name the other writer of a fight, and only until the next own write.
Therefore the object is marked at the last strike before the report, and the driver reads it from the server before the
next reconcile that another writer triggers (``wants_to_see``, ``saw``).

At most ``limit`` keys and ``_OBJECTS`` objects per key are kept. Those without writes for longest are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.runtime.core.own_writes import (
    OwnWrite,
    PathParts,
    changed_by_both,
    changed_paths,
    is_same_status,
    show_changes,
)

_OBJECTS: Final = 20
_GENERATED: Final = 5
_LOOKS_FROM: Final = 2  # with this threshold, the first strike marks the object
_UID: Final[PathParts] = ("metadata", "uid")
_SHORTEST: Final = 1e-6  # below the precision of a clock after some time, a timer would be due at once


@final
class HotLoopOptions(Options, frozen=True, kw_only=True):
    """Thresholds and delays for hot keys; times are in seconds.

    Attributes:
        threshold: Number of strikes that make a key hot.
        window: Time within which the strikes count.
        min_interval: Initial time between two reconciles of a hot key.
        max_interval: Maximum time between two reconciles of a hot key.
        reset_after: Time without a strike after which the key is calm again.
        limit: Maximum number of observed keys.
    """

    threshold: int = 20
    window: float = 60.0
    min_interval: float = 1.0
    max_interval: float = 30.0
    reset_after: float = 120.0
    limit: int = 1000

    def __post_init__(self) -> None:
        check_types(self)
        require_positive(
            "HotLoopOptions",
            window=self.window,
            min_interval=self.min_interval,
            max_interval=self.max_interval,
            reset_after=self.reset_after,
        )
        if self.threshold < 2 or self.limit < 1:
            raise InvalidArgumentError("must be >= 2, and limit must be >= 1.", argument="HotLoopOptions.threshold")
        if self.min_interval > self.max_interval:
            raise InvalidArgumentError("must be <= max_interval.", argument="HotLoopOptions.min_interval")
        if self.reset_after <= self.max_interval:
            # Otherwise the delay of a hot key would count as its recovery.
            raise InvalidArgumentError("must be > max_interval.", argument="HotLoopOptions.reset_after")


Cause: TypeAlias = "Literal['self', 'fight']"
"""Cause of a hot key; the value is the label of the metric."""


@final
class HotLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A key has become hot.

    ``kind`` and ``object_key`` name the object that the reconciles keep changing. ``changes`` are redacted. ``other``
    is the other writer, if known. The strikes happened within ``seconds``. The key is reconciled every ``interval``
    seconds from now on.
    """

    key: str
    cause: Cause
    kind: str
    object_key: str
    changes: tuple[str, ...]
    other: str
    strikes: int
    seconds: float
    interval: float


@final
class Cooled(msgspec.Struct, frozen=True, kw_only=True):
    """A key has become hot; ``kind`` and ``object_key`` name the object that its reconciles keep changing.

    ``other`` is the other writer, if known. The key is reconciled every ``interval`` seconds from now on.
    """

    key: str
    cause: Cause
    seconds: float


Fact: TypeAlias = HotLoop | Cooled


_States: TypeAlias = "tuple[Resource | None, Resource, Resource | None]"
"""Object after the last write, before the next write, and after the next write."""


@final
class _Written(msgspec.Struct):
    """State of an object after the key's last write."""

    verb: str
    uid: str
    version: str
    after: Resource | None
    marked: bool = False
    seen: Sequence[Mapping[str, Any]] = ()
    strikes: tuple[float, ...] = ()
    suspected: tuple[float, _States] | None = None


@final
class _Hot(msgspec.Struct):
    cause: Cause
    since: float
    interval: float
    next_at: float
    struck_at: float
    fact: HotLoop | None = None


@final
class _Key(msgspec.Struct):
    objects: dict[tuple[str, str], _Written] = msgspec.field(default_factory=dict[tuple[str, str], _Written])
    hot: _Hot | None = None


@final
class HotLoops:
    """Hot-key detection for one controller; keys that are not ``watched`` need ``observe`` only after writes."""

    def __init__(self, options: HotLoopOptions) -> None:
        self._options = options
        self._keys: OrderedDict[str, _Key] = OrderedDict()
        self.watched: set[str] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def is_hot(self, key: str) -> bool:
        known = self._keys.get(key)
        return known is not None and known.hot is not None

    def delay(self, key: str, now: float) -> float:
        """Return the delay in seconds of a key's next reconcile; 0 for a calm key."""
        known = self._keys.get(key)
        if known is None or known.hot is None:
            return 0.0
        left = known.hot.next_at - now
        return left if left > _SHORTEST else 0.0

    def forget(self, is_in: Callable[[str], bool]) -> None:
        # Writes of the next owner of a key are not those of a rival.
        for key in [key for key in self._keys if is_in(key)]:
            del self._keys[key]
            self.watched.discard(key)

    def hot_keys(self, now: float) -> list[tuple[HotLoop, float, float]]:
        """Return the hot keys, each with the seconds since it became hot and its present interval."""
        hot = [known.hot for known in self._keys.values() if known.hot is not None]
        return [
            (each.fact, now - each.since, each.interval)
            for each in hot
            if each.fact is not None and now - each.struck_at < self._options.reset_after
        ]

    def wants_to_see(self, key: str, *, triggers: Sequence[Trigger]) -> tuple[str, str] | None:
        """Return kind and key of an object to read from the server before a reconcile (then call ``saw``), or None."""
        known = self._keys.get(key)
        for subject, last in known.objects.items() if known is not None else ():
            if not last.marked:
                continue
            for trigger in triggers:
                of_object = trigger.reference is not None and trigger.reference.uid == last.uid
                if of_object and not trigger.origin and trigger.new_resource_version != last.version:
                    last.marked = False
                    return subject
        return None

    def saw(self, key: str, subject: tuple[str, str], obj: Resource) -> None:
        """Record the field owners of an object that was read from the server, as ``wants_to_see`` requested."""
        known = self._keys.get(key)
        written = None if known is None else known.objects.get(subject)
        if written is not None and written.uid == obj.uid:
            written.seen = _managed_fields(obj)

    def observe(
        self, key: str, *, triggers: Sequence[Trigger], writes: Sequence[OwnWrite], succeeded: bool, now: float
    ) -> tuple[Fact, ...]:
        """Process an ended reconcile, and return the facts to report; ``now`` is in monotonic seconds."""
        own = bool(triggers)
        for trigger in triggers:
            if not trigger.origin:
                own = False
                break
        # Objects outside all caches cannot trigger a reconcile, so writes to them do not indicate a loop.
        effective: tuple[OwnWrite, ...] = ()
        for write in writes:
            if write.is_known_change:
                effective += (write,)
        known = self._keys.get(key)
        facts: tuple[Fact, ...] = ()
        if known is None:
            if not effective:
                return ()
            known = self._keys[key] = _Key()
            if len(self._keys) > self._options.limit:
                self.watched.discard(self._keys.popitem(last=False)[0])
        elif effective:
            self._keys.move_to_end(key)
        if known.hot is not None and self._has_cooled(
            known.hot, quiet_echo=own and succeeded and not effective, now=now
        ):
            facts = (Cooled(key=key, cause=known.hot.cause, seconds=now - known.hot.since),)
            known.hot = None
            known.objects.clear()
            self.watched.discard(key)
        for write in effective:
            fact = self._wrote(key, known, write, triggers, own, now)
            if fact is not None:
                facts += (fact,)
        if known.hot is not None:
            known.hot.next_at = now + known.hot.interval
        return facts

    def _has_cooled(self, hot: _Hot, *, quiet_echo: bool, now: float) -> bool:
        # In a fight, the echo of an own write never causes a write, so only the other writer can end the fight.
        return (hot.cause == "self" and quiet_echo) or now - hot.struck_at >= self._options.reset_after

    def _wrote(
        self, key: str, known: _Key, write: OwnWrite, triggers: Sequence[Trigger], own: bool, now: float
    ) -> HotLoop | None:
        subject = write.subject if write.verb == "create" else (write.kind, write.key)
        objects, before = known.objects, write.before
        contested: tuple[PathParts, ...] = ()
        if subject in objects:
            present = objects[subject]
            del objects[subject]
            objects[subject] = present
            if own or before is None or before.resource_version != present.version:
                contested = self._contested(present, write, own or known.hot is not None, now)
        else:
            if len(objects) >= _OBJECTS:
                del objects[next(iter(objects))]
            present = objects[subject] = _Written(write.verb, write.uid, write.version, write.after)
            if not own:
                return None
        theirs = present.after
        present.verb, present.uid, present.version, present.after = write.verb, write.uid, write.version, write.after
        if not own and not contested:
            return None
        window = self._options.window
        strikes = present.strikes = (*[at for at in present.strikes if now - at <= window], now)
        hot = known.hot
        if hot is not None:
            if hot.struck_at < now:  # double it once per reconcile
                hot.interval = min(2 * hot.interval, self._options.max_interval)
            hot.struck_at = now
            return None
        generated = subject[1] != write.key
        wanted = self._options.threshold * (_GENERATED if generated else 1)
        if len(strikes) < wanted:
            present.marked = (
                len(strikes) == wanted - 1 and bool(contested) and not generated and not _managed_fields(before)
            )
            if present.marked:
                self.watched.add(key)
            return None
        interval = self._options.min_interval
        known.hot = _Hot("fight" if contested else "self", now, interval, now + interval, now)
        self.watched.add(key)
        before = before or theirs
        known.hot.fact = HotLoop(
            key=key,
            cause=known.hot.cause,
            kind=write.kind,
            object_key=subject[1],
            changes=show_changes(before, write.after, contested or changed_paths(before, write.after)),
            other=_other(write, triggers, theirs, contested, seen=present.seen) if contested else "",
            strikes=len(strikes),
            seconds=now - strikes[0],
            interval=interval,
        )
        return known.hot.fact

    def _contested(self, last: _Written, write: OwnWrite, own: bool, now: float) -> tuple[PathParts, ...]:
        """Return the fields that another writer changed after the last write, and this write changed again.

        A single write after another writer's change is only stored, and compared if a second one follows.
        """
        if write.before is None:
            # This key created the object earlier and another program deleted it, for example the garbage collector.
            again = write.verb == "create" == last.verb and last.uid != write.uid and write.subject[1] == write.key
            contested: tuple[PathParts, ...] = (_UID,) if again else ()
        elif last.uid != write.uid or write.before.resource_version == last.version:
            contested = ()
        elif write.subresource == "status" and is_same_status(last.after, write.before):
            contested = ()  # usual: the other writer changed the spec, which this write cannot change
        else:
            states = (last.after, write.before, write.after)
            recent = last.suspected is not None and now - last.suspected[0] <= self._options.window
            if not own and not last.strikes and not recent and self._options.threshold > _LOOKS_FROM:
                last.suspected = (now, states)
                return ()
            contested = changed_by_both(*states)
        if (own or contested) and last.suspected is not None:
            (at, states), last.suspected = last.suspected, None
            if changed_by_both(*states):
                last.strikes = (at, *last.strikes)
        return contested


def _other(
    write: OwnWrite,
    triggers: Sequence[Trigger],
    last: Resource | None,
    contested: Sequence[PathParts],
    *,
    seen: Sequence[Mapping[str, Any]],
) -> str:
    """Return the other writer: another controller of this program, or the field manager that owns the fields.

    Without ``seen`` and ``managedFields``, only responses to own writes remain, and the result may be empty.
    """
    for trigger in reversed(triggers):
        of_object = trigger.reference is not None and trigger.reference.uid == write.uid
        if of_object and trigger.origin and not trigger.origin.startswith("self,"):
            return trigger.origin.partition(",")[0]
    known = _managed_fields(last)
    entries = seen or _managed_fields(write.before)
    if entries:
        owners = [entry for entry in entries if _owns_any(entry, contested)]
        ours = [_who(entry) for entry in known if _owns_any(entry, contested)]
        # A writer that removed a field does not own the field. Entries of this program are excluded.
        return _newest(owners or [entry for entry in entries if entry not in known and _who(entry) not in ours])
    since = max((str(entry.get("time") or "") for entry in known), default="")
    changed = [entry for entry in _managed_fields(write.after) if entry not in known]
    return _newest(
        [entry for entry in changed if str(entry.get("time") or "") >= since and not _owns_any(entry, contested)]
    )


def _newest(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the manager of the newest entry; empty if there is none."""
    found = [(str(entry.get("time") or ""), str(entry.get("manager") or "")) for entry in entries]
    return max(found, default=("", ""))[1]


def _who(entry: Mapping[str, Any]) -> tuple[object, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource")


def _managed_fields(obj: Resource | None) -> Sequence[Mapping[str, Any]]:
    metadata: Mapping[str, Any] = (obj.get("metadata") if obj is not None else None) or {}
    return cast("Sequence[Mapping[str, Any]]", metadata.get("managedFields") or ())


def _owns_any(entry: Mapping[str, Any], paths: Sequence[PathParts]) -> bool:
    """Return whether an entry owns one of the fields. Paths are compared up to the first list index."""
    return any(_owns(entry.get("fieldsV1"), path) for path in paths)


def _owns(fields: object, path: PathParts) -> bool:
    for part in path:
        if not isinstance(part, str):
            break
        if not isinstance(fields, Mapping) or f"f:{part}" not in fields:
            return False
        fields = cast("Mapping[str, object]", fields)[f"f:{part}"]
    return True
