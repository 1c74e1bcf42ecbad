"""Problems of a run, most of which are found by comparison with the run without faults.

    end state    the objects at the end equal those of the run without faults
    recreated    objects that the run keeps are not deleted or recreated with another uid
    settles      the programs settle
    invariant    invariants of the scenario hold after every write (``Harness.invariant``)
    leadership   programs do not write after they have lost their Lease
    ready        objects turn Ready after their children, unless the run without faults is early too
    scenario     checks of the scenario succeed

Source of the idea: Sieve (OSDI 2022), section 4: differential oracles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import final

import msgspec

from deltaloop.api.json_values import mapping, text
from deltaloop.api.keys import join_key
from deltaloop.simulation.core.claims import EarlyClaim
from deltaloop.simulation.core.end_states import DrawnNames, EndState, Place, differences, without_drawn_names
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite, UserStep, WriteName


class Oracle(StrEnum):
    """Check that a run failed."""

    END_STATE = "end state"
    RECREATED = "recreated"
    SETTLES = "settles"
    INVARIANT = "invariant"
    LEADERSHIP = "leadership"
    READY = "ready"
    SCENARIO = "scenario"


@final
class SimulationRun(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run.

    Attributes:
        end: Objects at the end, or None if the run was aborted.
        kinds: Kinds of these objects.
        writes: Writes of the programs, oldest first.
        steps: Writes of the user.
        rests: Number of writes each time that the programs had settled.
        pasts: For each stale restart, the ascending numbers of revisions at which the observed state changes.
        others: For each change by others (the user and the environment), the number of earlier writes by programs.
        premature: Whether the user once did not wait, so that ``rests`` cannot be compared with the run without faults.
        unsettled: Remaining work if the programs did not settle, or an empty string.
        violation: Error of the violated invariant, or an empty string.
        raised: Exception of the scenario as text, or an empty string.
        claims: Objects that were Ready before their children.
        unused_faults: Writes of the schedule that never happened.
        nondeterminism: Descriptions of events that the seed does not decide: threads, processes, real connections.
        webhooks: Whether programs serve webhooks.
        trace: Line for each write and its response. Equal seeds and schedules produce equal traces.
    """

    end: EndState | None
    writes: tuple[ProgramWrite, ...]
    kinds: tuple[str, ...] = ()
    steps: tuple[UserStep, ...] = ()
    rests: tuple[int, ...] = ()
    pasts: tuple[tuple[int, ...], ...] = ()
    others: tuple[int, ...] = ()
    premature: bool = False
    unsettled: str = ""
    violation: str = ""
    raised: str = ""
    claims: tuple[EarlyClaim, ...] = ()
    unused_faults: tuple[WriteName, ...] = ()
    nondeterminism: tuple[str, ...] = ()
    webhooks: bool = False
    trace: tuple[str, ...] = ()


@final
class Problem(msgspec.Struct, frozen=True):
    """Problem of a run.

    Attributes:
        oracle: Check that failed.
        text: Description for users.
        place: Object or field. It is empty for problems of the whole run.
    """

    oracle: Oracle
    text: str
    place: Place = ()

    def __str__(self) -> str:
        return self.text


def problems_of(
    reference: SimulationRun,
    found: SimulationRun,
    *,
    ignored: frozenset[Place] = frozenset(),
    drawn: DrawnNames = frozenset(),
) -> tuple[Problem, ...]:
    """Return the problems of a run, compared with the reference except for ignored places and random names."""
    told: list[Problem] = []
    if found.violation:
        told.append(Problem(Oracle.INVARIANT, f"an invariant is violated: {found.violation}"))
    if found.raised:
        told.append(Problem(Oracle.SCENARIO, f"the scenario raised {found.raised}"))
    if found.unsettled:
        told.append(Problem(Oracle.SETTLES, f"the programs do not settle: {found.unsettled}"))
    told += _remade(reference, found)
    told += _without_lease(reference, found)
    told += _too_early(reference, found)
    if reference.end is not None and found.end is not None:
        wanted, end = [
            without_drawn_names(state, drawn) for state in (reference.end, _known(reference, found, found.end))
        ]
        told += [Problem(Oracle.END_STATE, str(each), each.place) for each in differences(wanted, end, ignored=ignored)]
    return tuple(told)


