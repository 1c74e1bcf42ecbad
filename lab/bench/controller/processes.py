"""What a process and everything that it has started takes, read from ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 1 << 20


def _stat(process: int) -> list[str]:
    """Return the fields after the name, which may hold anything: the first is the state."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """Return a process and its descendants; none if it is gone."""
    parents = dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except OSError:
                continue  # gone meanwhile
    if root not in parents:
        return []
    found = [root]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def cpu(roots: Iterable[int]) -> float:
    """Return user and system seconds of process trees, with those of children that have ended and were waited for."""
    total = 0
    for root in roots:
        for process in tree(root):
            try:
                total += sum(map(int, _stat(process)[11:15]))
            except OSError:
                continue
    return total / _TICK


def memory(root: int, field: str) -> float:
    """Return ``VmRSS`` or ``VmHWM`` of a process tree, in MiB."""
    total = 0
    for process in tree(root):
        try:
            text = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field + ":"))
    return total / _MIB
