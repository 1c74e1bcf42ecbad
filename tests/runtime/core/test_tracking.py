"""Who tracks what, in every order of two keys and two objects, beside a model that says it in another way."""

from __future__ import annotations

from collections import deque
from typing import cast

import pytest

from deltaloop.runtime.core.tracking import Tracked, Tracking

KEYS = ("a", "b")
ONE, TWO = Tracked("v1/Secret", "default", "one"), Tracked("v1/Secret", "default", "two")
PLACE = Tracked("v1/Secret", "default")
OBJECTS = (ONE, TWO)
MOST_STATES = 3_000

Flags = tuple[bool, bool]
Event = tuple[str, str, Tracked | Flags | None]
EVENTS: tuple[Event, ...] = (
    *(("track", key, tracked) for key in KEYS for tracked in OBJECTS),
    *(("ended", key, flags) for key in KEYS for flags in ((True, True), (False, True), (False, False))),
    *(("gone", key, None) for key in KEYS),
)


class Model:
    """What each key needs, from its history: the objects of its runs since its object last went or a run succeeded."""

    def __init__(self) -> None:
        self.earlier: dict[str, frozenset[Tracked]] = dict.fromkeys(KEYS, frozenset())
        self.present: dict[str, frozenset[Tracked]] = dict.fromkeys(KEYS, frozenset())
        self.lost: dict[str, bool] = dict.fromkeys(KEYS, False)
        self.crowded = False

    def take(self, event: Event) -> None:
        _, key, more = event
        if isinstance(more, Tracked):
            self.present[key] |= {more}
        elif more is not None:
            succeeded, exists = more
            kept = self.present[key] if succeeded else self.earlier[key] | self.present[key]
            self.earlier[key] = kept if exists and not self.lost[key] else frozenset()
            self.present[key], self.lost[key] = frozenset(), False
        elif self.present[key]:
            self.lost[key] = True
        else:
            self.earlier[key] = frozenset()
        number = len(self.needed("a") | self.needed("b"))
        self.crowded = number > 1 or (self.crowded and number > 0)

    def needed(self, key: str) -> frozenset[Tracked]:
        return self.earlier[key] | self.present[key]


class Play:
    """The code beside the model, and the watches that run."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.model = Model()
        self.serves: dict[Tracked, Tracked] = {}
        self.watches: set[Tracked] = set()

    def copy(self) -> Play:
        copy = Play(type(self.tracking)())
        vars(copy.tracking).update(copied(vars(self.tracking)))
        vars(copy.model).update(copied(vars(self.model)))
        copy.serves, copy.watches = {**self.serves}, {*self.watches}
        return copy

    def step(self, event: Event) -> None:
        _, key, more = event
        self.model.take(event)
        ending: tuple[Tracked, ...] = ()
        if isinstance(more, Tracked):
            watch = self.tracking.track(key, more)
            expected = self.serves.setdefault(more, PLACE if self.model.crowded else more)
            assert watch == expected, (
                "a watch of its own up to the bound; it stays the same while the object is tracked"
            )
            self.watches.add(watch)
        elif more is not None:
            ending = self.tracking.ended(key, succeeded=more[0], exists=more[1])
        else:
            ending = self.tracking.gone(key)
        for watch in ending:
            assert watch in self.watches, "what ends has run"
            self.watches.remove(watch)
        for tracked in [*self.serves]:
            if not self.keys(tracked):
                del self.serves[tracked]

    def keys(self, tracked: Tracked) -> list[str]:
        return [key for key in KEYS if tracked in self.model.needed(key)]

    def check(self) -> None:
        for tracked in OBJECTS:
            assert sorted(self.tracking.keys_of(tracked)) == self.keys(tracked)
        assert len(self.tracking) == len(self.serves)
        serving = {*self.serves.values()}
        assert self.watches >= serving, "what is tracked is watched"
        assert self.watches <= serving | ({PLACE} if serving else set()), "what nobody tracks is not watched"

    def state(self) -> object:
        return frozen(vars(self.tracking)), frozen(vars(self.model)), frozenset(self.watches)


def copied(state: dict[str, object]) -> dict[str, object]:
    """Copy sets, and dicts of sets."""
    copy: dict[str, object] = {}
    for name, value in state.items():
        if isinstance(value, dict):
            inside = cast("dict[object, object]", value)
            copy[name] = {key: {*cast("set[object]", x)} if isinstance(x, set) else x for key, x in inside.items()}
        else:
            copy[name] = {*cast("set[object]", value)} if isinstance(value, set) else value
    return copy


def frozen(value: object) -> object:
    if isinstance(value, dict):
        return frozenset((key, frozen(each)) for key, each in cast("dict[object, object]", value).items())
    return frozenset(cast("set[object]", value)) if isinstance(value, set) else value


def explore(make: type[Tracking]) -> int:
    """Take every event in every state that can come about; return the number of states."""
    seen: set[object] = set()
    front = deque([Play(make(shared_from=2))])
    while front:
        play = front.popleft()
        for event in EVENTS:
            longer = play.copy()
            longer.step(event)
            longer.check()
            state = longer.state()
            if state not in seen:
                seen.add(state)
                front.append(longer)
        assert len(seen) < MOST_STATES
    return len(seen)


@pytest.mark.nightly
def test_tracking_satisfies_invariants_in_all_orders() -> None:
    assert explore(Tracking) > 2000


def test_kinds_and_namespaces_are_tracked_separately() -> None:
    tracking = Tracking(shared_from=2)
    others = [
        Tracked("v1/Secret", "other", "one"),
        Tracked("v1/ConfigMap", "default", "one"),
        Tracked("v1/Node", "", "n"),
    ]
    for tracked in (ONE, *others):
        assert tracking.track("a", tracked) == tracked
    assert tracking.track("a", TWO) == PLACE
