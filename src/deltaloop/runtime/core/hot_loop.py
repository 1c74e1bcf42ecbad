"""Keys that keep themselves busy: a reconcile whose own write makes it run again, and two writers of one field.

A *strike* of a key against an object is a reconcile that changed the object although nothing else asked for it:

    SELF     every trigger of the reconcile is a write of this very program, and yet it wrote again
    FIGHT    since the key's last write to the object somebody else changed a field, and the reconcile changed the
             same field again; or it was deleted, and the reconcile created it again

    CALM ── ``threshold`` strikes against one object within ``window`` seconds ──▶ HOT
    HOT  ── SELF: the echo of an own write is reconciled without a write
         ── either: no strike for ``reset_after`` seconds ──▶ CALM

A hot key runs once per ``interval``, which begins at ``min_interval`` and doubles with each further strike, up to
``max_interval``. It is told of once when it becomes hot, and once when it has cooled down; what it wants is still done,
only later.

A reconcile of many steps, one write each, makes a few strikes and ends; it stays calm. A status that follows what
others do stays calm, too: those triggers are not this program's, and nobody else writes the field. Objects with
generated names count as one object, with five times the threshold, because making many of them one by one is no
mistake.

Who the other writer of a fight is, only the server's ``managedFields`` say, and only until our next write takes the
field over; caches leave them out by default. So before a fight is told of, at the last strike but one, the object is
marked: the next reconcile that somebody else's write asks for has the driver read it from the server first
(``wants_to_see``, ``saw``), one read for one warning.

Bounded: ``limit`` keys, and ``_OBJECTS`` objects of each; those that have not written for longest are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.runtime.core.own_writes import OwnWrite, PathParts, changed_paths, show_changes

_OBJECTS: Final = 20
_GENERATED: Final = 5
_LOOKS_FROM: Final = 2  # the first strike marks the object then
_UID: Final[PathParts] = ("metadata", "uid")


@final
class HotLoopOptions(Options, frozen=True, kw_only=True):
    """When a key is taken to keep itself busy, and how it is slowed down; times are in seconds.

    Attributes:
        threshold: So many strikes make a key hot.
        window: Within this time.
        min_interval: Time between two reconciles of a hot key, at first.
        max_interval: The longest that it becomes.
        reset_after: So long without a strike, and the key is calm again.
        limit: Most keys that are watched at a time.
    """

    threshold: int = 20
    window: float = 60.0
    min_interval: float = 1.0
    max_interval: float = 30.0
    reset_after: float = 120.0
    limit: int = 1000

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check_types(self)
        require_positive(
            "HotLoopOptions",
            window=self.window,
            min_interval=self.min_interval,
            max_interval=self.max_interval,
            reset_after=self.reset_after,
        )
        if self.threshold < 2 or self.limit < 1:
            raise InvalidArgumentError("HotLoopOptions needs a threshold of 2 or more, and a limit of 1 or more")
        if self.min_interval > self.max_interval:
            raise InvalidArgumentError("HotLoopOptions.min_interval is longer than max_interval")
        if self.reset_after <= self.max_interval:
            # Else slowing a key down would be taken for its recovery.
            raise InvalidArgumentError("HotLoopOptions.reset_after must be longer than max_interval")


class Cause(Enum):
    """Why a key keeps running; the value is the label of the metric."""

    SELF = "self"
    FIGHT = "fight"


@final
class HotLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A key has become hot.

    Attributes:
        key: Key of the object, ``namespace/name``.
        cause: What makes it run again and again.
        kind: Kind of the object that it keeps changing.
        object_key: Key of that object.
        changes: The fields that the last write changed, or that are fought over; values are redacted.
        other: Who else writes them, as far as is known; empty for ``SELF``.
        strikes: How many there were.
        seconds: Within this time.
        interval: Seconds between its reconciles from now on.
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
    """A key is no longer hot.

    Attributes:
        key: Key of the object, ``namespace/name``.
        cause: Why it was.
        seconds: For how long.
    """

    key: str
    cause: Cause
    seconds: float


Fact: TypeAlias = HotLoop | Cooled


_States: TypeAlias = tuple[Resource | None, Resource, Resource | None]
"""An object after the last write, before the next one, and after that."""


@final
class _Written(msgspec.Struct):
    """An object that a key wrote, as its last write left it."""

    verb: str = ""
    uid: str = ""
    version: str = ""
    after: Resource | None = None
    marked: bool = False
    seen: Sequence[Mapping[str, Any]] = ()
    strikes: list[float] = msgspec.field(default_factory=list[float])  # a few; an empty deque takes half a KiB
    suspected: tuple[float, _States] | None = None


@final
class _Hot(msgspec.Struct):
    cause: Cause
    since: float
    interval: float
    next_at: float
    struck_at: float


@final
class _Key(msgspec.Struct):
    objects: dict[tuple[str, str], _Written] = msgspec.field(default_factory=dict[tuple[str, str], _Written])
    hot: _Hot | None = None


@final
class HotLoops:
    """The keys of one controller, watched.

    Attributes:
        watched: Keys that are hot, or marked. Other keys need no ``delay``, no ``wants_to_see``, and no ``observe``
            when they wrote nothing.
    """

    def __init__(self, options: HotLoopOptions) -> None:
        """Begin with calm keys."""
        self._options = options
        self._keys: OrderedDict[str, _Key] = OrderedDict()
        self.watched: set[str] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def is_hot(self, key: str) -> bool:
        """Tell whether a key is hot."""
        known = self._keys.get(key)
        return known is not None and known.hot is not None

    def delay(self, key: str, now: float) -> float:
        """Return how many seconds the next reconcile of a key has to wait; 0 for a calm one."""
        known = self._keys.get(key)
        if known is None or known.hot is None:
            return 0.0
        return max(0.0, known.hot.next_at - now)

    def wants_to_see(self, key: str, *, triggers: Sequence[Trigger]) -> tuple[str, str] | None:
        """Return kind and key of an object to be read from the server before a reconcile; None for nothing.

        It is wanted once; the answer goes to ``saw``.

        Args:
            key: Whose reconcile begins.
            triggers: Why, with their origins: another write than our last one, by nobody of this program, shows that
                the other writer has written again, and its name is there.
        """
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
        """Take an object as the server has it; only who owns its fields is kept.

        Args:
            key: Whose reconcile begins.
            subject: What ``wants_to_see`` returned.
            obj: The object as the event shows it.
        """
        known = self._keys.get(key)
        written = None if known is None else known.objects.get(subject)
        if written is not None and written.uid == obj.uid:
            written.seen = _managed_fields(obj)

    def observe(
        self, key: str, *, triggers: Sequence[Trigger], writes: Sequence[OwnWrite], succeeded: bool, now: float
    ) -> tuple[Fact, ...]:
        """Take a reconcile that has ended; return what is to be told.

        Args:
            key: Key of the object, ``namespace/name``.
            triggers: Why it ran, with their origins.
            writes: What it wrote.
            succeeded: Whether it ended well.
            now: The monotonic clock, in seconds.
        """
        own = bool(triggers)
        for trigger in triggers:
            own = own and trigger.origin != ""
        # What no cache holds cannot be what triggers: such a write says nothing about a loop.
        effective = [write for write in writes if write.is_known_change]
        known = self._keys.get(key)
        facts: list[Fact] = []
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
            facts.append(Cooled(key=key, cause=known.hot.cause, seconds=now - known.hot.since))
            known.hot = None
            known.objects.clear()
            self.watched.discard(key)
        for write in effective:
            fact = self._wrote(key, known, write, triggers, own=own, now=now)
            if fact is not None:
                facts.append(fact)
        if known.hot is not None:
            known.hot.next_at = now + known.hot.interval
        return tuple(facts)

    def _has_cooled(self, hot: _Hot, *, quiet_echo: bool, now: float) -> bool:
        # In a fight the echo of an own write is always quiet; only the other writer can end it.
        return (hot.cause is Cause.SELF and quiet_echo) or now - hot.struck_at >= self._options.reset_after

    def _wrote(
        self, key: str, known: _Key, write: OwnWrite, triggers: Sequence[Trigger], *, own: bool, now: float
    ) -> HotLoop | None:
        subject = write.subject if write.verb == "create" else (write.kind, write.key)
        last = known.objects.pop(subject, None)
        present = known.objects[subject] = last or _Written()
        if len(known.objects) > _OBJECTS:
            del known.objects[next(iter(known.objects))]
        contested: tuple[PathParts, ...] = ()
        if last is not None and (own or write.before is None or write.before.resource_version != last.version):
            contested = self._contested(last, write, own=own or known.hot is not None, now=now)
        theirs = present.after
        present.verb, present.uid, present.version, present.after = write.verb, write.uid, write.version, write.after
        if not own and not contested:
            return None
        strikes = present.strikes
        strikes.append(now)
        while now - strikes[0] > self._options.window:
            del strikes[0]
        hot = known.hot
        if hot is not None:
            if hot.struck_at < now:  # one reconcile doubles it once
                hot.interval = min(2 * hot.interval, self._options.max_interval)
            hot.struck_at = now
            return None
        generated = subject[1] != write.key
        wanted = self._options.threshold * (_GENERATED if generated else 1)
        if len(strikes) < wanted:
            present.marked = (
                len(strikes) == wanted - 1 and bool(contested) and not generated and not _managed_fields(write.before)
            )
            if present.marked:
                self.watched.add(key)
            return None
        interval = self._options.min_interval
        known.hot = _Hot(Cause.FIGHT if contested else Cause.SELF, now, interval, now + interval, now)
        self.watched.add(key)
        before = write.before or theirs
        return HotLoop(
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

    def _contested(self, last: _Written, write: OwnWrite, *, own: bool, now: float) -> tuple[PathParts, ...]:
        """Return the fields that somebody else changed since the last write, and this one changed again.

        Fields are compared on suspicion only. One write after one of somebody else is none: it is kept, and compared
        when there is a second one.
        """
        if write.before is None:
            # It was made before, and others have deleted it: the garbage collector, for example, because of its owner.
            again = write.verb == "create" == last.verb and last.uid != write.uid and write.subject[1] == write.key
            contested: tuple[PathParts, ...] = (_UID,) if again else ()
        elif last.uid != write.uid or write.before.resource_version == last.version:
            contested = ()
        else:
            states = (last.after, write.before, write.after)
            recent = last.suspected is not None and now - last.suspected[0] <= self._options.window
            if not own and not last.strikes and not recent and self._options.threshold > _LOOKS_FROM:
                last.suspected = (now, states)
                return ()
            contested = _changed_by_both(states)
        if (own or contested) and last.suspected is not None:
            (at, states), last.suspected = last.suspected, None
            if _changed_by_both(states):
                last.strikes.insert(0, at)
        return contested


def _changed_by_both(states: _States) -> tuple[PathParts, ...]:
    """Return the fields that were changed before a write, and by it."""
    after_last, before, after = states
    theirs = frozenset(changed_paths(after_last, before))
    return tuple(path for path in changed_paths(before, after) if path in theirs) if theirs else ()


def _other(
    write: OwnWrite,
    triggers: Sequence[Trigger],
    last: Resource | None,
    contested: Sequence[PathParts],
    *,
    seen: Sequence[Mapping[str, Any]],
) -> str:
    """Say who else writes an object: another controller of this program, or the field manager that has the fields.

    Without an answer of the server (``seen``) and without ``managedFields`` in the cache, what the server answers to
    writes is left: who wrote between two answers is in the second, unless this write took everything over that was
    theirs. Then nobody is named.
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
        # Whoever takes a field away owns nothing of it; we did, and are not the other one.
        return _newest(owners or [entry for entry in entries if entry not in known and _who(entry) not in ours])
    since = max((str(entry.get("time") or "") for entry in known), default="")
    changed = [entry for entry in _managed_fields(write.after) if entry not in known]
    return _newest(
        [entry for entry in changed if str(entry.get("time") or "") >= since and not _owns_any(entry, contested)]
    )


def _newest(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the manager of the newest entry; empty for none."""
    found = [(str(entry.get("time") or ""), str(entry.get("manager") or "")) for entry in entries]
    return max(found, default=("", ""))[1]


def _who(entry: Mapping[str, Any]) -> tuple[object, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource")


def _managed_fields(obj: Resource | None) -> Sequence[Mapping[str, Any]]:
    metadata: Mapping[str, Any] = (obj.get("metadata") if obj is not None else None) or {}
    return cast("Sequence[Mapping[str, Any]]", metadata.get("managedFields") or ())


def _owns_any(entry: Mapping[str, Any], paths: Sequence[PathParts]) -> bool:
    """Whether an entry has one of the fields, as far as the path goes by names."""
    return any(_owns(entry.get("fieldsV1"), path) for path in paths)


def _owns(fields: object, path: PathParts) -> bool:
    for part in path:
        if not isinstance(part, str):
            break
        if not isinstance(fields, Mapping) or f"f:{part}" not in fields:
            return False
        fields = cast("Mapping[str, object]", fields)[f"f:{part}"]
    return True
