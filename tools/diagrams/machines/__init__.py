"""One module for each room: its machines as diagrams."""

from __future__ import annotations

from tools.diagrams.machines import apiserver, cache, client, events, leaderelection, runtime, workqueue
from tools.diagrams.model import Diagram

ROOMS = (workqueue, cache, client, leaderelection, events, runtime, apiserver)


def all_diagrams() -> list[Diagram]:
    """Walk every machine."""
    return [diagram for room in ROOMS for diagram in room.diagrams()]
