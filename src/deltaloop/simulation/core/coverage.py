"""Coverage of a simulation: the faults that struck each write, and the writes of reconciles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final, TypeAlias

from deltaloop.api.json_values import mapping, text
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.schedules import ON_REQUEST, Schedule, ScheduledFault
from deltaloop.testing.injected_faults.core.program_writes import WEBHOOK_FAULTS, FaultKind, ProgramWrite, WriteName

Coverage: TypeAlias = Mapping[WriteName, Mapping[FaultKind, int]]
Path: TypeAlias = tuple[str, ...]
"""Controller, then the writes of one reconcile in order, with the codes of failed writes."""

_MOST_PATHS: Final = 12  # lines in a terminal
_MOST_STEPS: Final = 40
_SHORT: Final = {FaultKind.CRASH_BEFORE: "crash before", FaultKind.CRASH_AFTER: "crash after"}


def count_struck(counts: dict[WriteName, dict[FaultKind, int]], schedule: Schedule, run: SimulationRun) -> None:
    missed = {*run.unused_faults}
    for fault in schedule:
        if isinstance(fault, ScheduledFault) and fault.write not in missed:
            kinds = counts.setdefault(fault.write, {})
            kinds[fault.kind] = kinds.get(fault.kind, 0) + 1


def count_paths(counts: dict[Path, int], run: SimulationRun) -> None:
    paths: dict[tuple[str, int, str, int], list[str]] = {}
    for write in run.writes:
        why = write.reason
        if why is not None:
            place = (write.replica, why.life, why.controller, why.number)
            paths.setdefault(place, [why.controller]).append(_step(write))
    for controller, *steps in paths.values():
        path = (controller, *_shortened(steps))
        counts[path] = counts.get(path, 0) + 1


def _shortened(steps: Iterable[str]) -> Iterator[str]:
    """Merge repeated steps, and truncate long paths, because an endless loop writes forever."""
    for place, (step, same) in enumerate(groupby(steps)):
        if place == _MOST_STEPS:
            yield "and more"
            return
        count = len([*same])
        yield step if count == 1 else f"{step} {count} times"


def _step(write: ProgramWrite) -> str:
    answer = "" if write.carried_out else f" ({write.code or 'no response'})"
    return f"{_kind_of(write)}{answer}"


def _kind_of(write: ProgramWrite) -> str:
    part = f"/{write.subresource}" if write.subresource else ""
    return f"{write.verb} {write.resource}{part}"


def no_op_writes(run: SimulationRun) -> dict[str, tuple[int, int]]:
    """Return the kinds of no-op writes, each with the number of no-ops and of all writes."""
    versions: dict[tuple[str, str], str] = {}
    no_ops: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    for write in run.writes:
        if not write.carried_out:
            continue
        kind, place = _kind_of(write), (write.resource, write.key)
        all_of[kind] += 1
        before = (versions.get(place), text(mapping(write.body.get("metadata")).get("resourceVersion")))
        if write.version and write.version in before and write.verb not in ("create", "delete") and not _is_last(write):
            no_ops[kind] += 1
        versions[place] = write.version
    return {kind: (count, all_of[kind]) for kind, count in sorted(no_ops.items())}


def _is_last(write: ProgramWrite) -> bool:
    metadata = mapping(write.stored.get("metadata"))
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def coverage_rows(counts: Coverage) -> list[list[str]]:
    """Return a table with a row per write and a column per kind of fault; a dot means that it was never tried."""
    tried = {kind for kinds in counts.values() for kind in kinds}
    shown = [kind for kind in FaultKind if kind in tried or kind not in WEBHOOK_FAULTS | ON_REQUEST]
    rows = [["", *(_SHORT.get(kind, kind.value) for kind in shown)]]
    for name, kinds in counts.items():
        rows.append([str(name), *(str(kinds.get(kind, ".")) for kind in shown)])
    return rows


def path_rows(counts: Mapping[Path, int]) -> list[tuple[int, str]]:
    """Return the number of reconciles and the text of each path, most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(count, f"{path[0]}: {', '.join(path[1:])}") for path, count in ordered]


def paths_text(counts: Mapping[Path, int]) -> str:
    rows = path_rows(counts)
    width = len(str(rows[0][0])) if rows else 0
    lines = [f"{count:>{width}}  {told}" for count, told in rows[:_MOST_PATHS]]
    if len(rows) > _MOST_PATHS:
        lines.append(f"{len(rows) - _MOST_PATHS} more in the JSON output and the HTML page")
    return "\n".join(lines)


def coverage_text(counts: Coverage) -> str:
    rows = coverage_rows(counts)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
