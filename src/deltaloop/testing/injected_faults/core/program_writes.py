"""What programs under test write: which requests count, what strikes them, and at which of them a program crashes.

    request ──▶ is it a write of an object? ──▶ number ──▶ crash before? ──▶ fault? ──▶ the server ──▶ crash after?
                        │ no                                                   │
                        └──────────────────────────────────────────────────────┴─▶ reads may be struck, too

Numbers count the writes of all programs of one world, from 1 on, a write that is sent again each time. What a program
does for itself (its Lease, Events, questions about its own rights) and dry runs are no writes of objects: they have no
number, and faults that name no resource leave them alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, final

import msgspec

from deltaloop.api.json_values import mapping, text
from deltaloop.api.keys import join_key
from deltaloop.apiserver import Fault
from deltaloop.apiserver.embedding import FaultBook, RequestInfo, Strike

WRITE_VERBS: Final = ("create", "update", "patch", "delete", "deletecollection")
LEASES: Final = "leases.coordination.k8s.io"
_decode: Final = msgspec.json.Decoder().decode
_OWN_AFFAIRS: Final = frozenset({LEASES, "events", "events.events.k8s.io"})
_QUESTIONS: Final = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_HARM: Final = (
    Fault(do="refuse", code=500, verbs=WRITE_VERBS),
    Fault(do="refuse", code=409, verbs=WRITE_VERBS),
    Fault(do="drop", verbs=WRITE_VERBS),
    Fault(do="lose", verbs=WRITE_VERBS),
)


class CrashMoment(StrEnum):
    """On which side of a write a program crashes."""

    BEFORE = "before it was sent"
    AFTER = "after the server had carried it out"


class FaultKind(StrEnum):
    """What happens to a write; ``simulation/core/schedules.py`` explains each."""

    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"
    LOST_RESPONSE = "lost-response"
    LOST_REQUEST = "lost-request"
    CONFLICT = "conflict"
    BUSY = "busy"
    SERVER_ERROR = "server-error"
    DELAYED_WATCH = "delayed-watch"
    MISSED_EVENTS = "missed-events"
    PARTITION = "partition"
    PAUSE = "pause"
    SLOW_CLOCK = "slow-clock"
    PREMATURE = "premature"
    WEBHOOK_UNAVAILABLE = "webhook-unavailable"
    WEBHOOK_TIMEOUT = "webhook-timeout"
    WEBHOOK_REJECTS = "webhook-rejects"
    STALE = "stale"
    DELAYED_KIND = "delayed-kind"
    CRASH_LATER = "crash-later"
    RESTORED = "restored"
    FOREGROUND = "foreground"


WEBHOOK_FAULTS: Final = frozenset({FaultKind.WEBHOOK_UNAVAILABLE, FaultKind.WEBHOOK_TIMEOUT, FaultKind.WEBHOOK_REJECTS})
"""Faults without effect where no program serves webhooks. Conversions fail as well, and with them watches."""
LASTS: Final = 30.0
"""Seconds after which a fault ends by itself."""
SLOW_RATE: Final = 0.7
"""Seconds of a slow clock for each second of the server's. A leader that gives up after 10 s of its own clock is still
in time for the 15 s of the other replicas."""


class PlannedFault(NamedTuple):
    """A fault that is planned for one write.

    Attributes:
        kind: Kind of the fault.
        behind: Number of revisions by which a stale restart is behind.
        changes: Number of changes of others after which a later crash comes.
    """

    kind: FaultKind
    behind: int = 0
    changes: int = 0

    @property
    def request_fault(self) -> Fault | None:
        """The fault that strikes the request itself; None if it is carried out and answered."""
        return _REQUEST_FAULTS.get(self.kind)

    def crashes(self, moment: CrashMoment) -> bool:
        """Whether the program crashes at this moment of the write."""
        if moment is CrashMoment.BEFORE:
            return self.kind is FaultKind.CRASH_BEFORE
        return self.kind in (FaultKind.CRASH_AFTER, FaultKind.STALE)


_REQUEST_FAULTS: Final = {
    FaultKind.LOST_RESPONSE: Fault(do="lose"),
    FaultKind.LOST_REQUEST: Fault(do="drop"),
    FaultKind.CONFLICT: Fault(do="refuse", code=409),
    FaultKind.BUSY: Fault(do="refuse", code=429, retry_after=1),
    FaultKind.SERVER_ERROR: Fault(do="refuse", code=500),
}


@final
@dataclass(frozen=True, slots=True, order=True)
class WriteName:
    """A write in the terms of what happens: "the 2nd create of secrets", whatever else is written meanwhile.

    Attributes:
        verb: ``create``, ``update``, ``patch``, ``apply``, ``delete`` or ``deletecollection``.
        resource: ``secrets``, ``statefulsets.apps``.
        subresource: Such as ``status``; empty for the object itself.
        occurrence: Which of the writes of this verb, resource and subresource it is, from 1 on.
    """

    verb: str
    resource: str
    subresource: str = ""
    occurrence: int = 1

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        return f"{_ordinal(self.occurrence)} {self.verb} of {self.resource}{part}"


def _ordinal(number: int) -> str:
    last = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{last}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReason:
    """The reconcile that a write is part of, why that ran, and what its program could not know.

    Attributes:
        reconcile: For people: ``login default/a, reconcile 3``, with the attempt if it is not the first.
        triggers: Why it ran, as ``deltaloop why`` says it.
        unseen: What its caches had not seen when it wrote: objects, and the versions that the server had by then.
        controller: Name of the controller.
        number: Which of the controller's reconciles it is, from 1 on, since its program has begun.
        life: How often its program had begun by then.
    """

    reconcile: str
    triggers: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    controller: str = ""
    number: int = 0
    life: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramWrite:
    """A write that a program has sent, or was about to send.

    Attributes:
        number: Which of the writes of objects it is, from 1 on.
        replica: Who sent it.
        task: Name of the task that did, such as ``reconcile foo default/a``; for people.
        at: When, in seconds of the event loop.
        verb: ``create``, ``update``, ``patch``, ``apply``, ``delete`` or ``deletecollection``.
        resource: ``secrets``, ``statefulsets.apps``.
        key: ``namespace/name``, or the name; of a create without a name the beginning of it.
        subresource: Such as ``status``; empty for the object itself.
        body: What was sent.
        code: HTTP status of the answer; 0 if there was none.
        stored: What the server answered; empty if that is no object.
        occurrence: Which of the writes of this verb, resource and subresource it is, from 1 on.
        lost_lease: The Lease that its program had held, and that was no longer its own when this was carried out; empty
            if it holds one, or never held any.
        undone: Whether the server was restored from a backup that was made before.
        reason: Why it was sent; None if it is part of no reconcile.
    """

    number: int
    replica: str
    task: str
    at: float
    verb: str
    resource: str
    key: str
    subresource: str = ""
    body: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    code: int = 0
    stored: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    occurrence: int = 1
    lost_lease: str = ""
    undone: bool = False
    reason: WriteReason | None = None

    @property
    def name(self) -> WriteName:
        """The write in terms that outlast changes elsewhere."""
        return WriteName(self.verb, self.resource, self.subresource, self.occurrence)

    @property
    def version(self) -> str:
        """The resource version of the object as it was stored: that of the write before, if nothing has changed."""
        return text(mapping(self.stored.get("metadata")).get("resourceVersion"))

    @property
    def carried_out(self) -> bool:
        """Whether the server is known to have done it."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource}{part} {self.key}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserStep:
    """Something that the test's own client has written: what a user does.

    Attributes:
        at: When, in seconds of the event loop.
        text: What, such as ``delete configmaps default/a``.
        after: How many writes of programs there were before.
    """

    at: float
    text: str
    after: int


