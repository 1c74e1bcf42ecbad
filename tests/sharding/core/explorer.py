"""All schedules of a few members, up to a number of time steps.

The members run the code of the product. The planner is replaced by any change that the rules of ``ShardMap`` allow, so
the result holds for every planner. Requests can arrive late, and their answers can be lost. Every program can act
as the coordinator, and several can at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from deltaloop.sharding.core.member import Member
from deltaloop.sharding.core.membership import MemberLease, Membership
from deltaloop.sharding.core.planning import plan
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange

DURATION = 3  # lease duration in time steps


class Write(NamedTuple):
    """Write of the map with the version that its sender saw."""

    version: int
    map: ShardMap


class Deletion(NamedTuple):
    """Deletion of a Lease with the version that its sender saw."""

    uid: str
    version: int


class Program(NamedTuple):
    """One program. Times are in steps.

    Attributes:
        guard: Time until the renew deadline.
        running: Starts of the ranges in which a reconcile runs.
        seen: Leases with the time since their last change, as this program saw them.
        missing: Uids without a Lease, with the time until they count as dead.
        outstanding: Request whose answer the program awaits.
        exact: Time steps in which its clock must not stand still again.
    """

    alive: bool = True
    uid: str = ""
    guard: int = 0
    version: int = 0
    map: ShardMap = ShardMap(())
    idle: frozenset[tuple[int, int, int]] = frozenset()
    running: frozenset[int] = frozenset()
    seen: tuple[tuple[str, int, int], ...] = ()
    missing: tuple[tuple[str, int], ...] = ()
    outstanding: Write | Deletion | None = None
    exact: int = 0


class World(NamedTuple):
    """The server and all programs."""

    programs: tuple[Program, ...]
    leases: tuple[tuple[str, int], ...]  # of each program: uid and version; an empty uid without a Lease
    version: int
    map: ShardMap
    late: frozenset[Write | Deletion] = frozenset()
    steps: int = 0
    crashes: int = 0
    losses: int = 0
    plans: int = 0
    births: int = 0


@dataclass(frozen=True)
class Rules:
    """Limits of the search, and rules that a seeded bug breaks.

    Attributes:
        renew_deadline: In time steps; at most ``DURATION - 1`` is safe.
        deletes_any_version: Whether deletions lack their precondition.
        waits_for_missing: Whether the member of a missing Lease counts as alive for one lease duration.
        drains: Whether the owner waits for its reconciles before it gives a range away.
        resumes: Whether an owner continues without a newer map after it has sent its last write.
        administrators: Whether a person can delete a Lease.
        swaps: Whether the server compares versions when it writes the map.
        slow_clocks: Time steps of which a slow clock misses one at most. 0 means that all clocks have the same rate.
        fenced: Whether a reconcile stops to write at the renew deadline.
    """

    steps: int = 6
    crashes: int = 1
    losses: int = 1
    plans: int = 2
    births: int = 1
    coordinators: int = 2
    renew_deadline: int = DURATION - 1
    deletes_any_version: bool = False
    waits_for_missing: bool = True
    drains: bool = True
    resumes: bool = False
    swaps: bool = True
    administrators: bool = False
    slow_clocks: int = 0
    fenced: bool = True


MULTICLUSTER_RUNTIME = Rules(steps=2, losses=0, crashes=0, plans=1, coordinators=1, drains=False, fenced=False)
"""Rules of kubernetes-sigs/multicluster-runtime: it releases its fence beside the cancel, and does not fence writes.

