"""Prints the list of seeded bugs."""

from __future__ import annotations

from lab.mutants.every import EVERY_BUG

for bug in EVERY_BUG:
    print(f"{bug.part:22}{bug.name}: {bug.what}")