def made(write: ProgramWrite, resource: str, key: str, revision: int) -> bool:
    """Tell whether a write has made a change; the revision at which an object is gone is not in the answer.

    Args:
        write: The write.
        resource: Of the object that has changed.
        key: Of the object that has changed.
        revision: Of the change.
    """
    if not write.carried_out or (write.resource, write.key) != (resource, key):
        return False
    is_last = write.verb == "delete" or bool(mapping(write.stored.get("metadata")).get("deletionTimestamp"))
    return is_last or write.version == str(revision)


def is_object_write(info: RequestInfo, query: Mapping[str, str]) -> bool:
    """Tell whether a request writes an object that the program is there for."""
    path = info.resource
    return (
        path is not None
        and info.verb in WRITE_VERBS
        and info.group_resource not in _OWN_AFFAIRS
        and path.group not in _QUESTIONS
        and not query.get("dryRun")
    )


def verb_of(info: RequestInfo, content_type: str) -> str:
    """Return the verb of a write; a patch that is a server-side apply has a name of its own."""
    return "apply" if content_type.startswith("application/apply-patch") else info.verb


def key_of(info: RequestInfo, body: Mapping[str, object]) -> str:
    """Return which object a write is about; a create names it in its body."""
    path = info.resource
    assert path is not None
    metadata = mapping(body.get("metadata"))
    return join_key(path.namespace, path.name or text(metadata.get("name")) or text(metadata.get("generateName")))


