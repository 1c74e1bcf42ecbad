"""Decide which parts of a program do not move, from a snapshot of its state.

The snapshot contains names, times and lines of code, but no data of objects. Keys with the same cause share a
diagnosis, because hundreds of keys often fail for the same reason. Stuck parts come first, then the order is that of
``DiagnosisKind``, then the duration.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, TypeVar, final

import msgspec

T = TypeVar("T")

MOST_LISTED: Final = 100
"""Number of keys of each list in a snapshot. Queues can contain 100 000."""
BLOCKED_FOR: Final = 3.0
"""Seconds of a block that is reported after its end. Imports on a busy machine need less."""
HELD_AFTER: Final = 60.0
"""Seconds of a reconcile that count as long: twice the default timeout of a request."""
STOPPED_AFTER: Final = 10.0
"""Seconds after a timeout, as for the first warning of a reconcile that does not stop."""
FAILURES: Final = 3
"""Consecutive failures of a listed key. One or two are usually conflicts, which the retry resolves."""
FAILING_AFTER: Final = 60.0
"""Seconds of failures that need a person. Rollouts and dependencies need less."""
UNREACHABLE_AFTER: Final = 10.0
"""Seconds of failing lists and watches. A server that restarts needs less."""
FIRST_LIST: Final = 30.0
"""Seconds for the first list without an error, as for a streamed list."""
SILENT_AFTER: Final = 75.0
"""Seconds without a byte. A server sends a bookmark each minute."""
LEASE_PART: Final = 0.5
"""Part of the renew deadline without a renewal. With the defaults, two attempts have failed."""
BACKLOG: Final = 100
"""Waiting keys of a growing queue. Smaller queues are empty within seconds."""
GROWTH: Final = 1.2
"""Ratio of added to finished keys. Below it, the sample shows noise."""
THROTTLED: Final = 5
"""Rejected requests within ``THROTTLED_FOR`` seconds. A few are normal when a server starts."""
THROTTLED_FOR: Final = 60.0
_KEYS_NAMED: Final = 10


@final
class DiagnosisKind(Enum):
    """Kind of a diagnosis, the most urgent first."""

    BLOCKED_LOOP = "blocked-loop"
    LEASE_AT_RISK = "lease-at-risk"
    RANGE_WITHOUT_OWNER = "range-without-owner"
    HELD_SLOT = "held-slot"
    STALE_CACHE = "stale-cache"
    WEBHOOK = "webhook"
    FIGHT = "fight"
    HOT_LOOP = "hot-loop"
    PARKED_KEY = "parked-key"
    BACK_OFF = "back-off"
    PAUSED = "paused-controller"
    GROWING_QUEUE = "growing-queue"
    THROTTLED = "throttled-requests"
    STALE_DISCOVERY = "stale-discovery"


_URGENCY: Final = {kind: place for place, kind in enumerate(DiagnosisKind)}


@final
class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a program that does not move, or soon stops.

    Attributes:
        kind: Kind of the problem.
        stuck: True if a person must act. Then ``deltaloop doctor`` exits with code 1.
        subject: Part of the program, for example ``greeter default/hello`` or the name of a cache.
        cause: Reason, with counts.
        remedy: Step that solves the problem, in one sentence.
        seconds: Duration so far, or None if it is unknown.
        count: Number of keys, slots or requests.
        where: Lines of code where it waits or failed, the innermost last.
        controller: Name of the controller, or empty.
        keys: First keys, at most 10.
    """

    kind: DiagnosisKind
    stuck: bool
    subject: str
    cause: str
    remedy: str
    seconds: float | None = None
    count: int = 1
    where: tuple[str, ...] = ()
    controller: str = ""
    keys: tuple[str, ...] = ()


