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
from typing import Final, TypeAlias, final

from deltaloop.api.json_values import mapping, text
from deltaloop.api.keys import join_key
from deltaloop.apiserver.core.fault_rules import Fault, FaultBook, Strike
from deltaloop.apiserver.core.wire.request_info import RequestInfo

WRITE_VERBS: Final = ("create", "update", "patch", "delete", "deletecollection")
LEASES: Final = "leases.coordination.k8s.io"
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CrashAt:
    """A crash at the write of a number."""

    number: int
    moment: CrashMoment


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRestart:
    """A crash after a write; the program that comes back is shown the past, as by an API server that lags.

    Attributes:
        behind: How many revisions ago its lists and watches begin; all kinds of the server count.
        seconds: How long it takes until they catch up.
    """

    behind: int
    seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CrashLater:
    """A crash some time after a write: what a program remembers of the changes until then is gone.

    Attributes:
        changes: Right after which change of others, from 1 on: the user, and the environment.
    """

    changes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWatches:
    """After a write no watch of the program brings anything for some seconds.

    Attributes:
        seconds: How long.
        missed: Whether what was held never comes: the watch ends with 410 (Expired), and the program has to list anew,
            so that states between two are never seen. Otherwise all comes then.
        own_kind: Whether only watches of the kind that was written are held; caches of others go on.
    """

    seconds: float
    missed: bool = False
    own_kind: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartedAfter:
    """After a write nothing of the program reaches the server for some seconds, and nobody is told."""

    seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PausedAfter:
    """After a write the program stands still for some seconds, and then goes on as if nothing had been."""

    seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SlowedAfter:
    """After a write the program's clock runs slower than the server's, for as long as the program lives.

    Attributes:
        rate: Seconds of its clock for each of the server's.
    """

    rate: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hurried:
    """At a write the test stops waiting: ``settled`` returns, so that the user's next step comes in the middle."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredAfter:
    """After a write the server is restored from a backup, made right after the last change that was not a program's.

    What programs have written since then is gone, and their watches end; they themselves go on.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForegroundDeletions:
    """From a write on, the user deletes in the foreground, unless a deletion has another policy."""


class WebhookFailure(StrEnum):
    """In which way the webhooks of programs do not do what they are there for."""

    AWAY = "away"
    SLOW = "slow"
    WRONG = "wrong"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksFail:
    """From a write on, before it arrives, the webhooks of all programs fail for some seconds.

    Attributes:
        how: Nobody answers, or too late, or everything is refused.
        seconds: How long.
    """

    how: WebhookFailure
    seconds: float


Planned: TypeAlias = (
    CrashMoment
    | Fault
    | StaleRestart
    | CrashLater
    | HeldWatches
    | PartedAfter
    | PausedAfter
    | SlowedAfter
    | Hurried
    | WebhooksFail
    | RestoredAfter
    | ForegroundDeletions
)
"""What is planned for one write."""


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
    """What happens to the requests of all programs of one world.

    Attributes:
        faults: Faults that strike by rules.
        crash: The write by its number at which a program crashes.
        planned: What happens to writes by their names.
        sent: How many writes there were.
        draw: Gives the chances of faults.
        lease_holders: Who holds which Lease.
    """

    def __init__(self, draw: Callable[[], float]) -> None:
        """Begin without faults.

        Args:
            draw: Gives the chances of faults: numbers in [0, 1).
        """
        self.faults: FaultBook = FaultBook()
        self.crash: CrashAt | None = None
        self.planned: dict[WriteName, Planned] = {}
        self.sent: int = 0
        self.draw: Callable[[], float] = draw
        self.lease_holders: dict[str, str] = {}
        self._occurrences: Counter[tuple[str, str, str]] = Counter()

    def next_number(self) -> int:
        """Count a write, and return its number."""
        self.sent += 1
        return self.sent

    def next_occurrence(self, verb: str, resource: str, subresource: str) -> int:
        """Count a write among those of its verb, resource and subresource."""
        self._occurrences[verb, resource, subresource] += 1
        return self._occurrences[verb, resource, subresource]

    def planned_for(self, write: ProgramWrite) -> Planned | None:
        """Return what is planned for a write; once only."""
        return self.planned.pop(write.name, None)

    def crashes(self, number: int, moment: CrashMoment) -> bool:
        """Tell whether its program crashes at this write; once only."""
        if self.crash != CrashAt(number=number, moment=moment):
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
