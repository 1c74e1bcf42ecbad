"""What a simulation has tried: each write of a program, and by how many faults of each kind it was struck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.schedules import ON_REQUEST, WEBHOOK_FAULTS, FaultKind, Schedule, ScheduledFault
from deltaloop.testing.core.program_writes import WriteName

Coverage: TypeAlias = Mapping[WriteName, Mapping[FaultKind, int]]

_SHORT: Final = {FaultKind.CRASH_BEFORE: "crash before", FaultKind.CRASH_AFTER: "crash after"}


def count_struck(counts: dict[WriteName, dict[FaultKind, int]], schedule: Schedule, run: SimulationRun) -> None:
    """Add the faults of a run that met their writes.

    Args:
        counts: By write and kind; changed.
        schedule: The faults.
        run: What came of them.
    """
    missed = {*run.unstruck}
    for fault in schedule:
        if isinstance(fault, ScheduledFault) and fault.write not in missed:
            kinds = counts.setdefault(fault.write, {})
            kinds[fault.kind] = kinds.get(fault.kind, 0) + 1


def coverage_rows(counts: Coverage) -> list[list[str]]:
    """Return rows of text: writes down, kinds of faults across; a head first, a dot for what was never tried.

    Faults of webhooks, and those that are only tried on request, have columns only where they were tried.
    """
    tried = {kind for kinds in counts.values() for kind in kinds}
    shown = [kind for kind in FaultKind if kind in tried or kind not in WEBHOOK_FAULTS | ON_REQUEST]
    rows = [["", *(_SHORT.get(kind, kind.value) for kind in shown)]]
    for name, kinds in counts.items():
        rows.append([str(name), *(str(kinds.get(kind, ".")) for kind in shown)])
    return rows


def coverage_text(counts: Coverage) -> str:
    """Return the rows as a table for a terminal."""
    rows = coverage_rows(counts)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
