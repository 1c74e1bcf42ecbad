"""The table of a reflector's states agrees with the machine."""

from __future__ import annotations

import copy
from collections.abc import Callable
from operator import methodcaller
from typing import Any, ClassVar

import pytest
from tools.diagrams.machines.reflector import STATES, State

from deltaloop._internal.pacing import Wait
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector.effects import ListPage, OpenWatchList, Probe
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.core.reflector.states import FEEDS, ReflectorPhase
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.core.reflector.test_server_model import FAULTS
from tests.cache.fake_source import initial_events_end
from tests.cache.objects import pod

Steps = set[tuple[ReflectorPhase, ReflectorPhase]]


class Observed(ReflectorMachine):  # type: ignore[misc]  # of a final class
    """Writes down which phase follows which."""

    steps: ClassVar[Steps] = set()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "phase" and hasattr(self, "phase"):
            type(self).steps.add((self.phase, value))
        super().__setattr__(name, value)


class ListsAfterACleanEnd(Observed):  # type: ignore[misc]  # of a final class
    """Lists again instead of watching on."""

    steps: ClassVar[Steps] = set()

    def watch_ended(self, now: float, *, random: float) -> Reaction | None:
        reaction = super().watch_ended(now, random=random)
        if self.phase is ReflectorPhase.CONNECTING:
            self.phase = ReflectorPhase.LISTING
        return reaction


class NeverWaitsForABusyServer(Observed):  # type: ignore[misc]  # of a final class
    """Lists in pages at once where a streamed list was refused because the server is busy."""

    steps: ClassVar[Steps] = set()

    def watch_list_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        receiving = self.phase is ReflectorPhase.RECEIVING
        reaction = super().watch_list_failed(error, now, random=random)
        if receiving:
            self.steps.discard((ReflectorPhase.RECEIVING, ReflectorPhase.WAITING))
            self.phase = ReflectorPhase.LISTING
        return reaction


Move = Callable[[Observed], object]


def moves(machine: Observed, now: float) -> list[Move]:
    """All that can happen to a machine next: answers, ends, and every kind of failure."""
    faults = [make() for make in FAULTS.values()]
    watch_fails: list[Move] = [
        *(methodcaller("watch_failed", fault, now, random=0.0) for fault in faults),
        lambda m: m.store_failed(ValueError(), now, random=0.0),
    ]
    list_fails = [methodcaller("list_failed", fault, now, random=0.0) for fault in faults]
    stream_fails = [methodcaller("watch_list_failed", fault, now, random=0.0) for fault in faults]
    probe_fails = [methodcaller("probe_failed", fault, now, random=0.0) for fault in faults]
    if machine.phase is ReflectorPhase.STREAMING:
        return [
            lambda m: m.watch_event(WatchEvent(EventType.ADDED, pod("b", 120)), now),
            lambda m: m.watch_ended(now, random=0.0),
            lambda m: m.looked("50", now),
            *watch_fails,
        ]
    if machine.phase is ReflectorPhase.RECEIVING:
        return [
            lambda m: m.initial_event(WatchEvent(EventType.ADDED, pod("a", 90)), now),
            lambda m: m.initial_events([WatchEvent(EventType.ADDED, pod("c", 90))], now),
            lambda m: m.initial_event(initial_events_end(100), now),
            lambda m: m.watch_list_ended(now, random=0.0),
            *stream_fails,
        ]
    match machine.ask(now, random=0.0):
        case Wait(until):
            return [lambda m: m.ask(until, random=0.0)]
        case ListPage():
            return [
                lambda m: m.listed(ResourceList((pod("a", 90),), "100"), now, random=0.0),
                lambda m: m.listed(ResourceList((pod("a", 90),), "100", "token"), now, random=0.0),
                *list_fails,
            ]
        case OpenWatchList():
            return [lambda m: m.watch_list_opened(now), *stream_fails]
        case Probe():
            return [lambda m: m.probed("150", now), lambda m: m.probed("50", now), *probe_fails]
        case _:
            return [lambda m: m.watch_opened(now), *watch_fails]


def observe(kind: type[Observed]) -> Steps:
    """Go everywhere: whatever is reached in a way that may matter is left in every way there is."""
    kind.steps.clear()
    seen: set[object] = set()
    waiting: list[tuple[Observed, float]] = [(kind(), 0.0)]
    while waiting:
        machine, now = waiting.pop()
        for move in moves(machine, now):
            reached = copy.deepcopy(machine)
            move(reached)
            values: list[object] = [bool(reached.resource_version), *vars(reached).values()]
            mark = tuple(value if isinstance(value, bool | ReflectorPhase) else value is None for value in values)
            if mark not in seen:
                seen.add(mark)
                waiting.append((reached, now + 61.0))
    return kind.steps


def table(states: tuple[State, ...]) -> Steps:
    return {(state.phase, then) for state in states for then in state.next_phases}


def test_observed_transitions_equal_state_table() -> None:
    assert observe(Observed) == table(STATES)


@pytest.mark.nightly
def test_extra_or_missing_transition_is_found() -> None:
    assert observe(ListsAfterACleanEnd) - table(STATES) == {(ReflectorPhase.CONNECTING, ReflectorPhase.LISTING)}
    assert table(STATES) - observe(NeverWaitsForABusyServer) == {(ReflectorPhase.RECEIVING, ReflectorPhase.WAITING)}


def test_state_table_covers_all_phases_and_inputs() -> None:
    assert {state.phase for state in STATES} == set(ReflectorPhase)
    fed = {phase for phases in FEEDS.values() for phase in phases}
    assert fed == set(ReflectorPhase) - {ReflectorPhase.WAITING}
    methods = {name for name, each in vars(ReflectorMachine).items() if callable(each) and not name.startswith("_")}
    assert methods - FEEDS.keys() == {"ask", "statistics", "saw_bytes", "list_again"}, "each feed has a row"
    assert methods >= FEEDS.keys()
