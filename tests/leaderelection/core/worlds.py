"""Worlds of candidates, one lock, and messages on their way, and every step that one can take to the next.

A world is a tuple of numbers: one for the lock, and one for each candidate, sorted. Candidates of the same durations
and clock rate are interchangeable, so sorting leaves one of all their orders. What a candidate's number stands for:

- the candidate (frozen.py);
- whether the lock names it, and whether the version that it has seen is the present one. Versions have no numbers: an
  old one never becomes the present one again, so nothing else about it can matter;
- the answer that is on its way to it, if there is one;
- whether a write that it has given up is still on its way. One that names an old version will be refused, so it is
  gone; of two that name the present one only one can be carried out, and they are alike. So one bit counts them all.

Each number's moves are worked out once, by the shipped core, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from deltaloop.leaderelection.core.election import Election, ElectionPhase, ElectionTiming, Read
from deltaloop.leaderelection.core.record import whole_seconds
from tests.leaderelection.core.frozen import LONG_AGO, Cores, Frozen, Holder, Member, Record, is_leading

World: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Settings:
    """What the candidates are, and which faults there are beyond loss, delay and pauses of any length.

    Attributes:
        members: The candidates.
        election: What decides; seeded bugs are put in here.
        crashes: Whether a candidate may crash and come back under its name, any time and any number of times.
        restarts: The same under a new name, as a new pod does.
        releases: Whether a candidate may give the lock up, any time and any number of times.
        late: Whether a write that was given up may reach the server after all, any time later.
        slow_answers: Whether an answer may dwell on its way; without, a request is answered when it arrives.
        preconditions: Whether the server looks at the version; a seeded bug.
        times_matter: Whether records keep their times; for a seeded bug that goes by them.
        begin_with_a_leader: Begin where the first candidate has just won and the others have just seen it.
    """

    members: tuple[Member, ...]
    election: Callable[[str, ElectionTiming], Election] = Election
    crashes: bool = True
    restarts: bool = True
    releases: bool = False
    late: bool = True
    slow_answers: bool = True
    preconditions: bool = True
    times_matter: bool = False
    begin_with_a_leader: bool = False


class Answer(NamedTuple):
    """An answer on its way. ``fresh``: its version is the present one; ``same``: the one that was seen before."""

    kind: str
    record: Record | None = None
    same: bool = False
    fresh: bool = False


class Slot(NamedTuple):
    """One candidate and its messages."""

    candidate: Frozen
    named: bool = False
    current: bool = False
    answer: Answer | None = None
    late: bool = False


class Lock(NamedTuple):
    """The lock: absent, free, held by one of the candidates, or by one that is gone; and late writes of nobody."""

    state: str = "absent"
    duration: int = 0
    written: float | None = None
    late_release: bool = False
    late_of_gone: frozenset[int] = frozenset()


class Effect(NamedTuple):
    """What a candidate's own move changes elsewhere."""

    late_release: bool = False
    gone: bool = False
    late_of_gone: int = 0


NOTHING = Effect()


class Move(NamedTuple):
    """A candidate's own move: where it leads, what it changes elsewhere, and what to call it."""

    to: int
    effect: Effect
    name: str


@dataclass(slots=True)
class Table:
    """What can become of one slot; slots and locks are named by their numbers.

    Attributes:
        later: After a tick.
        stale: After somebody else has written the lock.
        moves: Its own moves; the first one is what it does when everything works, if ``acts``.
        acts: Whether it has something to do.
        is_out: Whether a request is on its way to the server.
        write: What its request writes, and what it is then; None if that is a read.
        conflict: What it is after a write that the server has refused; -1 if it would not be refused.
        late: The same as ``write`` for the write that it has given up; None if there is none.
    """

    later: int
    stale: int
    moves: tuple[Move, ...]
    acts: bool
    is_out: bool
    write: tuple[int, int] | None
    conflict: int
    late: tuple[int, int] | None


