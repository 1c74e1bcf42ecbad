"""What is wrong with a run: told by comparing it with the run without faults, so that nobody has to write it down.

    end state    the objects at the end are those of the run without faults
    remade       what that run made once and kept is not deleted, and not made again under another uid
    settles      the programs come to rest
    scenario     what the scenario itself checks holds

Source of the idea: Sieve (OSDI 2022), section 4: differential oracles.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import final

import msgspec

from deltaloop.api.keys import join_key
from deltaloop.schemas.json_values import mapping, text
from deltaloop.simulation.core.end_states import EndState, Place, differences
from deltaloop.testing.core.program_writes import ProgramWrite


class Oracle(StrEnum):
    """What tells that a run is wrong."""

    END_STATE = "end state"
    REMADE = "remade"
    SETTLES = "settles"
    SCENARIO = "scenario"


@final
class SimulationRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has come to.

    Attributes:
        end: The objects at its end; None if it broke off.
        writes: What programs wrote, oldest first.
        unsettled: What is left to do if the programs did not come to rest; empty if they did.
        raised: What the scenario raised, as one text; empty if nothing.
        unstruck: Faults of the schedule whose writes never came.
        trace: A line for each write and its answer: equal seeds and schedules give equal traces.
    """

    end: EndState | None
    writes: tuple[ProgramWrite, ...]
    unsettled: str = ""
    raised: str = ""
    unstruck: tuple[str, ...] = ()
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
    reference: SimulationRun, found: SimulationRun, *, ignored: frozenset[Place] = frozenset()
) -> tuple[Problem, ...]:
    """Return what is wrong with a run.

    Args:
        reference: The run without faults.
        found: The run to judge.
        ignored: Places in which end states may differ.
    """
    told: list[Problem] = []
    if found.raised:
        told.append(Problem(Oracle.SCENARIO, f"the scenario raised {found.raised}"))
    if found.unsettled:
        told.append(Problem(Oracle.SETTLES, f"the programs do not come to rest: {found.unsettled}"))
    told += _remade(reference.writes, found.writes)
    if reference.end is not None and found.end is not None:
        told += [
            Problem(Oracle.END_STATE, str(each), each.place)
            for each in differences(reference.end, found.end, ignored=ignored)
        ]
    return tuple(told)


def _remade(reference: Sequence[ProgramWrite], found: Sequence[ProgramWrite]) -> list[Problem]:
    """Tell of objects that were deleted, or made again, where the run without faults made them once and kept them."""
    made, deleted = _lives(reference)
    kept = {place for place, uids in made.items() if len(uids) == 1 and place not in deleted}
    made_here, deleted_here = _lives(found)
    told: list[Problem] = []
    for resource, key in sorted(kept):
        uids = made_here.get((resource, key), ())
        if len(uids) > 1:
            text = f"{resource} {key} was made {len(uids)} times: what was in the ones before is lost"
            told.append(Problem(Oracle.REMADE, text, (resource, key)))
        elif (resource, key) in deleted_here:
            told.append(Problem(Oracle.REMADE, f"{resource} {key} was deleted", (resource, key)))
    return told


def _lives(writes: Sequence[ProgramWrite]) -> tuple[dict[tuple[str, str], tuple[str, ...]], set[tuple[str, str]]]:
    """Return the uids under which each object was stored, in order, and what was deleted."""
    made: dict[tuple[str, str], dict[str, None]] = {}
    deleted: set[tuple[str, str]] = set()
    for write in writes:
        if write.subresource or not write.carried_out:
            continue
        metadata = mapping(write.stored.get("metadata"))
        name = text(metadata.get("name"))
        place = (write.resource, join_key(text(metadata.get("namespace")), name) if name else write.key)
        if write.verb == "delete":
            deleted.add((write.resource, write.key))
        elif write.verb in ("create", "apply") and text(metadata.get("uid")):
            made.setdefault(place, {})[text(metadata.get("uid"))] = None
    return {place: tuple(uids) for place, uids in made.items()}, deleted
