"""A reflector against a server that fails in every way there is: it always comes back, and never asks like mad.

The server here is a model in plain Python: objects with versions, the events of their changes, lists in pages of two,
and a point before which versions are expired. Two promises are checked after any sequence of changes and failures:

* once the server is healthy, the mirror equals the server after a bounded number of steps;
* the number of requests is bounded by the time that passed, whatever the server does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.core.listwatch import (
    DECISIONS,
    Decision,
    Fault,
    List,
    Listed,
    Phase,
    Place,
    Reaction,
    ReflectorMachine,
    ReflectorOptions,
    Verdict,
    Wait,
    Watch,
)
from deltaloop.client.resource_list import ResourceList
from tests.cache.fake_source import api_error, broken, expired, refused, too_large
from tests.cache.machines import run_machine
from tests.cache.objects import nameless, pod

FAULTS: dict[str, Callable[[], Exception]] = {
    "expired": expired,
    "too large": too_large,
    "busy": lambda: api_error(429),
    "busy, says how long": lambda: api_error(429, retry_after=3.0),
    "internal": lambda: api_error(500),
    "unavailable": lambda: api_error(503),
    "forbidden": lambda: api_error(403),
    "refused": refused,
    "broken": broken,
    "malformed": lambda: MalformedEventError("no event"),
    "bug": lambda: TypeError("a bug of the client"),
}
ENDS = ["clean", "refused by the store", *FAULTS]
PAGE = 2


def fault_of(name: str) -> Exception:
    return FAULTS[name]()


class Server:
    """The model of an API server."""

    def __init__(self) -> None:
        self.version = 10
        self.oldest = 0
        self.objects: dict[str, Resource] = {}
        self.events: list[tuple[int, WatchEvent]] = []
        self.snapshots: dict[str, tuple[Resource, ...]] = {}
        for name in ("a", "b", "c"):
            self.change(name, delete=False)

    def change(self, name: str, *, delete: bool) -> None:
        if delete and name not in self.objects:
            return
        self.version += 1
        obj = pod(name, self.version)
        if delete:
            del self.objects[name]
            event = WatchEvent(EventType.DELETED, obj)
        else:
            event = WatchEvent(EventType.MODIFIED if name in self.objects else EventType.ADDED, obj)
            self.objects[name] = obj
        self.events.append((self.version, event))

    def compact(self) -> None:
        self.oldest = self.version
        self.snapshots.clear()

    def list(self, options: ListOptions) -> ResourceList[Resource]:
        if options.continue_:
            if options.continue_ not in self.snapshots:
                raise expired()
            return ResourceList(self.snapshots[options.continue_], str(self.version))
        if options.resource_version not in {"", "0"} and int(options.resource_version) > self.version:
            raise too_large()
        items = tuple(self.objects.values())
        if not options.limit or len(items) <= PAGE:
            return ResourceList(items, str(self.version))
        token = str(self.version)
        self.snapshots[token] = items[PAGE:]
        return ResourceList(items[:PAGE], str(self.version), token)

    def since(self, version: str) -> Sequence[WatchEvent]:
        if int(version) < self.oldest:
            raise expired()
        return [event for at, event in self.events if at > int(version)]


def make_machine(make: Callable[[], ReflectorMachine]) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.machine = make()
            self.server = Server()
            self.mirror: dict[str, Resource] = {}
            self.stream: list[WatchEvent] | None = None
            self.now = 0.0
            self.requests = 0
            self.reported = 0
            self.failures = 0

        # The world moves

        @rule(name=st.sampled_from(["a", "b", "c", "d"]), delete=st.booleans())
        def change(self, name: str, delete: bool) -> None:
            before = len(self.server.events)
            self.server.change(name, delete=delete)
            if self.stream is not None:
                self.stream += [event for _, event in self.server.events[before:]]

        @rule()
        def compact(self) -> None:
            self.server.compact()

        @rule(seconds=st.sampled_from([0.1, 1.0, 130.0]))
        def time_passes(self, seconds: float) -> None:
            self.now += seconds

        # The reflector goes on, and its request fails or not

        @precondition(lambda self: self.stream is None)
        @rule(fault=st.none() | st.sampled_from([*FAULTS]), chance=st.sampled_from([0.0, 0.5, 0.99]))
        def step(self, fault: str | None, chance: float) -> None:
            match self.machine.ask(self.now, chance=chance):
                case Wait(until):
                    assert until > self.now
                    self.now = until
                case List(options):
                    self.requests += 1
                    self.list(options, fault, chance)
                case Watch(options):
                    self.requests += 1
                    self.watch(options, fault, chance)

        def list(self, options: ListOptions, fault: str | None, chance: float) -> None:
            try:
                if fault is not None:
                    raise fault_of(fault)
                page = self.server.list(options)
            except Exception as error:  # noqa: BLE001 - a fault may be any of them
                self.failed(self.machine.list_failed(error, self.now, chance=chance))
                return
            outcome = self.machine.listed(page, self.now, chance=chance)
            if isinstance(outcome, Listed):
                assert outcome.skipped == 0
                self.mirror = {item.name: item for item in outcome.items}
            else:
                assert outcome is None, "a healthy page is no failure"

        def watch(self, options: ListOptions, fault: str | None, chance: float) -> None:
            assert options.resource_version == self.machine.resource_version
            assert options.allow_watch_bookmarks
            try:
                if fault is not None:
                    raise fault_of(fault)
                events = self.server.since(options.resource_version)
            except Exception as error:  # noqa: BLE001 - a fault may be any of them
                self.failed(self.machine.watch_failed(error, self.now, chance=chance))
                return
            self.machine.watch_opened(self.now)
            self.stream = [*events]

        @precondition(lambda self: self.stream)
        @rule(refuse=st.booleans())
        def event(self, refuse: bool) -> None:
            assert self.stream
            event = self.stream.pop(0)
            assert self.machine.watch_event(event, self.now) is Verdict.APPLY
            if refuse:
                self.stream = None
                self.failed(self.machine.store_failed(ValueError("no"), self.now, chance=0.0))
            elif event.type is EventType.DELETED:
                self.mirror.pop(event.object.name, None)
            else:
                self.mirror[event.object.name] = event.object

        @precondition(lambda self: self.stream is not None)
        @rule()
        def odd_event(self) -> None:
            assert self.machine.watch_event(WatchEvent(EventType.ADDED, nameless(9999)), self.now) is Verdict.SKIP

        @precondition(lambda self: self.stream == [])
        @rule(name=st.sampled_from(["a", "b"]))
        def odd_event_before_a_gap(self, name: str) -> None:
            self.odd_event()
            self.now += 1.0
            self.end(None, 0.0)
            self.change(name, False)

        @precondition(lambda self: self.stream == [])
        @rule()
        def bookmark(self) -> None:
            sent = WatchEvent(EventType.BOOKMARK, nameless(self.server.version))
            assert self.machine.watch_event(sent, self.now) is Verdict.BOOKMARK

        @precondition(lambda self: self.stream is not None)
        @rule(fault=st.none() | st.sampled_from([*FAULTS]), chance=st.sampled_from([0.0, 0.99]))
        def end(self, fault: str | None, chance: float) -> None:
            self.stream = None
            if fault is not None:
                self.failed(self.machine.watch_failed(FAULTS[fault](), self.now, chance=chance))
                return
            reaction = self.machine.watch_ended(self.now, chance=chance)
            if reaction is not None:
                self.failed(reaction)

        @rule(name=st.sampled_from(["a", "b", "c"]), expire=st.booleans())
        def change_between_pages(self, name: str, expire: bool) -> None:
            """Delete what the first page brought while the second one is asked for."""
            for _ in range(4):
                if self.stream is not None:
                    self.end("bug", 0.0)
                effect = self.machine.ask(self.now, chance=0.0)
                if isinstance(effect, List) and effect.options.continue_:
                    self.change(name, True)
                    if expire:
                        self.compact()
                    break
                self.step(None, 0.0)

        @rule(
            rounds=st.integers(4, 10), what=st.sampled_from(["event and end", "end", "list expired", "watch expired"])
        )
        def hammer(self, rounds: int, what: str) -> None:
            """Fail in the same way again and again, as fast as the reflector lets us."""
            for _ in range(rounds):
                if self.stream is not None:
                    if what == "event and end":
                        self.change("a", False)
                        while self.stream:
                            self.event(False)
                    self.end("expired" if what == "watch expired" else None, 0.0)
                for _ in range(6):
                    if self.stream is None:
                        self.step("expired" if what == "list expired" else None, 0.0)

        def failed(self, reaction: Reaction) -> None:
            self.failures += 1
            seen = self.machine.statistics()
            assert seen.last_error is reaction.error
            assert seen.failing_since is not None

        # The two promises

        @rule()
        def heal(self) -> None:
            """Once the server is healthy, the mirror equals it, soon."""
            for _ in range(40):
                if self.stream is None:
                    self.step(None, 0.0)
                elif self.stream:
                    self.event(False)
                else:
                    break
            assert self.stream == [], "did not come back to watching"
            assert self.mirror == self.server.objects
            assert self.machine.phase is Phase.STREAMING

        @invariant()
        def never_asks_like_mad(self) -> None:
            # At once, without any wait: two lists in two pages each and one in full, a watch, and one more of each on
            # its account.
            assert self.requests <= 12 * (1 + self.now / 0.8), f"{self.requests} requests in {self.now} s"

        @invariant()
        def every_failure_is_counted(self) -> None:
            assert self.machine.statistics().errors == self.failures

        def teardown(self) -> None:
            self.heal()

    return Machine


@pytest.mark.parametrize(
    "options",
    [ReflectorOptions(), ReflectorOptions(page_size=PAGE), ReflectorOptions(max_internal_error_retry=1000.0)],
    ids=["defaults", "always paged", "retries internal errors"],
)
def test_it_always_comes_back_and_never_asks_like_mad(options: ReflectorOptions) -> None:
    run_machine(make_machine(lambda: ReflectorMachine(options)))


class ResumesAtOnceForEver(ReflectorMachine):
    """As client-go does."""

    def _may_resume_at_once(self, now: float) -> bool:
        return True


class BelievesShortWatches(ReflectorMachine):
    """An empty stream of no length counts as a clean end."""

    def _was_useless(self, now: float) -> bool:
        return False

    def _may_resume_at_once(self, now: float) -> bool:
        return True


class ListsTheNewestAtOnceForEver(ReflectorMachine):
    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().list_failed(error, now, chance=chance)
        if reaction.place is Place.LIST and self._version_unavailable:
            self._go_on(Phase.LISTING)
        return reaction


class KeepsThePagesOfALostList(ReflectorMachine):
    """Begins the full list with what the lost pages brought."""

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        lost = self._round.items if self._round else []
        reaction = super().list_failed(error, now, chance=chance)
        if reaction.decision is Decision.LIST_IN_FULL_NOW and self._round is not None:
            self._round.items = lost
            self._server_pages = True
        return reaction


class ResumesAfterExpired(ReflectorMachine):
    """Watches on from a version that the server has forgotten."""

    def watch_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().watch_failed(error, now, chance=chance)
        if isinstance(error, type(expired())):
            self._after_wait = Phase.CONNECTING
        return reaction


class MovesOnBeforeTheEventIsApplied(ReflectorMachine):
    """Forgets that the store refused an event: watches on behind it."""

    def store_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().store_failed(error, now, chance=chance)
        self._after_wait = Phase.CONNECTING
        return reaction


class MovesOnWithOddEvents(ReflectorMachine):
    def watch_event(self, event: WatchEvent, now: float) -> Verdict:
        verdict = super().watch_event(event, now)
        self.resource_version = event.object.resource_version
        return verdict


class TakesTheVersionOfTheLastPage(ReflectorMachine):
    def listed(self, page: ResourceList[Resource], now: float, *, chance: float) -> Listed | Reaction | None:
        outcome = super().listed(page, now, chance=chance)
        if self._round is not None:
            self._round.pages = 0
        return outcome


class NeverAsksForTheNewest(ReflectorMachine):
    """After a refused version, asks for that version again."""

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().list_failed(error, now, chance=chance)
        self._version_unavailable = False
        return reaction


@pytest.mark.parametrize(
    "mutant",
    [
        ResumesAtOnceForEver,
        BelievesShortWatches,
        ListsTheNewestAtOnceForEver,
        KeepsThePagesOfALostList,
        ResumesAfterExpired,
        MovesOnBeforeTheEventIsApplied,
        MovesOnWithOddEvents,
        TakesTheVersionOfTheLastPage,
        NeverAsksForTheNewest,
    ],
)
def test_the_machine_catches_seeded_bugs(mutant: type[ReflectorMachine]) -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        run_machine(make_machine(lambda: mutant(ReflectorOptions(page_size=PAGE))), of_a_mutant=True)


def test_the_table_names_only_what_is_not_the_default() -> None:
    assert Decision.LIST_LATER not in DECISIONS.values()
    assert {place for place, _ in DECISIONS} <= set(Place)
    assert {fault for _, fault in DECISIONS} <= set(Fault)
