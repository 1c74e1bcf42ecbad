"""The list of all seeded bugs."""

from __future__ import annotations

from lab.mutants import delta_fifo, in_order_fifo, listeners, pipeline, reflector, store
from lab.mutants.seeded_bug import SeededBug

EVERY_BUG: list[SeededBug] = [
    *delta_fifo.BUGS,
    *in_order_fifo.BUGS,
    *store.BUGS,
    *reflector.BUGS,
    *listeners.BUGS,
    *pipeline.BUGS,
]