def _known(reference: SimulationRun, found: SimulationRun, end: EndState) -> EndState:
    """Remove objects that cannot be compared: kinds that only this run observed, unless the run wrote the object."""
    if not {*found.kinds} - {*reference.kinds}:
        return end
    written = {write.key for write in found.writes}
    return EndState(
        {place: obj for place, obj in end.objects.items() if place[0] in reference.kinds or place[1] in written}
    )


def _remade(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Return problems of objects that were deleted or recreated more often than in the run without faults."""
    told: dict[tuple[str, str], Problem] = {}
    alive: set[tuple[str, str]] = set()
    phases = zip(_phases(reference), _phases(found), strict=False)
    for wanted, here in [(reference.writes, found.writes)] if found.premature else phases:
        made, deleted, ends = _lives(wanted)
        made_here, deleted_here, _ = _lives(here)
        alive = (alive | {*made}) - {place for place, verb in ends.items() if verb == "delete"}
        for place in sorted(alive):
            resource, key = place
            lives, wanted_lives = len(made_here.get(place, ())), len(made.get(place, ()))
            if lives > max(1, wanted_lives) or (lives and deleted_here[place] > deleted[place]):
                text = f"{resource} {key} was deleted and recreated, and its content is lost"
                told.setdefault(place, Problem(Oracle.RECREATED, text, place))
            elif deleted_here[place] > deleted[place]:
                told.setdefault(place, Problem(Oracle.RECREATED, f"{resource} {key} was deleted", place))
    return [*told.values()]


def _without_lease(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Return problems of programs that wrote after losing their Lease, at most one per object."""
    if any(write.lost_lease for write in reference.writes) or any(write.undone for write in found.writes):
        return []  # a backup can contain the Lease of a former leader
    told: dict[tuple[str, str], Problem] = {}
    for write in found.writes:
        if write.lost_lease and write.carried_out:
            text = f"{write.replica} wrote after it lost the lease {write.lost_lease}: {write}"
            told.setdefault((write.resource, write.key), Problem(Oracle.LEADERSHIP, text, (write.resource, write.key)))
    return [*told.values()]


def _too_early(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Return problems of early claims, unless the run without faults has similar claims."""
    usual = {claim.kinds for claim in reference.claims}
    return [
        Problem(Oracle.READY, str(claim), (claim.kind, claim.key))
        for claim in dict.fromkeys(found.claims)
        if claim.kinds not in usual
    ]


def _phases(run: SimulationRun) -> Iterator[Sequence[ProgramWrite]]:
    start = 0
    for end in (*run.rests, len(run.writes)):
        yield run.writes[start:end]
        start = end


def _lives(
    writes: Sequence[ProgramWrite],
) -> tuple[dict[tuple[str, str], set[str]], Counter[tuple[str, str]], dict[tuple[str, str], str]]:
    """Return for each object the uids of its creations, the number of its deletions, and the last of these verbs."""
    made: dict[tuple[str, str], set[str]] = {}
    deleted: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], str] = {}
    for write in writes:
        if write.subresource or write.undone or not write.carried_out:
            continue
        metadata = mapping(write.stored.get("metadata"))
        name, uid = text(metadata.get("name")), text(metadata.get("uid"))
        place = (write.resource, join_key(text(metadata.get("namespace")), name) if name else write.key)
        if write.verb == "delete":
            deleted[write.resource, write.key] += 1
            last[write.resource, write.key] = write.verb
        elif write.verb in ("create", "apply") and uid:
            made.setdefault(place, set()).add(uid)
            last[place] = write.verb
    return made, deleted, last