class Worlds:
    """The worlds of one setting."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cores = Cores(
            settings.members, settings.election, releases=settings.releases, times_matter=settings.times_matter
        )
        self.leading: list[bool] = []
        self._slots: list[Slot] = []
        self._slot_ids: dict[Slot, int] = {}
        self._tables: list[Table | None] = []
        self._locks: list[Lock] = []
        self._lock_ids: dict[Lock, int] = {}
        self._reads: dict[tuple[int, int], int] = {}
        self._affected: dict[tuple[int, Effect], int] = {}
        self._later_locks: dict[int, int] = {}
        self._late_writes: dict[int, tuple[tuple[str, int], ...]] = {}

    @property
    def slots(self) -> int:
        """How many values a candidate and its messages have had so far."""
        return len(self._slots)

    def start(self) -> World:
        """Return the first world, its candidates in order."""
        members = range(len(self.settings.members))
        world = (self._lock(Lock()), *(self._slot(Slot(self.cores.fresh(member))) for member in members))
        if self.settings.begin_with_a_leader:
            for index in range(1, len(world)):
                while (following := self._as_it_should(world, index)) is not None:
                    world = following
        return world

    def leaders(self, world: World) -> int:
        """Count those who may write as the leader."""
        leading = self.leading
        return sum([leading[slot] for slot in world[1:]])

    def fair(self, world: World) -> World:
        """Take one step as it goes when everything works: whoever has something to do does it, else a tick passes."""
        for index in range(1, len(world)):
            following = self._as_it_should(world, index)
            if following is not None:
                return following
        return self.tick(world)

    def waits(self, world: World) -> bool:
        """Tell whether nobody has anything to do but to let time pass."""
        return all(not table.is_out and not table.acts for table in map(self._table, world[1:]))

    def _table(self, slot: int) -> Table:
        return self._tables[slot] or self._fill(slot)

    def _as_it_should(self, world: World, index: int) -> World | None:
        lock, slot = world[0], world[index]
        table = self._table(slot)
        if table.is_out:
            return self._arrived(lock, world[1:], index - 1, table)
        if table.acts:
            move = table.moves[0]
            after = lock if move.effect is NOTHING else self._after(lock, move.effect)
            return (after, *world[1:index], move.to, *world[index + 1 :])
        return None

    def tick(self, world: World) -> World:
        """Let time pass."""
        tables = self._tables
        lock = self._lock_later(world[0]) if self.settings.times_matter else world[0]
        return (lock, *[(tables[slot] or self._fill(slot)).later for slot in world[1:]])

    def steps(self, world: World) -> Iterator[tuple[int, str, World]]:
        """Go through everything that may happen next: whose step it is (-1: nobody's), its name, and the world then.

        Of neighbours that are alike only the first one moves: what the other does leads to the same worlds.
        """
        tables = self._tables
        yield -1, "a tick passes", self.tick(world)
        lock, slots = world[0], world[1:]
        before = -1
        for index, slot in enumerate(slots):
            if slot == before:
                continue
            before = slot
            table = tables[slot]
            assert table is not None
            left, right = slots[:index], slots[index + 1 :]
            for to, effect, name in table.moves:
                yield index, name, (lock if effect is NOTHING else self._after(lock, effect), *left, to, *right)
            if table.is_out:
                yield index, "its request arrives", self._arrived(lock, slots, index, table)
            if table.late is not None:
                late = table.late
                yield index, "a write that it had given up arrives", self._written(slots, index, late)
        for name, to in self._late_writes.get(lock) or self._find_late_writes(lock):
            yield -1, name, self._written(slots, -1, (to, -1))

    def _arrived(self, lock: int, slots: World, index: int, table: Table) -> World:
        if table.conflict >= 0:
            to = table.conflict
        elif table.write is not None:
            return self._written(slots, index, table.write)
        else:
            known = self._reads.get((lock, slots[index]))
            to = known if known is not None else self._read(lock, slots[index])
        return (lock, *slots[:index], to, *slots[index + 1 :])

    def _written(self, slots: World, index: int, write: tuple[int, int]) -> World:
        tables = self._tables
        after = [table.stale if (table := tables[slot]) is not None else self._fill(slot).stale for slot in slots]
        if index >= 0:
            after[index] = write[1]
        return (write[0], *after)

    # What is worked out once

    def _slot(self, slot: Slot) -> int:
        number = self._slot_ids.setdefault(slot, len(self._slots))
        if number == len(self._slots):
            self._slots.append(slot)
            self._tables.append(None)
            self.leading.append(is_leading(slot.candidate))
        return number

    def _lock(self, lock: Lock) -> int:
        number = self._lock_ids.setdefault(lock, len(self._locks))
        if number == len(self._locks):
            self._locks.append(lock)
        return number

    def _fill(self, number: int) -> Table:
        slot = self._slots[number]
        out = slot.candidate.out
        own, acts = self._own_moves(slot)
        is_write = out is not None and out.kind is not Read
        refused = is_write and self.settings.preconditions and not slot.current
        table = Table(
            later=self._slot(self._one_later(slot)),
            stale=self._slot(_stale(slot)),
            moves=(*own, *self._mishaps(slot)),
            acts=acts,
            is_out=out is not None and slot.answer is None,
            write=self._write(slot) if is_write else None,
            conflict=self._slot(self._answered(slot, Answer("conflict"))) if refused else -1,
            late=None,
        )
        if slot.late:
            after = _stale(slot)._replace(named=True)
            table.late = self._lock(Lock("held", self._duration(slot))), self._slot(after)
        self._tables[number] = table
        return table

    def _duration(self, slot: Slot) -> int:
        return whole_seconds(self.settings.members[slot.candidate.member].timing.lease_duration)

    def _one_later(self, slot: Slot) -> Slot:
        answer = slot.answer
        if answer is not None and answer.record is not None and answer.record.written is not None:
            answer = answer._replace(record=answer.record._replace(written=max(answer.record.written - 1, -LONG_AGO)))
        return slot._replace(candidate=self.cores.later(slot.candidate), answer=answer)

    def _own_moves(self, slot: Slot) -> tuple[list[Move], bool]:
        """Return what it does by itself; whether there is anything."""
        if slot.answer is not None:
            return [
                Move(self._slot(self._taken(slot, slot.answer)), NOTHING, f"gets its answer: {slot.answer.kind}")
            ], True
        if slot.candidate.out is not None:
            return [], False
        name, ways = self.cores.ask(slot.candidate)
        return [Move(self._slot(slot._replace(candidate=way)), NOTHING, name) for way in ways], bool(ways)

    def _taken(self, slot: Slot, answer: Answer) -> Slot:
        if answer.kind == "conflict":
            return slot._replace(candidate=self.cores.conflicted(slot.candidate), answer=None)
        if answer.kind == "wrote":
            candidate = self.cores.wrote(slot.candidate)
        else:
            candidate = self.cores.observed(slot.candidate, answer.record, same=answer.same)
        return slot._replace(candidate=candidate, current=answer.fresh, answer=None)

    def _answered(self, slot: Slot, answer: Answer) -> Slot:
        return slot._replace(answer=answer) if self.settings.slow_answers else self._taken(slot, answer)

    def _mishaps(self, slot: Slot) -> Iterator[Move]:
        """Go through what may be done to it: no answer, giving up, a crash."""
        settings = self.settings
        candidate, out = slot.candidate, slot.candidate.out
        on_its_way = (
            settings.late and slot.answer is None and slot.current and out is not None and out.record is not None
        )
        leads = on_its_way and out is not None and out.record is not None and out.record.holder is Holder.ME
        late = slot.late or leads
        effect = Effect(late_release=True) if on_its_way and not leads else NOTHING
        rest = slot._replace(answer=None, late=late)
        if out is not None:
            to = self._slot(rest._replace(candidate=self.cores.failed(candidate)))
            yield Move(to, effect, "gets no answer")
        if settings.releases and candidate.phase is ElectionPhase.LEADING:
            to = self._slot(rest._replace(candidate=self.cores.released(candidate)))
            yield Move(to, effect, "gives the lock up")
        if not self._death_matters(slot, on_its_way=on_its_way):
            return
        fresh = rest._replace(candidate=self.cores.fresh(candidate.member), current=False)
        if settings.crashes and fresh != slot:
            yield Move(self._slot(fresh), effect, "crashes and comes back")
        if settings.restarts and (slot.named or late):
            effect = effect._replace(gone=slot.named, late_of_gone=self._duration(slot) if late else 0)
            yield Move(self._slot(fresh._replace(named=False, late=False)), effect, "dies, and another one comes")

    def _death_matters(self, slot: Slot, *, on_its_way: bool) -> bool:
        """Tell whether a death now leads elsewhere than one before.

        What a candidate does between two of its writes concerns nobody else, so it could as well have died right after
        the one, or with the next on its way.
        """
        settings = self.settings
        just_written = slot.answer is not None and slot.answer.kind == "wrote"
        return just_written or on_its_way or settings.begin_with_a_leader or not settings.slow_answers

    def _write(self, slot: Slot) -> tuple[int, int]:
        out = slot.candidate.out
        assert out is not None
        assert out.record is not None
        leads = out.record.holder is Holder.ME
        lock = Lock("held", self._duration(slot), out.record.written) if leads else Lock("free")
        after = slot._replace(named=leads, current=False, late=False)
        return self._lock(lock), self._slot(self._answered(after, Answer("wrote", fresh=True)))

    def _read(self, lock: int, number: int) -> int:
        slot, found = self._slots[number], self._locks[lock]
        record: Record | None = None
        if slot.named:
            record = Record(Holder.ME, 0)
        elif found.state in ("gone", "held"):
            record = Record(Holder.OTHER, found.duration, found.written)
        elif found.state == "free":
            record = Record(Holder.NOBODY, 0)
        same = slot.current
        answer = Answer("read", None if same else record, same=same, fresh=True)
        known = self._reads[(lock, number)] = self._slot(self._answered(slot, answer))
        return known

    def _after(self, lock: int, effect: Effect) -> int:
        known = self._affected.get((lock, effect))
        if known is None:
            found = self._locks[lock]
            known = self._affected[(lock, effect)] = self._lock(
                found._replace(
                    state="gone" if effect.gone else found.state,
                    late_release=found.late_release or effect.late_release,
                    late_of_gone=found.late_of_gone | ({effect.late_of_gone} - {0}),
                )
            )
        return known

    def _lock_later(self, lock: int) -> int:
        known = self._later_locks.get(lock)
        if known is None:
            found = self._locks[lock]
            written = None if found.written is None else max(found.written - 1, -LONG_AGO)
            known = self._later_locks[lock] = self._lock(found._replace(written=written))
        return known

    def _find_late_writes(self, lock: int) -> tuple[tuple[str, int], ...]:
        found = self._locks[lock]
        late = [
            ("a late write of one that is gone arrives", self._lock(Lock("gone", each))) for each in found.late_of_gone
        ]
        if found.late_release:
            late.append(("a late release arrives", self._lock(Lock("free"))))
        self._late_writes[lock] = tuple(late)
        return self._late_writes[lock]


def _stale(slot: Slot) -> Slot:
    """Return what a slot is after somebody else's write: what it knows is old, and its own late writes are refused."""
    answer = slot.answer._replace(fresh=False) if slot.answer is not None else None
    return slot._replace(named=False, current=False, answer=answer, late=False)