def object_of(body: bytes) -> Mapping[str, object]:
    """Decode an object from the wire; empty if the body is not one."""
    try:
        return mapping(_decode(body))
    except msgspec.DecodeError:
        return {}


def failing_share(share: float) -> tuple[Fault, ...]:
    """Return faults that strike a share of all writes: refused by 500 and 409, never arrived, or without an answer.

    Raises:
        ValueError: If the share is no number from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share of writes that fail is {share!r}; 0 to 1 is needed")
    each = share / len(_HARM)
    # The first fault that strikes wins, so each has to strike its part of what the ones before it have left.
    return tuple(
        Fault(do=harm.do, code=harm.code, verbs=harm.verbs, probability=min(1.0, each / (1 - place * each)))
        for place, harm in enumerate(_HARM)
    )


@final
class HeldLeases:
    """The Leases that one life of a program has taken, and whether it still holds any, by what programs wrote."""

    def __init__(self, holders: dict[str, str]) -> None:
        """Hold nothing.

        Args:
            holders: Identities by the keys of Leases, of all programs of one world.
        """
        self._holders = holders
        self._taken: dict[str, str] = {}

    def wrote(self, info: RequestInfo, answer: Mapping[str, object]) -> None:
        """Take what the server has answered to a write of this program; all but Leases is passed over.

        Args:
            info: What was asked for.
            answer: The object as it is stored.
        """
        if info.group_resource != LEASES or info.verb not in WRITE_VERBS:
            return
        key, identity = key_of(info, answer), text(mapping(answer.get("spec")).get("holderIdentity"))
        self._holders[key] = identity
        if identity:
            self._taken[key] = identity

    def lost(self) -> str:
        """Return the key of a Lease that it has lost; empty if it holds one, or never held any."""
        if any(self._holders.get(key) == identity for key, identity in self._taken.items()):
            return ""
        return next(iter(self._taken), "")


@final
class WritePlan:
    """The faults that strike the requests of all programs of one world.

    Attributes:
        faults: Faults that strike by rules.
        crash: Number of the write at which a program crashes, and the side of it; None is no crash.
        planned: Faults by the names of the writes that they strike.
        draw: Function that draws the chances of faults: numbers in [0, 1).
        lease_holders: Identities of holders by the keys of Leases.
    """

    def __init__(self, draw: Callable[[], float]) -> None:
        self.faults: FaultBook = FaultBook()
        self.crash: tuple[int, CrashMoment] | None = None
        self.planned: dict[WriteName, PlannedFault] = {}
        self.draw: Callable[[], float] = draw
        self.lease_holders: dict[str, str] = {}
        self._occurrences: Counter[tuple[str, str, str]] = Counter()

    def next_numbers(self, verb: str, resource: str, subresource: str) -> tuple[int, int]:
        """Count a write, and return its number among all, and among those of its verb, resource and subresource."""
        self._occurrences[verb, resource, subresource] += 1
        return self._occurrences.total(), self._occurrences[verb, resource, subresource]

    def crashes(self, number: int, moment: CrashMoment) -> bool:
        """Tell whether its program crashes at this write; once only."""
        if self.crash != (number, moment):
            return False
        self.crash = None
        return True

    def strike(self, info: RequestInfo, *, is_write: bool, replica: str) -> Strike:
        """Decide which fault strikes a request.

        Args:
            info: What is asked for.
            is_write: Whether it is a write of an object.
            replica: Who asks: the user of the faults.
        """
        if info.verb in WRITE_VERBS and not is_write:
            return Strike()
        return self.faults.strike(info, user=replica, draw=self.draw)