class _State(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


@final
class SlotSeen(_State, frozen=True):
    """A running reconcile; ``stopping`` is the reason of a requested stop, or empty."""

    key: str
    reconcile: int
    seconds: float
    where: tuple[str, ...]
    stopping: str = ""
    triggers: tuple[str, ...] = ()


@final
class FailingKey(_State, frozen=True):
    """A key in back-off; without ``next_in``, its next attempt is queued or runs."""

    key: str
    error: str
    attempts: int
    seconds: float
    next_in: float | None
    where: tuple[str, ...]


@final
class ParkedKey(_State, frozen=True):
    key: str
    error: str
    attempts: int
    seconds: float
    where: tuple[str, ...]


@final
class HotKey(_State, frozen=True):
    """A key that is slowed down; ``fields`` are paths without values, and ``other`` is empty if unknown."""

    key: str
    fight: bool
    kind: str
    object: str
    other: str
    fields: tuple[str, ...]
    seconds: float
    interval: float


@final
class QueueSeen(_State, frozen=True):
    """Counts of a queue; the rates are per second, and None without an earlier sample."""

    queued: int
    processing: int
    delayed: int
    failing: int
    parked: int
    adds: int
    done: int
    added_rate: float | None = None
    done_rate: float | None = None


@final
class ControllerSeen(_State, frozen=True):
    """State of one controller; ``timeout`` and ``paused_for`` are in seconds, or None."""

    name: str
    kind: str
    workers: int
    timeout: float | None
    paused_for: float | None
    queue: QueueSeen
    running: tuple[SlotSeen, ...] = ()
    failing: tuple[FailingKey, ...] = ()
    parked: tuple[ParkedKey, ...] = ()
    hot: tuple[HotKey, ...] = ()


@final
class CacheSeen(_State, frozen=True):
    """State of one cache, with ages in seconds.

    ``refused`` means that the server denies access or does not know the kind, and ``bookmarks`` that it sends them.
    """

    name: str
    synced: bool
    objects: int
    age: float
    confirmed: float | None
    silent: float | None
    failing: float | None
    error: str
    refused: bool
    bookmarks: bool
    stalled_by: tuple[str, ...] = ()


@final
class LeaseSeen(_State, frozen=True):
    """Lease of a leader; ``age`` is the time since the last renewal in seconds."""

    name: str
    age: float
    renew_deadline: float


@final
class BlockedLoop(_State, frozen=True):
    """A call that blocks the event loop, or that ended ``ended_ago`` seconds ago."""

    task: str
    seconds: float
    where: tuple[str, ...]
    ended_ago: float | None = None


@final
class RangeSeen(_State, frozen=True):
    """A shard range of a program that has had no owner for too long; ``part`` is its part of the hash space."""

    program: str
    range: str
    part: float
    seconds: float


@final
class WebhookSeen(_State, frozen=True):
    """A webhook configuration with a problem; ``unknown`` means that it cannot be checked."""

    name: str
    problem: str
    unknown: bool = False


@final
class RequestsSeen(_State, frozen=True):
    """Requests that the server rejected with 429 within ``THROTTLED_FOR`` seconds, and failed discovery."""

    throttled: int = 0
    throttled_ago: float = 0.0
    undiscovered: tuple[str, ...] = ()


@final
class ProgramState(_State, frozen=True):
    """Snapshot of a program; ``leader`` is the identity of the leader, or empty."""

    leadership: str
    leader: str
    seconds: float
    max_staleness: float
    controllers: tuple[ControllerSeen, ...] = ()
    caches: tuple[CacheSeen, ...] = ()
    lease: LeaseSeen | None = None
    blocked: BlockedLoop | None = None
    ranges: tuple[RangeSeen, ...] = ()
    webhooks: tuple[WebhookSeen, ...] = ()
    requests: RequestsSeen = RequestsSeen()
    actions: bool = False


def diagnoses(state: ProgramState) -> list[Diagnosis]:
    """Return the parts of the program that do not move, the most urgent first."""
    found = [*_of_program(state)]
    for controller in state.controllers:
        found += _of_controller(controller)
    found += [each for cache in state.caches for each in _of_cache(cache, state.max_staleness)]
    return sorted(found, key=lambda each: (not each.stuck, _URGENCY[each.kind], -(each.seconds or 0.0)))


def _of_program(state: ProgramState) -> Iterator[Diagnosis]:
    blocked = state.blocked
    if blocked is not None and (blocked.ended_ago is None or blocked.seconds >= BLOCKED_FOR):
        yield _blocked_loop(blocked)
    lease = state.lease
    if lease is not None and lease.age > lease.renew_deadline * LEASE_PART:
        yield Diagnosis(
            kind=DiagnosisKind.LEASE_AT_RISK,
            stuck=True,
            subject=f"Lease {lease.name}",
            cause=f"no renewal has succeeded for {lease.age:.1f} s, and leadership ends after "
            f"{lease.renew_deadline:g} s",
            remedy="Check the connection to the API server and the permission to update the Lease.",
            seconds=lease.age,
        )
    for ranges in _grouped(state.ranges, lambda each: each.program):
        first, more = ranges[0], f" and {len(ranges) - 1} more" if len(ranges) > 1 else ""
        yield Diagnosis(
            kind=DiagnosisKind.RANGE_WITHOUT_OWNER,
            stuck=True,
            subject=f"{first.program} range {first.range}{more}",
            cause=f"no replica owns {sum(each.part for each in ranges):.1%} of the hash space",
            remedy="Check that replicas are ready, and that their Leases and the shard map can be written.",
            seconds=max(each.seconds for each in ranges),
            count=len(ranges),
        )
    for webhook in state.webhooks:
        yield Diagnosis(
            kind=DiagnosisKind.WEBHOOK,
            stuck=not webhook.unknown,
            subject=webhook.name,
            cause=webhook.problem,
            remedy="Check the permission to get the webhook configurations, and the connection."
            if webhook.unknown
            else "Write the CA of the served certificate into caBundle, or fix the tool that manages it.",
        )
    requests = state.requests
    if requests.throttled >= THROTTLED and requests.throttled_ago <= THROTTLED_FOR:
        yield Diagnosis(
            kind=DiagnosisKind.THROTTLED,
            stuck=False,
            subject="requests to the API server",
            cause=f"the server rejected {requests.throttled} requests with 429",
            remedy="Send fewer requests, set ClientOptions.qps, or change the FlowSchema of the account.",
            seconds=requests.throttled_ago,
            count=requests.throttled,
        )
    if requests.undiscovered:
        yield Diagnosis(
            kind=DiagnosisKind.STALE_DISCOVERY,
            stuck=False,
            subject=", ".join(requests.undiscovered[:3]),
            cause="discovery of these API groups failed, so their kinds may be outdated",
            remedy="Check the APIService objects and the Pods that serve these groups.",
            count=len(requests.undiscovered),
        )


def _blocked_loop(blocked: BlockedLoop) -> Diagnosis:
    ended = "" if blocked.ended_ago is None else f", {blocked.ended_ago:.0f} s ago"
    return Diagnosis(
        kind=DiagnosisKind.BLOCKED_LOOP,
        stuck=blocked.ended_ago is None,
        subject=blocked.task or "event loop",
        cause=f"a call {'blocks' if blocked.ended_ago is None else 'blocked'} the event loop{ended}",
        remedy="Use asyncio.to_thread or an async library for the blocking call.",
        seconds=blocked.seconds,
        where=blocked.where,
    )


def _of_controller(state: ControllerSeen) -> Iterator[Diagnosis]:
    name, queue = state.name, state.queue
    limit = HELD_AFTER if state.timeout is None else state.timeout + STOPPED_AFTER
    held = [slot for slot in state.running if slot.seconds >= limit]
    for slots in _grouped(held, lambda slot: (slot.where, slot.stopping)):
        first = max(slots, key=lambda slot: slot.seconds)
        stopped = f" after it was told to stop ({first.stopping})" if first.stopping else ""
        remedy = "Set timeout= of the controller, and a timeout of this call."
        if first.stopping:
            remedy = "Let the function end when ctx.cancelled is set, and do not suppress CancelledError."
        yield Diagnosis(
            kind=DiagnosisKind.HELD_SLOT,
            stuck=True,
            cause=f"{len(slots)} of {state.workers} worker slots wait here{stopped}; {queue.queued} keys are queued",
            remedy=remedy,
            where=first.where,
            **_of_keys(name, slots),
        )
    for keys in _grouped(state.parked, lambda key: (key.error, key.where)):
        yield Diagnosis(
            kind=DiagnosisKind.PARKED_KEY,
            stuck=True,
            cause=f"{keys[0].error or 'the last error'} is permanent, so the key is not retried"
            + _total(state.parked, queue.parked, "are parked"),
            remedy="Fix the cause, then change the object or retry the parked key.",
            where=keys[0].where,
            **_of_keys(name, keys),
        )
    failing = [key for key in state.failing if key.attempts >= FAILURES]
    for group in _grouped(failing, lambda key: (key.error, key.where)):
        soonest = min((key.next_in for key in group if key.next_in is not None), default=None)
        then = "the next try is queued" if soonest is None else f"the next try is in {soonest:.1f} s"
        yield Diagnosis(
            kind=DiagnosisKind.BACK_OFF,
            stuck=any(key.seconds >= FAILING_AFTER for key in group),
            cause=f"{group[0].error or 'an error'} in {max(key.attempts for key in group)} attempts, and {then}"
            + _total(state.failing, queue.failing, "fail"),
            remedy="Fix the error; its text is in the log record with this key.",
            where=group[0].where,
            **_of_keys(name, group),
        )
    yield from _of_hot_keys(state)
    if state.paused_for is not None:
        yield Diagnosis(
            kind=DiagnosisKind.PAUSED,
            stuck=True,
            subject=name,
            cause=f"the controller is paused; {queue.queued} keys are queued",
            remedy="Resume the controller.",
            seconds=state.paused_for,
            controller=name,
        )
    added, done = queue.added_rate, queue.done_rate
    if added is not None and done is not None and queue.queued >= BACKLOG and added > done * GROWTH:
        yield Diagnosis(
            kind=DiagnosisKind.GROWING_QUEUE,
            stuck=False,
            subject=f"queue of {name}",
            cause=f"{queue.queued} keys are queued, {added:.0f} per second arrive and {done:.0f} are done",
            remedy="Increase workers= or shorten the reconcile.",
            count=queue.queued,
            controller=name,
        )


def _of_hot_keys(state: ControllerSeen) -> Iterator[Diagnosis]:
    for keys in _grouped(state.hot, lambda key: (key.fight, key.kind, key.other, key.fields)):
        first = keys[0]
        fields = f" ({', '.join(first.fields[:3])})" if first.fields else ""
        target = f"{first.kind} {first.object}{fields}"
        yield Diagnosis(
            kind=DiagnosisKind.FIGHT if first.fight else DiagnosisKind.HOT_LOOP,
            stuck=True,
            cause=f"{first.other or 'an unknown writer'} and this controller change {target} in turn"
            if first.fight
            else f"each reconcile changes {target} and triggers itself; it is slowed down to {first.interval:g} s",
            remedy="Let one writer set each of these fields." if first.fight else "Write only values that change.",
            **_of_keys(state.name, keys),
        )


def _of_cache(cache: CacheSeen, max_staleness: float) -> Iterator[Diagnosis]:
    failing, silent = cache.failing, cache.silent
    state = "is stale" if cache.synced else "never synced"
    seconds = cache.confirmed if cache.confirmed is not None else cache.age
    remedy = "Check the connection to the API server."
    if cache.error and failing is not None and (cache.refused or failing >= UNREACHABLE_AFTER):
        cause = f"the cache {state}: {cache.error}"
        if cache.refused:
            remedy = "Apply the output of `deltaloop generate rbac`, and install the CRD of the kind."
    elif cache.stalled_by:
        cause = f"the cache waits for the full buffer of the handler {cache.stalled_by[0]}"
        remedy = "Shorten the handler, or remove its limit."
    elif not cache.synced and cache.age >= FIRST_LIST:
        cause = "the cache never synced: the first list is not complete"
    elif (
        cache.synced
        and silent is not None
        and (silent >= SILENT_AFTER if cache.bookmarks else seconds >= max_staleness)
    ):
        cause = f"the watch is open, but the server has sent no byte for {silent:.0f} s"
        remedy = "Check the proxies between the program and the API server."
    else:
        return
    yield Diagnosis(
        kind=DiagnosisKind.STALE_CACHE,
        stuck=True,
        subject=cache.name,
        cause=cause,
        remedy=remedy,
        seconds=seconds,
        count=cache.objects,
    )


def _total(listed: Sequence[object], number: int, state: str) -> str:
    """Return the number of keys if the snapshot does not list all."""
    return f"; {number} keys {state} in total" if len(listed) == MOST_LISTED and number > MOST_LISTED else ""


def _grouped(items: Iterable[T], by: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return list(groups.values())


def _of_keys(controller: str, seen: Sequence[SlotSeen | FailingKey | ParkedKey | HotKey]) -> dict[str, Any]:
    keys = [each.key for each in seen]
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return {
        "subject": f"{controller} {keys[0]}{more}",
        "seconds": max(each.seconds for each in seen),
        "count": len(keys),
        "controller": controller,
        "keys": tuple(keys[:_KEYS_NAMED]),
    }
