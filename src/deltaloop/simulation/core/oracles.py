"""What is wrong with a run: told by comparing it with the run without faults, so that nobody has to write it down.

    end state    the objects at the end are those of the run without faults
    recreated    objects that this run keeps are not deleted, and not created again under another uid
    settles      the programs come to rest
    always       what the scenario says is true after every write (``Harness.invariant``)
    leadership   nothing is written by a program that has lost the Lease that it held
    ready        who says Ready has children that are, unless the run without faults says it too early, too
    scenario     what the scenario itself checks holds

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
    """What tells that a run is wrong."""

    END_STATE = "end state"
    RECREATED = "recreated"
    SETTLES = "settles"
    INVARIANT = "invariant"
    LEADERSHIP = "leadership"
    READY = "ready"
    SCENARIO = "scenario"


@final
class SimulationRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has come to.

    Attributes:
        end: The objects at its end; None if it broke off.
        kinds: Whose objects these are.
        writes: What programs wrote, oldest first.
        steps: What the user wrote.
        rests: How many of them there were each time that the programs had come to rest.
        pasts: For each stale restart, how many revisions behind it has to be to be shown another state than by one
            less, ascending.
        others: For each change of others, the user and the environment, how many writes of programs there were before.
        premature: Whether the user did not wait for it once, so that rests are not those of the run without faults.
        unsettled: What is left to do if the programs did not come to rest; empty if they did.
        violation: Error of the invariant that was violated; empty if none was.
        raised: What the scenario raised, as one text; empty if nothing.
        claims: What was said to be Ready before its children were.
        unused_faults: Writes that the schedule names and that never came.
        nondeterminism: What the seed did not decide in it, for people: threads, processes, real connections.
        webhooks: Whether programs served webhooks.
        trace: A line for each write and its answer: equal seeds and schedules give equal traces.
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
    """Something that is wrong with a run.

    Attributes:
        oracle: What tells it.
        text: What is wrong, for people.
        place: The object, or the field of it, that is wrong; empty if it is none.
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
    """Return what is wrong with a run.

    Args:
        reference: The run without faults.
        found: The run to judge.
        ignored: Places in which end states may differ.
        drawn: Names that programs draw.
    """
    told: list[Problem] = []
    if found.violation:
        told.append(Problem(Oracle.INVARIANT, f"an invariant is violated: {found.violation}"))
    if found.raised:
        told.append(Problem(Oracle.SCENARIO, f"the scenario raised {found.raised}"))
    if found.unsettled:
        told.append(Problem(Oracle.SETTLES, f"the programs do not come to rest: {found.unsettled}"))
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
    """Leave out what nobody can compare: of kinds that only this run has looked at, what it did not write."""
    if not {*found.kinds} - {*reference.kinds}:
        return end
    written = {write.key for write in found.writes}
    return EndState(
        {place: obj for place, obj in end.objects.items() if place[0] in reference.kinds or place[1] in written}
    )


def _remade(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Tell of objects that were deleted, or made again, more often than in the run without faults.

    The two are compared from one rest of the programs to the next, as a whole if the user did not wait for it. Only
    what is there at its end counts: what is made too much while all of it is about to go loses nothing.
    """
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
                text = f"{resource} {key} was deleted and made again: what was in it is lost"
                told.setdefault(place, Problem(Oracle.RECREATED, text, place))
            elif deleted_here[place] > deleted[place]:
                told.setdefault(place, Problem(Oracle.RECREATED, f"{resource} {key} was deleted", place))
    return [*told.values()]


def _without_lease(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Tell of the first write of each object by a program that had lost its Lease, if that is unusual."""
    if any(write.lost_lease for write in reference.writes) or any(write.undone for write in found.writes):
        return []  # a backup may hold the Lease of one who has lost it since
    told: dict[tuple[str, str], Problem] = {}
    for write in found.writes:
        if write.lost_lease and write.carried_out:
            text = f"{write.replica} has lost the lease {write.lost_lease}, and yet: {write}"
            told.setdefault((write.resource, write.key), Problem(Oracle.LEADERSHIP, text, (write.resource, write.key)))
    return [*told.values()]


def _too_early(reference: SimulationRun, found: SimulationRun) -> list[Problem]:
    """Tell of claims whose like the run without faults does not make."""
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
    """Return the uids under which each object was made, how often each was deleted, and which of the two came last."""
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
