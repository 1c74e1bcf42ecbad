"""What was measured, in files that are written as it is, and its place in the committed summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, final

from lab.bench.controller.figures import PREFIX, Rounds, Row, as_documents, rows_of
from lab.bench.controller.phases import Measured, Sizes
from lab.bench.peers.catalogue import BUILD
from lab.bench.samples import commit, identity, machine, versions

# What an operator runs, and what it is measured by.
MEASURED: Final = ("src/deltaloop", "lab/bench/controller", "lab/bench/peers/rust")


@final
class Results:
    """The rounds of one state of the sources, with one size."""

    def __init__(self, root: Path, sizes: Sizes) -> None:
        """Keep them below the checkout's ``build``."""
        size = f"{sizes.objects}-{sizes.singles}-{sizes.idle:g}"
        self._folder = root / BUILD / "controllers" / f"{identity(root, MEASURED)}-{size}"
        self._objects = sizes.objects

    def path(self, server: str, operator: str, round_number: int) -> Path:
        """Return where one operator's round is."""
        return self._folder / server / operator / f"{round_number}.json"

    def has(self, server: str, operator: str, round_number: int) -> bool:
        """Return whether it was measured already."""
        return self.path(server, operator, round_number).exists()

    def write(self, server: str, operator: str, round_number: int, found: dict[str, Measured]) -> None:
        """Keep what was measured, whole or not at all."""
        path = self.path(server, operator, round_number)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps({phase: each.document() for phase, each in found.items()}))
        scratch.replace(path)

    def rounds(self) -> Rounds:
        """Return everything that was measured."""
        found: dict[str, dict[str, dict[int, dict[str, Measured]]]] = {}
        for path in sorted(self._folder.glob("*/*/*.json")):
            phases = {phase: Measured(**each) for phase, each in json.loads(path.read_text()).items()}
            operators = found.setdefault(path.parent.parent.name, {})
            operators.setdefault(path.parent.name, {})[int(path.stem)] = phases
        return found

    def rows(self) -> list[Row]:
        """Return the rows of all that was measured."""
        return rows_of(self.rounds(), self._objects)


def facts(root: Path, results: Results, skipped: Sequence[str]) -> dict[str, Any]:
    """Return what is committed beside the rows: where and of what the run was, and every sample."""
    samples = {
        f"{server} {operator}": [
            {phase: each.document() for phase, each in phases.items()} for _, phases in sorted(rounds.items())
        ]
        for server, operators in results.rounds().items()
        for operator, rounds in operators.items()
    }
    return {
        "commit": commit(root, MEASURED),
        "machine": machine(),
        "versions": versions(root),
        "rounds": max(map(len, samples.values()), default=0),
        "skipped": list(skipped),
        "samples": samples,
    }


def joined(summary: dict[str, Any], rows: Sequence[Row], found: dict[str, Any]) -> dict[str, Any]:
    """Return the summary with the rows and facts of controllers in place of those that it had."""
    others = [row for row in summary["rows"] if not row["case"].startswith(PREFIX)]
    return {**summary, "rows": [*others, *as_documents(rows)], "controllers": found}


def kept(summary: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return a new summary of everything else, with what the one before says of controllers."""
    rows = [row for row in before.get("rows", []) if row["case"].startswith(PREFIX)]
    found = {"controllers": before["controllers"]} if "controllers" in before else {}
    return {**summary, "rows": [*summary["rows"], *rows], **found}
