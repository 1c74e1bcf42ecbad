"""What replicas in processes of their own have run, written so that a SIGKILL takes nothing away; and its check.

Each line is one system call to a file of the replica's own, so what was begun is there whatever happens next. Times are
of the machine's monotonic clock, which all processes share. A run without an end went on until its process died.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One reconcile.

    Attributes:
        replica: Who ran it.
        key: Whose it was.
        attempt: Which try.
        wait: Seconds from the first event that it serves to its begin; None for a retry.
        began_at: When it began.
        ended_at: When it ended, or its process died; infinite if neither happened.
        succeeded: Whether it came to its end without an error.
    """

    replica: str
    key: str
    attempt: int = 1
    wait: float | None = None
    began_at: float
    ended_at: float
    succeeded: bool = True


class Journal:
    """Writes down what one replica runs."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._number = 0

    def began(self, key: str, *, attempt: int, wait: float | None) -> int:
        self._number += 1
        self._write({"began": self._number, "key": key, "attempt": attempt, "wait": wait})
        return self._number

    def ended(self, number: int, *, succeeded: bool) -> None:
        self._write({"ended": number, "succeeded": succeeded})

    def close(self) -> None:
        os.close(self._file)

    def _write(self, fields: dict[str, Any]) -> None:
        os.write(self._file, json.dumps({**fields, "at": time.monotonic()}).encode() + b"\n")


def read_journal(path: Path, *, died_at: float = float("inf")) -> list[Run]:
    """Read what a replica, named as its file is, has run."""
    began: dict[int, dict[str, Any]] = {}
    ended: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines() if path.exists() else []:
        fields = json.loads(line)
        (began if "began" in fields else ended)[fields.get("began", fields.get("ended"))] = fields
    return [
        Run(
            replica=path.stem,
            key=fields["key"],
            attempt=fields["attempt"],
            wait=fields["wait"],
            began_at=fields["at"],
            ended_at=ended[number]["at"] if number in ended else died_at,
            succeeded=number in ended and ended[number]["succeeded"],
        )
        for number, fields in began.items()
    ]


def read_journals(folder: Path, died_at: Mapping[str, float]) -> list[Run]:
    """Read what all replicas have run."""
    paths = sorted(folder.glob("*.journal"))
    return [run for path in paths for run in read_journal(path, died_at=died_at.get(path.stem, float("inf")))]


def run_twice_at_once(runs: Iterable[Run]) -> set[str]:
    """Return the keys of which two runs overlapped, in one process or in two."""
    until: dict[str, float] = {}
    twice: set[str] = set()
    for run in sorted(runs, key=lambda run: run.began_at):
        if run.began_at < until.get(run.key, 0.0):
            twice.add(run.key)
        until[run.key] = max(until.get(run.key, 0.0), run.ended_at)
    return twice
