"""Faults as values, for example "the program crashes after the 2nd create of secrets".

A write is identified by its verb, its resource and its occurrence among the writes of that verb and resource, so a
saved schedule stays valid after unrelated changes of the program.

    crash-before         the program crashes before it sends the write, and restarts a second later
    crash-after          the server executes the write, and the program crashes before it gets the response
    lost-response        the server executes the write, and the connection breaks
    lost-request         the connection breaks before the request arrives
    conflict             the server rejects the write with 409
    busy                 the server rejects the write with 429 and Retry-After
    server-error         the server rejects the write with 500
    delayed-watch        after the write, no watch of the program delivers events for half a minute
    missed-events        the same, but the events are lost, so the program lists again and skips the states between
    partition            after the write, no request of the program reaches the server for half a minute
    pause                after the write, the program is paused for half a minute
    slow-clock           after the write, the program's clock runs at 70 % of the server's until the program ends
    premature            the user does not wait until the program has settled, and continues after this write
    webhook-unavailable  from the write on, webhooks are unavailable for half a minute, so failure policies decide
    webhook-timeout      from the write on, webhooks respond after the server's timeout for half a minute
    webhook-rejects      from the write on, webhooks reject all requests for half a minute, and convert nothing
    stale                the program crashes after the write, and then sees for half a minute an older state, as from a
                         lagging API server: ``stale:create:secrets:2:5`` is five revisions behind
    delayed-kind         after the write, no watch of its kind delivers events for half a minute
    crash-later          the program crashes after changes by others: ``crash-later:create:secrets:2:1`` is one change
    restored             after the write, the server is restored from a backup made after the user's last change
    foreground           from the write on, the user deletes in the foreground, so dependents go during cleanups

Tasks can also run their steps in a different order: ``order:random:3``, ``order:priorities:3`` with a seed.

Source of the idea: Sieve (OSDI 2022): intermediate, stale and unobserved states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.testing.deterministic_loop.core.task_orders import PreemptiveOrder, RandomOrder, TaskOrder
from deltaloop.testing.injected_faults.core.program_writes import (
    WEBHOOK_FAULTS,
    WRITE_VERBS,
    FaultKind,
    ProgramWrite,
    WriteName,
)

MOST_AT_ONCE: Final = 3


_STORY: Final = {
    FaultKind.CRASH_BEFORE: "the program crashes before {}",
    FaultKind.CRASH_AFTER: "the program crashes after {}",
    FaultKind.LOST_RESPONSE: "the response to {} is lost",
    FaultKind.LOST_REQUEST: "the connection breaks before {} arrives",
    FaultKind.CONFLICT: "the server rejects {} with 409 Conflict",
    FaultKind.BUSY: "the server rejects {} with 429 Too Many Requests",
    FaultKind.SERVER_ERROR: "the server rejects {} with 500 Internal Server Error",
    FaultKind.DELAYED_WATCH: "watches deliver no events for 30 s after {}",
    FaultKind.MISSED_EVENTS: "watches deliver no events for 30 s after {}, and then the program must list again",
    FaultKind.PARTITION: "no request of the program reaches the server for 30 s after {}",
    FaultKind.PAUSE: "the program is paused for 30 s after {}",
    FaultKind.SLOW_CLOCK: "the program's clock runs at 70 % of the server's speed after {}",
    FaultKind.PREMATURE: "the user continues immediately after {}",
    FaultKind.WEBHOOK_UNAVAILABLE: "webhooks are unavailable for 30 s, starting with {}",
    FaultKind.WEBHOOK_TIMEOUT: "webhooks respond too late for 30 s, starting with {}",
    FaultKind.WEBHOOK_REJECTS: "webhooks reject all requests for 30 s, starting with {}",
    FaultKind.STALE: "the program crashes after {}, and restarts with an API server that is {behind} revisions behind",
    FaultKind.DELAYED_KIND: "watches of {kind} deliver no events for 30 s after {}",
    FaultKind.CRASH_LATER: "the program crashes at change number {changes} of other clients after {}",
    FaultKind.RESTORED: "after {}, the server is restored from a backup made after the user's last change",
    FaultKind.FOREGROUND: "the user deletes in the foreground, starting with {}",
}
_NUMBERED: Final[dict[str, str]] = {FaultKind.STALE: "revisions", FaultKind.CRASH_LATER: "changes"}
AGEING: Final = WEBHOOK_FAULTS | {
    FaultKind.DELAYED_WATCH,
    FaultKind.MISSED_EVENTS,
    FaultKind.PARTITION,
    FaultKind.PAUSE,
    FaultKind.STALE,
    FaultKind.DELAYED_KIND,
    FaultKind.RESTORED,
}
"""Faults after which a program has an outdated view for a while, so that its claims can be wrong."""
REVISIONS: Final = (1, 2, 3, 5, 8, 13, 21)
"""Distances of stale restarts that are tried first. All other distances up to the last one come after all other
faults.
"""
ORDERS: Final = 5
"""Number of orders of each kind that are tried alone."""
_ORDERED: Final = 0.25
_SEED: Final = "seed"
_SEEDS: Final = 1_000_000
_LATEST: Final = 2  # maximum number of changes for random crashes


@final
class ScheduledFault(msgspec.Struct, frozen=True, order=True):
    """Fault at a write.

    Attributes:
        kind: Kind of the fault.
        write: Write that it strikes.
        behind: Number of revisions for a stale restart, otherwise 0.
        changes: Number of changes by others for ``crash-later``, otherwise 0.
    """

    kind: FaultKind
    write: WriteName
    behind: int = 0
    changes: int = 0

    @property
    def story(self) -> str:
        """Description of the fault."""
        told = _STORY[self.kind]
        return told.format(f"the {self.write}", behind=self.behind, changes=self.changes, kind=self.write.resource)

    def __str__(self) -> str:
        write = self.write
        part = f"/{write.subresource}" if write.subresource else ""
        number = f":{self.behind or self.changes}" if self.kind in _NUMBERED else ""
        return f"{self.kind.value}:{write.verb}:{write.resource}{part}:{write.occurrence}{number}"

    @classmethod
    def parse(cls, text: str) -> ScheduledFault:
        """Parse the result of ``str``.

        Raises:
            InvalidArgumentError: If the text is invalid.
        """
        parts = text.strip().split(":")
        if len(parts) != (5 if parts[0] in _NUMBERED else 4):
            raise InvalidArgumentError(
                f"must be like crash-after:create:secrets:2, or like stale:create:secrets:2:5 for"
                f" {' and '.join(_NUMBERED)}, got {text!r}.",
                argument="fault",
            )
        kind, verb, place, occurrence, *numbers = parts
        if kind not in FaultKind.__members__.values():
            raise InvalidArgumentError(
                f"must be one of {', '.join(FaultKind)}, got {text!r}.", argument="kind of a fault"
            )
        if verb not in (*WRITE_VERBS, "apply"):
            raise InvalidArgumentError(
                f"must be one of {', '.join((*WRITE_VERBS, 'apply'))}, got {text!r}.", argument="verb of a fault"
            )
        if not occurrence.isdecimal() or int(occurrence) < 1:
            raise InvalidArgumentError(f"must be a number >= 1, got {text!r}.", argument="occurrence of a write")
        if numbers and (not numbers[0].isdecimal() or int(numbers[0]) < 1):
            raise InvalidArgumentError(f"must be a number >= 1, got {text!r}.", argument=f"number of {_NUMBERED[kind]}")
        resource, _, subresource = place.partition("/")
        write = WriteName(verb, resource, subresource, int(occurrence))
        number = int(numbers[0]) if numbers else 0
        is_stale = kind == FaultKind.STALE
        return cls(FaultKind(kind), write, number if is_stale else 0, 0 if is_stale else number)


class OrderKind(StrEnum):
    RANDOM = "random"
    PRIORITIES = "priorities"


_ORDERS: Final[dict[OrderKind, Callable[[Callable[[], float]], TaskOrder]]] = {
    OrderKind.RANDOM: RandomOrder,
    OrderKind.PRIORITIES: PreemptiveOrder,
}
_ORDER: Final = "order"


@final
class ScheduledOrder(msgspec.Struct, frozen=True, order=True):
    """Different order of task steps for a whole run.

    Attributes:
        kind: Kind of the order.
        seed: Seed of the order.
    """

    kind: OrderKind
    seed: int

    @property
    def story(self) -> str:
        """Description of the order."""
        how = "random order" if self.kind is OrderKind.RANDOM else "the order of random priorities"
        return f"tasks run in {how} ({self.seed})"

    def task_order(self, draw: Callable[[], float]) -> TaskOrder:
        """Return the task order for a run.

        Args:
            draw: Function that returns random numbers in [0, 1) for this order's seed.
        """
        return _ORDERS[self.kind](draw)

    def __str__(self) -> str:
        return f"{_ORDER}:{self.kind.value}:{self.seed}"

    @classmethod
    def parse(cls, text: str) -> ScheduledOrder:
        """Parse the result of ``str``.

        Raises:
            InvalidArgumentError: If the text is invalid.
        """
        _, *parts = text.strip().split(":")
        kind, seed = parts if len(parts) == 2 else ("", "")
        if kind not in OrderKind.__members__.values() or not seed.isdecimal():
            raise InvalidArgumentError(
                f"must be like order:random:3 or order:priorities:3, got {text!r}.", argument="order"
            )
        return cls(OrderKind(kind), int(seed))


Schedule: TypeAlias = tuple[ScheduledFault | ScheduledOrder, ...]


def parse_schedule(text: str) -> Schedule:
    """Parse faults that are separated by commas.

    An empty text is a run without faults.

    Raises:
        InvalidArgumentError: If a fault is invalid.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if part.partition(":")[0] == _SEED:
            raise InvalidArgumentError(f"must not contain a seed, got {part}. Use parse_replay.", argument="schedule")
    return tuple(
        ScheduledOrder.parse(part) if part.partition(":")[0] == _ORDER else ScheduledFault.parse(part) for part in parts
    )


