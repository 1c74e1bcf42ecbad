"""The table columns of the built-in kinds, and the functions that compute their cells.

The columns are in the data file (``builtin_tables``), as a real server says them; the cells are computed in ``cells``,
by the name of the column. Some columns of numbers say that they hold strings: so does the real server. Columns of
priority 1 are the ones that ``kubectl get -o wide`` adds. Kinds without columns of their own show NAME and CREATED AT,
as on the real server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, final

from deltaloop.apiserver.core.builtin.tables import builtin_tables
from deltaloop.apiserver.core.kinds.cells import autoscalers, cluster, events, networks, pods, volumes, workloads
from deltaloop.apiserver.core.kinds.cells.shared import Cells, Object, created
from deltaloop.apiserver.core.served_resource import PrinterColumn
from deltaloop.schemas.json_values import at, text

CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    name: cells
    for module in (autoscalers, cluster, events, networks, pods, volumes, workloads)
    for name, cells in module.CELLS.items()
}
"""What computes the cells of a kind, by group and kind."""

NAME: Final = PrinterColumn("Name", "string", ".metadata.name", "Name of the object, unique in its namespace.", "name")
CREATED_AT: Final = PrinterColumn("Created At", "date", "", "When the object was created.")


@final
@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind, and what computes those cells that not every kind has alike."""

    columns: tuple[PrinterColumn, ...]
    own_cells: Cells

    def cells(self, obj: Object, now: float) -> list[Any]:
        """Return the cells of an object, one for each column."""
        found = {**shared_cells(obj, now), **self.own_cells(obj, now)}
        return [found[column.name] for column in self.columns]


def shared_cells(obj: Object, now: float) -> dict[str, Any]:
    """Return the cells that are computed alike for every kind that has their columns."""
    return {
        "Name": text(at(obj, "metadata", "name")),
        "Age": created(obj, now),
        "Created At": at(obj, "metadata", "creationTimestamp") or "<unknown>",
    }


def _no_own_cells(_obj: Object, _now: float) -> dict[str, Any]:
    return {}


GENERIC: Final = Printer((NAME, CREATED_AT), _no_own_cells)


@cache
def _columns() -> Mapping[tuple[str, str], tuple[PrinterColumn, ...]]:
    return {
        (entry.api_version, entry.kind): tuple(
            PrinterColumn(column.name, column.type, "", format=column.format, priority=column.priority)
            for column in entry.columns
        )
        for entry in builtin_tables().kinds
    }


@cache
def printer_of(api_version: str, kind: str) -> Printer:
    """Return how the objects of a built-in kind are shown."""
    columns = _columns().get((api_version, kind))
    if not columns:
        return GENERIC
    return Printer(columns, CELLS.get((api_version.rpartition("/")[0], kind), _no_own_cells))