Source: multicluster-runtime d7413ad, pkg/manager/coordinator/sharded.
"""


def member_of(program: Program) -> Member:
    member = Member()
    member.uid, member.version, member.map = program.uid, str(program.version), program.map
    member._idle = set(program.idle)
    return member


def membership_of(program: Program, rules: Rules) -> Membership:
    membership = Membership(DURATION)
    membership._seen = {
        uid: (MemberLease(uid, uid, str(version), DURATION), -age) for uid, version, age in program.seen
    }
    membership._missing = {uid: left if rules.waits_for_missing else -1 for uid, left in program.missing}
    return membership


def with_member(program: Program, member: Member) -> Program:
    return program._replace(version=int(member.version), map=member.map, idle=frozenset(member._idle))


def start(owners: tuple[int, ...], programs: int) -> World:
    """Return a world in which all programs are members, and the owner of each range is one of them."""
    bounds = range(len(owners) + 1)
    uids = [f"u{number}.0" for number in range(programs)]
    shard_map = ShardMap(
        tuple(ShardRange(bounds[place], bounds[place + 1], 0, uids[owner]) for place, owner in enumerate(owners))
    )
    seen = tuple((uid, 1, 0) for uid in uids)
    ready = tuple(Program(uid=uid, guard=DURATION - 1, version=1, map=shard_map, seen=seen) for uid in uids)
    return canonical(World(ready, tuple((uid, 1) for uid in uids), 1, shard_map))


def canonical(world: World) -> World:
    """Return the world with versions that have no gaps, because only their order matters."""
    versions = {world.version, *(program.version for program in world.programs)}
    renewals = set(world.leases)
    requests = [*world.late, *(each.outstanding for each in world.programs if each.outstanding is not None)]
    versions |= {request.version for request in requests if isinstance(request, Write)}
    renewals |= {(request.uid, request.version) for request in requests if isinstance(request, Deletion)}
    for program in world.programs:
        renewals |= {(uid, version) for uid, version, _ in program.seen}
    of_map = {version: place for place, version in enumerate(sorted(versions), 1)}
    of_lease: dict[tuple[str, int], int] = {}
    before = ""
    place = 0
    for each in sorted(renewals):
        place = place + 1 if each[0] == before else 1
        before = each[0]
        of_lease[each] = place

    def renumbered(request: Write | Deletion) -> Write | Deletion:
        if isinstance(request, Write):
            return Write(of_map[request.version], request.map)
        return Deletion(request.uid, of_lease[request.uid, request.version])

    programs = tuple(
        working(program)._replace(
            version=of_map[program.version],
            seen=tuple((uid, of_lease[uid, version], age) for uid, version, age in program.seen),
            outstanding=None if program.outstanding is None else renumbered(program.outstanding),
        )
        for program in world.programs
    )
    return world._replace(
        programs=programs,
        leases=tuple((uid, of_lease[uid, version]) for uid, version in world.leases),
        version=of_map[world.version],
        late=frozenset(map(renumbered, world.late)),
    )


def workers(world: World, start: int, *, fenced: bool = True) -> list[int]:
    """Return the programs that may write in a range."""
    return [
        number
        for number, program in enumerate(world.programs)
        if program.alive and (program.guard > 0 or not fenced) and start in program.running
    ]


def working(program: Program) -> Program:
    """Return the program with a reconcile in each range in which it may work."""
    found = {each.start for each in member_of(program).working}
    return program if found <= program.running else program._replace(running=program.running | found)


def next_worlds(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Return every world that one action reaches."""
    if world.steps < rules.steps:
        yield "time", _time(world)
        for number, program in enumerate(world.programs if rules.slow_clocks else ()):
            if program.alive and not program.exact:
                yield f"time, which the clock of {number} misses", _time(world, number, rules.slow_clocks)
    for number, program in enumerate(world.programs):
        if not program.alive:
            continue

        def changed(new: Program, at: int = number, **rest: object) -> World:
            programs = list(world.programs)
            programs[at] = new
            return world._replace(programs=tuple(programs), **rest)  # type: ignore[arg-type]

        if world.crashes < rules.crashes:
            yield f"{number} crashes", _late(changed(Program(alive=False), crashes=world.crashes + 1), program)
        yield from _renewals(world, rules, number, program, changed)
        yield from _member_actions(world, rules, number, program, changed)
        if number < rules.coordinators:
            yield from _coordinator_actions(world, rules, number, program, changed)
    for request in world.late:
        yield f"late {_name(request)}", _served(world._replace(late=world.late - {request}), request, rules)[0]
    if rules.administrators and world.losses < rules.losses:
        for number, (uid, version) in enumerate(world.leases):
            if uid:
                leases = _put(world.leases, number, ("", version))
                yield f"somebody deletes the Lease of {number}", world._replace(leases=leases, losses=world.losses + 1)


def _time(world: World, slow: int = -1, exact: int = 0) -> World:
    programs = tuple(
        program._replace(exact=exact - 1)
        if number == slow
        else program._replace(
            guard=max(0, program.guard - 1),
            seen=tuple((uid, version, min(age + 1, DURATION)) for uid, version, age in program.seen),
            missing=tuple((uid, max(0, left - 1)) for uid, left in program.missing),
            exact=max(0, program.exact - 1),
        )
        for number, program in enumerate(world.programs)
    )
    return world._replace(programs=programs, steps=world.steps + 1)


