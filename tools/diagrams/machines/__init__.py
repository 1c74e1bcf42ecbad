"""The machines as diagrams and tables: a module for each room, and a few for small cores that belong together."""

from __future__ import annotations

from tools.diagrams.machines import (
    apiserver,
    cache,
    client,
    delays,
    events,
    faults,
    leaderelection,
    reconciles,
    requests,
    runtime,
    server,
    workqueue,
)
from tools.diagrams.model import Diagram, Table

DRAWN = (workqueue, cache, client, requests, leaderelection, events, runtime, reconciles, apiserver)
TABLES = (delays, reconciles, faults, server)


def all_diagrams() -> list[Diagram]:
    """Walk every machine."""
    return [diagram for module in DRAWN for diagram in module.diagrams()]


def all_tables() -> list[Table]:
    """Ask every core that has no states about each of its cases."""
    return [requests.retries(), *(table for module in TABLES for table in module.tables())]
