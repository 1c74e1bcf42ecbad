"""Writes of programs under test: which requests count, which faults affect them, and where a program crashes.

    request ──▶ is it a write of an object? ──▶ number ──▶ crash before? ──▶ fault? ──▶ the server ──▶ crash after?
                        │ no                                                   │
                        └──────────────────────────────────────────────────────┴─▶ faults can also affect reads

Numbers count the writes of all programs of one harness from 1, with each retry. Leases, Events, access reviews and dry
runs are not writes of objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
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
    """Moment of a crash relative to a write."""

    BEFORE = "before it was sent"
    AFTER = "after the server had completed it"


class FaultKind(StrEnum):
    """Kind of a planned fault; ``simulation/core/schedules.py`` explains each."""

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
"""Faults without effect if no program serves webhooks. Conversions fail as well, and so do watches."""
LASTS: Final = 30.0
"""Duration of a fault in seconds."""
SLOW_RATE: Final = 0.7
"""Seconds of a slow clock for each second of the server's. A leader that stops after 10 s on its clock still
stops before the other replicas take over after 15 s."""


class PlannedFault(NamedTuple):
    """Fault that is planned for one write."""

    kind: FaultKind
    behind: int = 0
    changes: int = 0

    @property
    def request_fault(self) -> Fault | None:
        """Fault of the request itself; None if the request succeeds."""
        return _REQUEST_FAULTS.get(self.kind)

    def crashes(self, moment: CrashMoment) -> bool:
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
    """Name of a write that does not depend on other writes, such as "the 2nd create of secrets"."""

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
    """Reconcile that a write is part of, and the changes that its program had not seen."""

    reconcile: str
    triggers: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    controller: str = ""
    number: int = 0
    life: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramWrite:
    """Write that a program has sent, or was about to send.

    Attributes:
        number: Number among all writes of objects, from 1.
        replica: Name of the program.
        task: Name of the asyncio task, such as ``reconcile foo default/a``, for people.
        at: Time of the event loop in seconds.
        verb: ``create``, ``update``, ``patch``, ``apply``, ``delete`` or ``deletecollection``.
        resource: Resource, such as ``secrets`` or ``statefulsets.apps``.
        key: ``namespace/name``, or the name; for a create without a name, its prefix.
        subresource: Subresource, such as ``status``; empty for the object itself.
        body: Request body.
        code: HTTP status of the response; 0 if there was none.
        stored: Object in the response; empty if there is none.
        occurrence: Number among the writes of this verb, resource and subresource, from 1.
        lost_lease: Key of a Lease that the program had lost before this was carried out; empty if it holds a Lease, or
            never held one.
        undone: Whether the server was restored from an earlier backup.
        reason: Reason of the write; None outside a reconcile.
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
        """Name of the write, which does not depend on other writes."""
        return WriteName(self.verb, self.resource, self.subresource, self.occurrence)

    @property
    def version(self) -> str:
        """Resource version of the stored object, which is unchanged if the write had no effect."""
        return text(mapping(self.stored.get("metadata")).get("resourceVersion"))

    @property
    def carried_out(self) -> bool:
        """Whether the server reported success."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource}{part} {self.key}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserStep:
    """Write by the test's own client, which represents a user, at a loop time, ``after`` so many writes of programs."""

    at: float
    text: str
    after: int


def made(write: ProgramWrite, resource: str, key: str, revision: int) -> bool:
    """Return whether a write made a change; the response to a deletion lacks the revision."""
    if not write.carried_out or (write.resource, write.key) != (resource, key):
        return False
    is_last = write.verb == "delete" or bool(mapping(write.stored.get("metadata")).get("deletionTimestamp"))
    return is_last or write.version == str(revision)


def is_object_write(info: RequestInfo, query: Mapping[str, str]) -> bool:
    """Return whether a request writes an object other than Leases, Events and reviews."""
    path = info.resource
    return (
        path is not None
        and info.verb in WRITE_VERBS
        and info.group_resource not in _OWN_AFFAIRS
        and path.group not in _QUESTIONS
        and not query.get("dryRun")
    )


def verb_of(info: RequestInfo, content_type: str) -> str:
    """Return the verb of a write; ``apply`` for a server-side apply."""
    return "apply" if content_type.startswith("application/apply-patch") else info.verb


def key_of(info: RequestInfo, body: Mapping[str, object]) -> str:
    """Return the key of the written object; a create specifies the name in its body."""
    path = info.resource
    assert path is not None
    metadata = mapping(body.get("metadata"))
    return join_key(path.namespace, path.name or text(metadata.get("name")) or text(metadata.get("generateName")))


def object_of(body: bytes) -> Mapping[str, object]:
    """Decode a JSON object; empty if the body is invalid."""
    try:
        return mapping(_decode(body))
    except msgspec.DecodeError:
        return {}


def failing_share(share: float) -> tuple[Fault, ...]:
    """Return faults for a share of all writes, 0 to 1: rejected with 500 or 409, lost, or without a response."""
    if not 0 <= share <= 1:
        raise InvalidArgumentError(f"must be 0 to 1, got {share!r}.", argument="share")
    each = share / len(_HARM)
    # The first matching fault applies, so later faults need a higher probability to get an equal share.
    return tuple(
        Fault(do=harm.do, code=harm.code, verbs=harm.verbs, probability=min(1.0, each / (1 - place * each)))
        for place, harm in enumerate(_HARM)
    )


@final
class HeldLeases:
    """Leases that one life of a program has taken, and whether the program holds any of them."""

    def __init__(self, holders: dict[str, str]) -> None:
        """Begin without Leases; ``holders`` maps Leases to identities, for all programs of one harness."""
        self._holders = holders
        self._taken: dict[str, str] = {}

    def wrote(self, info: RequestInfo, answer: Mapping[str, object]) -> None:
        """Record the response to a write of a Lease by this program; other writes are ignored."""
        if info.group_resource != LEASES or info.verb not in WRITE_VERBS:
            return
        key, identity = key_of(info, answer), text(mapping(answer.get("spec")).get("holderIdentity"))
        self._holders[key] = identity
        if identity:
            self._taken[key] = identity

    def lost(self) -> str:
        """Return the key of a lost Lease; empty if the program holds a Lease, or never did."""
        if any(self._holders.get(key) == identity for key, identity in self._taken.items()):
            return ""
        return next(iter(self._taken), "")


@final
class WritePlan:
    """Planned faults for the requests of all programs of one harness."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self.faults: FaultBook = FaultBook()
        self.crash: tuple[int, CrashMoment] | None = None
        self.planned: dict[WriteName, PlannedFault] = {}
        self.draw: Callable[[], float] = draw
        self.lease_holders: dict[str, str] = {}
        self._occurrences: Counter[tuple[str, str, str]] = Counter()

    def next_numbers(self, verb: str, resource: str, subresource: str) -> tuple[int, int]:
        """Count a write; return its number, and its occurrence."""
        self._occurrences[verb, resource, subresource] += 1
        return self._occurrences.total(), self._occurrences[verb, resource, subresource]

    def crashes(self, number: int, moment: CrashMoment) -> bool:
        """Return whether the program crashes at this write; the crash happens only once."""
        if self.crash != (number, moment):
            return False
        self.crash = None
        return True

    def strike(self, info: RequestInfo, *, is_write: bool, replica: str) -> Strike:
        """Choose the fault that affects a request of the program ``replica``."""
        if info.verb in WRITE_VERBS and not is_write:
            return Strike()
        return self.faults.strike(info, user=replica, draw=self.draw)