Change = Callable[..., World]
T = TypeVar("T")


def _renewals(
    world: World, rules: Rules, number: int, program: Program, changed: Change
) -> Iterator[tuple[str, World]]:
    """A renewal is one action: a later answer, or a lost one, only shortens the time until the deadline."""
    if program.guard >= rules.renew_deadline:
        return
    uid, version = world.leases[number]
    if uid and uid == program.uid:
        leases = _put(world.leases, number, (uid, version + 1))
        yield f"{number} renews", changed(program._replace(guard=rules.renew_deadline), leases=leases)
    elif program.uid:
        ended = Program(version=program.version, map=program.map, seen=program.seen, missing=program.missing)
        yield f"{number} loses its Lease", _late(changed(ended), program)
    elif not uid and world.births < rules.births:
        new = f"u{number}.{world.births + 1}"
        joined = program._replace(uid=new, guard=rules.renew_deadline)
        leases = _put(world.leases, number, (new, version + 1))
        yield f"{number} joins", changed(joined, leases=leases, births=world.births + 1)


def _member_actions(
    world: World, rules: Rules, number: int, program: Program, changed: Change
) -> Iterator[tuple[str, World]]:
    member = member_of(program)
    if world.version != program.version:
        member.saw(world.map, str(world.version))
        yield f"{number} sees the map", changed(with_member(program, member))
        member = member_of(program)
    for start in program.running - {each.start for each in member.working}:
        yield f"{number} ends its reconciles", changed(program._replace(running=program.running - {start}))
    for each in member.stopping:
        if each.start not in program.running and (each.start, each.end, each.epoch) not in program.idle:
            member.idle(each)
            yield f"{number} is idle", changed(with_member(program, member))
            member = member_of(program)
    if program.outstanding is None:
        for each in member.held:  # a slow start of the caches only delays the hand-over
            member.filled(each)
        new = member.next_map() if rules.drains else _undrained(member)
        if new is not None:
            write = Write(program.version, new)
            yield f"{number} sends {_name(write)}", changed(program._replace(outstanding=write))
    else:
        served, accepted = _served(world, program.outstanding, rules)
        answered = _answered(program, program.outstanding, served, accepted)
        programs = _put(served.programs, number, answered)
        yield f"{number}: {_name(program.outstanding)} arrives", served._replace(programs=programs)
        if world.losses < rules.losses:
            given_up = program._replace(outstanding=None)
            if rules.resumes:
                given_up = given_up._replace(map=_resumed(program.map, program.uid))
            lost = changed(given_up, losses=world.losses + 1)
            yield f"{number}: {_name(program.outstanding)} is late", _late(lost, program)


def _undrained(member: Member) -> ShardMap | None:
    for each in member.stopping:
        member.idle(each)
    return member.next_map()


def _resumed(shard_map: ShardMap, uid: str) -> ShardMap:
    return shard_map.replace(lambda each: [each.moving_to("") if each.owner == uid and each.ready else each])


def _coordinator_actions(
    world: World, rules: Rules, number: int, program: Program, changed: Change
) -> Iterator[tuple[str, World]]:
    membership = membership_of(program, rules)
    known = {uid: version for uid, version, _ in program.seen}
    owners = [each.owner for each in program.map.ranges]
    if {uid: version for uid, version in world.leases if uid} != known or any(
        owner and owner not in known and owner not in dict(program.missing) for owner in owners
    ):
        leases = [MemberLease(uid, uid, str(version), DURATION) for uid, version in world.leases if uid]
        membership.saw(leases, owners, 0)
        yield f"{number} sees the Leases", changed(with_membership(program, membership))
        membership = membership_of(program, rules)
    if program.outstanding is not None:
        return
    if world.plans < rules.plans:
        alive = [lease.uid for lease in membership.alive()]
        dead = membership.dead(0)
        for place, each in enumerate(program.map.ranges):
            for new in _allowed(each, alive, dead):
                write = Write(program.version, ShardMap(_put(program.map.ranges, place, new)))
                yield (
                    f"{number} plans {_name(write)}",
                    changed(program._replace(outstanding=write), plans=world.plans + 1),
                )
    for lease in membership.to_evict(0):
        deletion = Deletion(lease.uid, int(lease.version))
        yield f"{number} sends {_name(deletion)}", changed(program._replace(outstanding=deletion))


