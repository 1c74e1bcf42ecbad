"""Mistakes seeded into the code, each of which the tests of ``tests.docs.test_diagrams`` must find."""

from __future__ import annotations

from tools.diagrams.model import Machine, Move, Step

from deltaloop.workqueue.core.queue import QueueCore
from lab.mutants.edited import edited

_TwoWorkers = edited(  # puts an item in line although a worker has it
    "TwoWorkers",
    QueueCore[str],
    ('        if item in self._processing:\n            return "postponed"\n', ""),
)


def _line_of(machine: type[QueueCore[str]]) -> list[Step]:
    def view(queue: QueueCore[str]) -> str:
        return f"{len(queue)} in line, {queue.processing} processed"

    def moves(queue: QueueCore[str]) -> list[Move[QueueCore[str]]]:
        found: list[Move[QueueCore[str]]] = []
        if len(queue) < 2:
            found.append(("add", lambda queue: queue.add("a", 0.0)))
        if len(queue) and not queue.processing:
            found.append(("get", lambda queue: queue.get(0.0)))
        return found

    return Machine(machine, moves, view, view).walk()[1]


def test_seeded_bug_changes_picture() -> None:
    right, wrong = _line_of(QueueCore), _line_of(_TwoWorkers)
    assert [step.after for step in right if step.what == "add"] == [
        "1 in line, 0 processed",
        "1 in line, 0 processed",
        "0 in line, 1 processed",
    ]
    assert right != wrong
