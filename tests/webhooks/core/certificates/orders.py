"""Orders of the requests of two replicas that race, from each moment of a life in which there is something to do.

A replica's requests are what it shares with the other: it reads the Secret, reads the configurations, writes the
Secret, and writes each configuration. Where a world, what each replica has read and how far it is are the same after
two orders, all that follows is the same, and one of them is followed.

    python -m tests.webhooks.core.certificates.orders

follows every order to its end, half a minute for all moments; the suite follows those with few switches.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from deltaloop.webhooks.core.certificates import rotation
from tests.webhooks.core.certificates.world import DAY, HOUR, World, user_authority

Decide = Callable[..., Any]
Moment = Callable[[World], None]
_MOST_STEPS = 80


def first_start(world: World) -> None: ...


def rotation_is_due(world: World) -> None:
    world.advance(244 * DAY)
    world.now += 2 * DAY


def successor_is_to_serve(world: World) -> None:
    world.advance(244 * DAY)
    while world.held.successor is None or world.held.successor.published_at is None:
        world.advance(HOUR)
    world.now = world.held.successor.published_at + 3 * HOUR


def deleted(world: World) -> None:
    world.advance(30 * DAY)
    world.write_secret(None)


def deleted_and_restarted(world: World) -> None:
    deleted(world)
    world.restart(0)


def brought_by_a_user(world: World) -> None:
    world.advance(30 * DAY)
    world.write_secret(user_authority(world))


def all_expired(world: World) -> None:
    world.advance(30 * DAY)
    world.now += 400 * DAY
    for index in range(2):
        world.restart(index)


MOMENTS: tuple[Moment, ...] = (
    first_start,
    rotation_is_due,
    successor_is_to_serve,
    deleted,
    deleted_and_restarted,
    brought_by_a_user,
    all_expired,
)


class _Run:
    """One order."""

    def __init__(self, begun: World) -> None:
        self.world = _fork(begun)
        self.ended = [False, False]

    def go(self, order: tuple[int, ...]) -> None:
        """Have replicas make their requests; what was checked in a shorter order is not checked again."""
        for place, index in enumerate(order):
            self.world.unchecked = place < len(order) - 1
            self.ended[index] = not self.world.step(self.world.replicas[index])

    def state(self) -> object:
        """Return what all that follows depends on."""
        world = self.world
        return repr((world.secret, world.bundles, self.ended, [_where(each) for each in world.replicas]))


def _fork(world: World) -> World:
    """Return a world that goes on by itself; no replica is at work in it."""
    other = copy.copy(world)
    other.replicas = [replace(each, issued=[*each.issued]) for each in world.replicas]
    other.bundles = {target: dict(bundles) for target, bundles in world.bundles.items()}
    other.versions, other.history = dict(world.versions), [*world.history]
    other.spoilt, other.log = {*world.spoilt}, [*world.log]
    return other


def _where(replica: Any) -> object:
    """Return what a replica serves, how far it is, and what it has read."""
    frame = None if replica.under_way is None else replica.under_way.gi_frame
    at = () if frame is None else (frame.f_lineno, [*frame.f_locals.items()][2:])  # without itself and its world
    return replica.serving, replica.ready_since, at


def follow(
    moment: Moment,
    decide: Decide = rotation.decide,
    *,
    switches: int = _MOST_STEPS,
    last_write_wins: bool = False,
) -> tuple[int, int]:
    """Follow orders to their ends, and check each; return how many states there were, and conflicts at most.

    Args:
        moment: When they begin.
        decide: What replicas do.
        switches: How often at most one goes on before the other one has ended.
        last_write_wins: Whether the server takes every write, whatever it was based on: a bug.
    """
    begun = World(replicas=(0.0, HOUR), decide=decide)
    moment(begun)
    begun.last_write_wins = last_write_wins
    known = {name for each in begun.replicas for name in each.issued}
    seen: set[object] = set()
    left: list[tuple[tuple[int, ...], int]] = [((), switches)]
    conflicts = 0
    while left:
        order, may_switch = left.pop()
        run = _Run(begun)
        run.go(order)
        state = (run.state(), *((order[-1:], may_switch) if switches < _MOST_STEPS else ()))
        if state in seen:
            continue
        seen.add(state)
        assert len(order) < _MOST_STEPS, "they hold each other up for ever"
        open_ends = [index for index in (0, 1) if not run.ended[index]]
        for index in open_ends:
            costs = bool(order) and index != order[-1] and not run.ended[order[-1]]
            if may_switch >= costs:
                left.append(((*order, index), may_switch - costs))
        if not open_ends:
            conflicts = max(conflicts, run.world.conflicts)
            run.world.unchecked = False
            run.world.advance(20 * DAY)
            run.world.settled()
            new = {name for each in run.world.replicas for name in each.issued} - known
            assert len(new) <= 1, f"replicas have served certificates of {len(new)} new authorities"
    return len(seen), conflicts


if __name__ == "__main__":
    for each in MOMENTS:
        began = time.process_time()
        states, most = follow(each)
        print(f"{each.__name__:<24} {states:>6} states, {most} conflicts, {time.process_time() - began:.1f} CPU s")