def schedule_text(schedule: Schedule) -> str:
    return ",".join(map(str, schedule))


def parse_replay(text: str) -> tuple[int | None, Schedule]:
    """Parse ``Failure.replay`` into the seed, or None without a seed, and the schedule.

    Raises:
        InvalidArgumentError: If the text is invalid.
    """
    first, _, others = text.partition(",")
    name, _, seed = first.strip().partition(":")
    if name != _SEED:
        return None, parse_schedule(text)
    if not seed.removeprefix("-").isdecimal():
        raise InvalidArgumentError(f"must be a number like seed:3, got {first.strip()!r}.", argument="seed")
    return int(seed), parse_schedule(others)


def replay_text(schedule: Schedule, *, seed: int) -> str:
    """Format a schedule, preceded by the seed unless it is 0, for ``parse_replay``."""
    return ",".join([*([f"{_SEED}:{seed}"] if seed else []), *map(str, schedule)])


def names_of(writes: Iterable[ProgramWrite]) -> tuple[WriteName, ...]:
    return tuple(dict.fromkeys(write.name for write in writes))


Kind: TypeAlias = FaultKind | OrderKind
KNOWN_KINDS: Final[tuple[Kind, ...]] = (*FaultKind, *OrderKind)
ON_REQUEST: Final = frozenset({FaultKind.RESTORED, FaultKind.FOREGROUND})
"""Kinds that are only tried if they are requested, because many programs cannot notice them."""
ALL_KINDS: Final[tuple[Kind, ...]] = tuple([kind for kind in KNOWN_KINDS if kind not in ON_REQUEST])
"""Kinds that are tried by default, in order."""


