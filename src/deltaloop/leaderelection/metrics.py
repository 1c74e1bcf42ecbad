"""Upstream's two metrics of leader election.

Source: k8s.io/component-base metrics/prometheus/clientgo/leaderelection/metrics.go.
"""

from __future__ import annotations

import threading
from typing import Final, final

from deltaloop._internal.fork_safety import fork_safe

MASTER_STATUS: Final = "leader_election_master_status"
"""Gauge with the label ``name``: 1 while this process leads, otherwise 0."""

SLOWPATH_TOTAL: Final = "leader_election_slowpath_total"
"""Counter with the label ``name``: renewals whose first attempt failed, so that the leader read the lock."""


@final
class LeaderElectionCounters:
    """Thread-safe counters for all electors of a process, for ``LeaderElector(metrics=...)``."""

    def __init__(self) -> None:
        self._mutex = fork_safe(threading.Lock())
        self._numbers: dict[tuple[str, str], float] = {}

    def leader_on(self, name: str) -> None:
        """Record that this process leads."""
        self._set(name, 1.0)

    def leader_off(self, name: str) -> None:
        """Record that this process does not lead."""
        self._set(name, 0.0)

    def slow_path_exercised(self, name: str) -> None:
        """Record that the first attempt of a renewal failed, so the leader reads the lock."""
        with self._mutex:
            key = (SLOWPATH_TOTAL, name)
            self._numbers[key] = self._numbers.get(key, 0.0) + 1.0

    def samples(self) -> dict[tuple[str, str], float]:
        """Return the values by metric and elector name."""
        with self._mutex:
            return dict(self._numbers)

    def _set(self, name: str, value: float) -> None:
        with self._mutex:
            self._numbers[(MASTER_STATUS, name)] = value
