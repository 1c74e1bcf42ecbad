"""Mistakes seeded into the code, each of which the tests of ``tests.apiserver.core.test_fault_machine`` must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.apiserver.core.test_fault_machine import HISTORY, PATHS, history_of, make_machine
from tests.cache.machines import Step, show_the_bug, step

from deltaloop.apiserver.core.fault_rules import Fault, FaultBook, Strike, WatchFate, WatchTrouble
from deltaloop.apiserver.core.wire.request_info import RequestInfo
from lab.mutants.edited import edited


class Wrapped:
    """A book that a seeded bug changes one thing of."""

    def __init__(self) -> None:
        self.book = FaultBook()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.book, name)


ForgetsToPassOver = edited(
    "ForgetsToPassOver",
    FaultBook,
    ("if entry.passed < fault.after:", "if False:"),
    what="The first requests are struck, too.",
)


NeverUsedUp = edited(
    "NeverUsedUp", FaultBook, ("del self._entries[number]", "pass"), what="A fault with a count strikes for ever."
)


class StrikesEverybody(Wrapped):
    """The scope of users is not looked at."""

    def strike(self, info: RequestInfo, *, user: str, draw: Callable[[], float]) -> Strike:
        return self.book.strike(info, user="me" if user else user, draw=draw)


class DrawsOnce(Wrapped):
    """One chance decides about all faults of a request: it is drawn again where the model draws anew."""

    def strike(self, info: RequestInfo, *, user: str, draw: Callable[[], float]) -> Strike:
        random = draw()
        return self.book.strike(info, user=user, draw=lambda: random)


class OneDelayOnly(Wrapped):
    """Delays do not add up."""

    def strike(self, info: RequestInfo, *, user: str, draw: Callable[[], float]) -> Strike:
        result = self.book.strike(info, user=user, draw=draw)
        return Strike(min(result.delay, 1.0), result.fault)


KeepsWhatIsRemoved = edited(
    "KeepsWhatIsRemoved",
    FaultBook,
    ("return self._entries.pop(number, None) is not None", "return number in self._entries"),
    what="Switching a fault off says so and does not do it.",
)


GivesANumberTwice = edited(
    "GivesANumberTwice",
    FaultBook,
    ("self._last += 1", "self._last = max(self._entries, default=0) + 1"),
    what="The number of a fault that is gone is given again.",
)


def ask(path: str = PATHS[0], *, watch: bool = False, user: str = "me", random: float = 0.0) -> Step:
    return step("request", path=path, watch=watch, user=user, random=random)


def on(do: str = "refuse", **fields: Any) -> Step:
    return step("add", fault=Fault(do=do, **fields))


HISTORIES: dict[type, list[Step]] = {
    ForgetsToPassOver: [on(after=1), ask(), ask()],
    NeverUsedUp: [on(count=1), ask(), ask()],
    StrikesEverybody: [on(users=("me",)), ask(user="you")],
    DrawsOnce: [on(probability=0.5), on(do="delay", probability=0.5), ask(random=0.6)],
    OneDelayOnly: [on(do="delay", seconds=1.0), on(do="delay", seconds=2.5), ask()],
    KeepsWhatIsRemoved: [on(), step("remove", number=1)],
    GivesANumberTwice: [on(), step("remove", number=1), on()],
}


@pytest.mark.parametrize("mutant", HISTORIES)
def test_seeded_bugs_are_detected(mutant: type) -> None:
    show_the_bug(make_machine(FaultBook), make_machine(mutant), HISTORIES[mutant])


TROUBLES = [
    edited(name, WatchTrouble, edit)
    for name, edit in {
        "CountsFromTheBeginning": ("self._sent + fault.events", "fault.events"),
        "KeepsTheFirstOrder": ("self._do = fault.do if", "self._do = self._do or fault.do if"),
        "NeverEnds": ("self._seconds = fault.seconds", "self._seconds = 0.0"),
        "AtOnce": ("self._at_event = self._sent + fault.events", "self._at_event = 0"),
    }.items()
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_seeded_bugs_of_open_watch_are_detected(trouble: type[WatchTrouble]) -> None:
    assert history_of(trouble()) != [*HISTORY, WatchFate.SEND]