def _allowed(each: ShardRange, alive: Iterable[str], dead: frozenset[str]) -> Iterator[ShardRange]:
    """Return every change by a planner, by rules 2 and 3 of ``ShardMap``."""
    for uid in alive:
        if not each.owner or each.owner in dead:
            yield each.given_to(uid)
        elif uid not in (each.owner, each.successor):
            yield each.moving_to(uid)
    if each.successor:
        yield each.moving_to("")


def with_membership(program: Program, membership: Membership) -> Program:
    return program._replace(
        seen=tuple(sorted((lease.uid, int(lease.version), int(-since)) for lease, since in membership._seen.values())),
        missing=tuple(sorted((uid, max(0, int(max(at, 0)))) for uid, at in membership._missing.items())),
    )


def _served(world: World, request: Write | Deletion, rules: Rules) -> tuple[World, bool]:
    """Return the world after a request has arrived at the server, and whether the server accepted it."""
    if isinstance(request, Write):
        if rules.swaps and request.version != world.version:
            return world, False
        return world._replace(version=world.version + 1, map=request.map), True
    for place, (uid, version) in enumerate(world.leases):
        if uid == request.uid and (rules.deletes_any_version or version == request.version):
            return world._replace(leases=_put(world.leases, place, ("", version))), True
    return world, False


def _answered(program: Program, request: Write | Deletion, served: World, accepted: bool) -> Program:
    program = program._replace(outstanding=None)
    if not accepted:
        return program
    if isinstance(request, Write):
        member = member_of(program)
        member.saw(served.map, str(served.version))
        return with_member(program, member)
    seen = tuple(each for each in program.seen if each[0] != request.uid)
    return program._replace(seen=seen, missing=tuple(sorted({**dict(program.missing), request.uid: 0}.items())))


def _late(world: World, sender: Program) -> World:
    """Keep the request of a program that no longer awaits the answer."""
    return world if sender.outstanding is None else world._replace(late=world.late | {sender.outstanding})


def _put(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _name(request: Write | Deletion) -> str:
    if isinstance(request, Deletion):
        return f"the deletion of {request.uid}"
    rows = (f"{each.owner}>{each.successor}{'!' if each.ready else ''}" for each in request.map.ranges)
    return f"map {request.version + 1} ({', '.join(rows)})"


@dataclass
class Search:
    """Breadth-first search."""

    rules: Rules
    parents: dict[World, tuple[World, str] | None] = field(default_factory=dict[World, tuple[World, str] | None])

    def run(self, first: World, *, most: int = 10**9) -> list[str] | None:
        """Return the shortest schedule to two owners of a range, or None if there is none."""
        self.parents = {first: None}
        waiting = deque([first])
        while waiting:
            world = waiting.popleft()
            for name, reached in next_worlds(world, self.rules):
                new = canonical(reached)
                if new in self.parents:
                    continue
                self.parents[new] = (world, name)
                fenced = self.rules.fenced
                if any(len(workers(new, each.start, fenced=fenced)) > 1 for each in new.map.ranges):
                    return self.trace(new)
                if len(self.parents) >= most:
                    return None
                waiting.append(new)
        return None

    def trace(self, world: World) -> list[str]:
        """Return the actions that lead to a world."""
        found: list[str] = []
        at: World = world
        while (parent := self.parents[at]) is not None:
            at, name = parent
            found.append(name)
        return found[::-1]


def healed(world: World) -> World:
    """Return the world after the network and the surviving programs have worked without faults for a while."""
    rules = Rules(steps=10**9, losses=0, crashes=0, plans=0, births=10**9, coordinators=len(world.programs))
    quiet = 0
    while quiet < 3 * DURATION:
        actions = list(next_worlds(world, rules))
        found = next((new for name, new in actions if name != "time"), None) or _planned(world)
        if found is None:
            quiet += 1
            found = actions[0][1]
        world = canonical(found)
    return world


def _planned(world: World) -> World | None:
    for number, program in enumerate(world.programs):
        if program.alive and program.uid:
            membership = membership_of(program, Rules())
            new = plan(program.map, membership.alive(), membership.dead(0), ())
            if new is None:
                return None
            planned = program._replace(outstanding=Write(program.version, new))
            return world._replace(programs=_put(world.programs, number, planned))
    return None
