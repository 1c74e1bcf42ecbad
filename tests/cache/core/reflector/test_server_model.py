"""A reflector against a server that fails in every way there is: it always comes back, and never asks like mad.

The server here is a model in plain Python: objects with versions, the events of their changes, lists in pages of two
or streamed, a point before which versions are expired, and backups from which it may be restored. Two promises are
checked after any sequence of changes and failures:

* once the server is healthy, the mirror equals the server after a bounded number of steps;
* the number of requests is bounded by the time that passed, whatever the server does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop._internal.pacing import Wait
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.core.reflector.effects import CompleteList, ListPage, OpenWatch, OpenWatchList, Probe
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.core.reflector.recoveries import RECOVERIES, ErrorKind
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import api_error, broken, expired, initial_events_end, refused, too_large
from tests.cache.machines import run_machine
from tests.cache.objects import nameless, pod

FAULTS: dict[str, Callable[[], Exception]] = {
    "expired": expired,
    "too large": too_large,
    "busy": lambda: api_error(429),
    "busy, says how long": lambda: api_error(429, retry_after=3.0),
    "internal": lambda: api_error(500),
    "unavailable": lambda: api_error(503),
    "invalid": lambda: api_error(422),
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
        self.version = 1_000_000
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

    def restore(self, version: int) -> None:
        """Go back to a backup: lower versions, and a watch from the future is silent."""
        self.version = version
        self.objects = {name: pod(name, self.version) for name in self.objects}
        self.events.clear()
        self.snapshots.clear()
        self.oldest = 0

    def stream_list(self, options: ListOptions) -> Sequence[WatchEvent]:
        if options.resource_version and int(options.resource_version) > self.version:
            raise too_large()
        return [WatchEvent(EventType.ADDED, obj) for obj in self.objects.values()] + [initial_events_end(self.version)]

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
            self.restored = False

        # The world moves

        @precondition(lambda self: self.machine.options.detect_restore and self.machine.resource_version)
        @rule(back=st.sampled_from([500, 5000]))
        def restore(self, back: int) -> None:
            # To a state so long ago that it does not catch up before anybody looks: that cannot be seen.
            self.server.restore(int(self.machine.resource_version) - back)
            self.restored = True
            if self.stream is not None:
                self.end("broken", 0.0)

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
        @rule(
            fault=st.none() | st.sampled_from([*FAULTS]),
            random=st.sampled_from([0.0, 0.5, 0.99]),
            cut=st.none() | st.sampled_from([0, 2]),
        )
        def step(self, fault: str | None, random: float, cut: int | None = None) -> None:
            match self.machine.ask(self.now, random=random):
                case Wait(until):
                    assert until > self.now
                    self.now = until
                case ListPage(options):
                    self.requests += 1
                    self.list(options, fault, random)
                case OpenWatch(options):
                    self.requests += 1
                    self.watch(options, fault, random)
                case OpenWatchList(options):
                    self.requests += 1
                    self.stream_a_list(options, fault, random, cut)
                case Probe(options):
                    self.requests += 1
                    assert options == ListOptions(limit=1)
                    self.probe(fault, random)

        def probe(self, fault: str | None, random: float) -> None:
            if fault is not None:
                self.failed(self.machine.probe_failed(fault_of(fault), self.now, random=random))
                return
            reaction = self.machine.probed(str(self.server.version), self.now)
            if reaction is not None:
                self.failed(reaction)

        def stream_a_list(self, options: ListOptions, fault: str | None, random: float, cut: int | None) -> None:
            assert options.send_initial_events
            try:
                if fault is not None and cut is None:
                    raise fault_of(fault)
                events = self.server.stream_list(options)
            except Exception as error:  # noqa: BLE001 - a fault may be any of them
                self.failed(self.machine.watch_list_failed(error, self.now, random=random))
                return
            self.machine.watch_list_opened(self.now)
            for event in events[:cut]:
                if self.machine.initial_events([event], self.now):
                    continue
                outcome = self.machine.initial_event(event, self.now)
                if isinstance(outcome, CompleteList):
                    self.mirror = {item.name: item for item in outcome.items}
                    assert self.machine.resource_version == str(self.server.version)
                    self.stream = []
                    return
                assert outcome == "hold"
            if fault is not None:
                self.failed(self.machine.watch_list_failed(fault_of(fault), self.now, random=random))
            else:
                self.failed(self.machine.watch_list_ended(self.now, random=random))

        def list(self, options: ListOptions, fault: str | None, random: float) -> None:
            try:
                if fault is not None:
                    raise fault_of(fault)
                page = self.server.list(options)
            except Exception as error:  # noqa: BLE001 - a fault may be any of them
                self.failed(self.machine.list_failed(error, self.now, random=random))
                return
            outcome = self.machine.listed(page, self.now, random=random)
            if isinstance(outcome, CompleteList):
                assert outcome.skipped == 0
                self.mirror = {item.name: item for item in outcome.items}
            else:
                assert outcome is None, "a healthy page is no failure"

        def watch(self, options: ListOptions, fault: str | None, random: float) -> None:
            assert options.resource_version == self.machine.resource_version
            assert options.allow_watch_bookmarks
            try:
                if fault is not None:
                    raise fault_of(fault)
                events = self.server.since(options.resource_version)
            except Exception as error:  # noqa: BLE001 - a fault may be any of them
                self.failed(self.machine.watch_failed(error, self.now, random=random))
                return
            self.machine.watch_opened(self.now)
            self.stream = [*events]

        @precondition(lambda self: self.stream)
        @rule(refuse=st.booleans())
        def event(self, refuse: bool) -> None:
            assert self.stream
            event = self.stream.pop(0)
            assert self.machine.watch_event(event, self.now) == "apply"
            if refuse:
                self.stream = None
                self.failed(self.machine.store_failed(ValueError("no"), self.now, random=0.0))
            elif event.type is EventType.DELETED:
                self.mirror.pop(event.object.name, None)
            else:
                self.mirror[event.object.name] = event.object

        @precondition(lambda self: self.stream is not None)
        @rule()
        def odd_event(self) -> None:
            assert self.machine.watch_event(WatchEvent(EventType.ADDED, nameless(9_999_999)), self.now) == "skip"

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
            assert self.machine.watch_event(sent, self.now) == "bookmark"

        @precondition(lambda self: self.stream is not None)
        @rule(fault=st.none() | st.sampled_from([*FAULTS]), random=st.sampled_from([0.0, 0.99]))
        def end(self, fault: str | None, random: float) -> None:
            self.stream = None
            if fault is not None:
                self.failed(self.machine.watch_failed(FAULTS[fault](), self.now, random=random))
                return
            reaction = self.machine.watch_ended(self.now, random=random)
            if reaction is not None:
                self.failed(reaction)

        @rule(name=st.sampled_from(["a", "b", "c"]), expire=st.booleans())
        def change_between_pages(self, name: str, expire: bool) -> None:
            """Delete what the first page brought while the second one is asked for."""
            for _ in range(4):
                if self.stream is not None:
                    self.end("bug", 0.0)
                effect = self.machine.ask(self.now, random=0.0)
                if isinstance(effect, ListPage) and effect.options.continue_:
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

        @rule(rounds=st.integers(2, 8), cut=st.sampled_from([0, 2]))
        def hammer_streamed_lists(self, rounds: int, cut: int) -> None:
            """Cut every streamed list, as fast as the reflector lets us."""
            for _ in range(rounds):
                if self.stream is not None:
                    self.end("expired", 0.0)
                for _ in range(6):
                    if self.stream is None:
                        self.step(None, 0.0, cut)

        def failed(self, reaction: Reaction) -> None:
            self.failures += 1
            seen = self.machine.statistics()
            assert seen.last_error is reaction.error
            assert seen.failing_since is not None

        # The two promises

        @rule()
        def heal(self) -> None:
            """Once the server is healthy, the mirror equals it, soon."""
            self.go_on()
            if self.restored:  # it may watch from the future; that shows when the stream has ended
                self.restored = False
                self.now += 61.0
                self.end(None, 0.0)
                self.go_on()
            assert self.stream == [], "did not come back to watching"
            assert self.mirror == self.server.objects
            assert self.machine.phase is ReflectorPhase.STREAMING

        def go_on(self) -> None:
            for _ in range(40):
                if self.stream is None:
                    self.step(None, 0.0)
                elif self.stream:
                    self.event(False)
                else:
                    break

        @invariant()
        def never_asks_like_mad(self) -> None:
            # At once, without any wait: two lists in two pages each and one in full, a watch, and one more of each on
            # its account; two streamed lists and two probes where there are such.
            options = self.machine.options
            burst = 12 + 2 * options.watch_list + 2 * options.detect_restore
            assert self.requests <= burst * (1 + self.now / 0.8), f"{self.requests} requests in {self.now} s"

        @invariant()
        def every_failure_is_counted(self) -> None:
            assert self.machine.statistics().errors == self.failures

        def teardown(self) -> None:
            self.heal()

    return Machine


@pytest.mark.parametrize(
    "options",
    [
        ReflectorOptions(),
        ReflectorOptions(page_size=PAGE, watch_list=False, detect_restore=False),
        ReflectorOptions(max_internal_error_retry=1000.0, watch_list=False),
    ],
    ids=["defaults", "always paged", "retries internal errors"],
)
def test_reflector_recovers_and_request_rate_is_limited(options: ReflectorOptions) -> None:
    run_machine(make_machine(lambda: ReflectorMachine(options)))


def test_recovery_table_has_no_default_entries() -> None:
    assert Recovery.LIST_LATER not in RECOVERIES.values()
    assert {place for place, _ in RECOVERIES} <= set(Operation)
    assert {fault for _, fault in RECOVERIES} <= set(ErrorKind)