def parse_kinds(text: str) -> tuple[Kind, ...]:
    """Parse names of kinds that are separated by commas. ``order`` means both kinds of task orders."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    known = {kind.value: (kind,) for kind in FaultKind} | {_ORDER: tuple[Kind, ...](OrderKind)}
    unknown = sorted(names - {*known})
    if unknown or not names:
        raise InvalidArgumentError(f"must be among {', '.join(known)}, got {text!r}.", argument="kinds of faults")
    wanted = {kind for name in names for kind in known[name]}
    return tuple(kind for kind in KNOWN_KINDS if kind in wanted)


def in_question(kinds: Sequence[Kind], *, webhooks: bool) -> tuple[Kind, ...]:
    return tuple(kind for kind in kinds if webhooks or kind not in WEBHOOK_FAULTS)


@final
class Pasts:
    """States that stale restarts have shown, because each state needs to be shown only once."""

    def __init__(self) -> None:
        self._known: dict[WriteName, tuple[int, ...]] = {}
        self._shown: dict[WriteName, set[int]] = {}

    def ran(self, schedule: Schedule, pasts: Sequence[tuple[int, ...]]) -> None:
        """Process the result of a stale restart, with the numbers of revisions at which its state changes."""
        if len(schedule) != 1 or len(pasts) != 1:
            return
        (fault,) = schedule
        if isinstance(fault, ScheduledFault) and fault.kind is FaultKind.STALE:
            self._known[fault.write] = pasts[0]
            self._shown.setdefault(fault.write, set()).add(fault.behind)

    def is_new(self, name: WriteName, behind: int) -> bool:
        """Return whether a restart after this write, ``behind`` revisions behind, would show a new state."""
        known = self._known.get(name)
        if known is None:
            return True
        state = _last_up_to(behind, known)
        return state > 0 and state not in {_last_up_to(shown, known) for shown in self._shown[name]}


def _last_up_to(most: int, numbers: Iterable[int]) -> int:
    return max((number for number in numbers if number <= most), default=0)


def later_crashes(names: Sequence[WriteName], others: Sequence[int]) -> tuple[ScheduledFault, ...]:
    """Return the crashes between writes that differ from crashes at writes, because others have changed the state."""
    found: list[ScheduledFault] = []
    for number, name in enumerate(names, start=1):
        changes = sum(1 for before in others if before == number)
        most = changes if number == len(names) else changes - 1
        found += [ScheduledFault(FaultKind.CRASH_LATER, name, changes=change) for change in range(1, most + 1)]
    return tuple(found)


def systematic(
    names: Sequence[WriteName],
    kinds: Sequence[Kind] = ALL_KINDS,
    pasts: Pasts | None = None,
    *,
    later: Sequence[ScheduledFault] = (),
) -> Iterator[Schedule]:
    """Yield all schedules with one fault: each kind at each write, then task orders.

    The remaining distances of stale restarts come last. The caller updates ``pasts`` during the iteration.
    """
    pasts = Pasts() if pasts is None else pasts
    first = [(behind, name) for behind in REVISIONS for name in names]
    others = [(behind, name) for behind in range(1, REVISIONS[-1]) if behind not in REVISIONS for name in names]
    for kind in kinds:
        if kind is FaultKind.STALE:
            yield from _stale(first, pasts)
        elif kind is FaultKind.CRASH_LATER:
            yield from ((fault,) for fault in later)
        elif isinstance(kind, FaultKind):
            # A fault that never ends has the same effect at each write before the deletion.
            for name in names[:1] if kind is FaultKind.FOREGROUND else names:
                yield (ScheduledFault(kind, name),)
        elif names:
            for seed in range(1, 1 + ORDERS):
                yield (ScheduledOrder(kind, seed),)
    if FaultKind.STALE in kinds:
        yield from _stale(others, pasts)


def _stale(restarts: Iterable[tuple[int, WriteName]], pasts: Pasts) -> Iterator[Schedule]:
    for behind, name in restarts:
        if pasts.is_new(name, behind):
            yield (ScheduledFault(FaultKind.STALE, name, behind),)


def combining(kinds: Sequence[Kind]) -> tuple[FaultKind, ...]:
    """Return the faults that can be combined. ``premature`` is excluded, because it changes the scenario."""
    return tuple(kind for kind in kinds if isinstance(kind, FaultKind) and kind is not FaultKind.PREMATURE)


def drawn_fault(name: WriteName, kinds: Sequence[FaultKind], draw: Callable[[], float]) -> ScheduledFault:
    """Return a random fault of at least one kind that strikes a write."""
    kind = kinds[int(draw() * len(kinds))]
    match kind:
        case FaultKind.STALE:
            return ScheduledFault(kind, name, behind=1 + int(draw() * REVISIONS[-1]))
        case FaultKind.CRASH_LATER:
            return ScheduledFault(kind, name, changes=1 + int(draw() * _LATEST))
        case _:
            return ScheduledFault(kind, name)


def combined(names: Sequence[WriteName], draw: Callable[[], float], kinds: Sequence[Kind] = ALL_KINDS) -> Schedule:
    """Return a random schedule with two or three faults at different writes, sometimes with a task order."""
    wanted = min(len(names), 2 + int(draw() * (MOST_AT_ONCE - 1)))
    places: set[int] = set()
    while len(places) < wanted:
        places.add(int(draw() * len(names)))
    faults, orders = combining(kinds), tuple(kind for kind in kinds if isinstance(kind, OrderKind))
    found: list[ScheduledFault | ScheduledOrder] = [drawn_fault(names[place], faults, draw) for place in sorted(places)]
    if orders and draw() < _ORDERED:
        found.append(ScheduledOrder(orders[int(draw() * len(orders))], 1 + int(draw() * _SEEDS)))
    return tuple(found)


def shorter(schedule: Schedule) -> Iterator[Schedule]:
    if len(schedule) > 1:
        for index in range(len(schedule)):
            yield schedule[:index] + schedule[index + 1 :]
