"""``run_or_die`` and its health check, for programs that exit and are restarted when they lose leadership."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar, final

from deltaloop._internal.pacing.checks import require_positive
from deltaloop.client.client import Client
from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.elector import LeaderElector
from deltaloop.leaderelection.lock import Lock
from deltaloop.leaderelection.term import Term

DEFAULT_TOLERANCE: Final = 20.0


@final
class LeaderHealthCheck:
    """Health check that you can create before the elector.

    It is thread-safe.

    Args:
        tolerance: Seconds for which a term may run after its lease has expired. The default of 20 is that of the
            scheduler and the controller manager of Kubernetes.

    Source: client-go tools/leaderelection/healthzadaptor.go, ``HealthzAdaptor``.
    """

    name: Final = "leaderElection"

    def __init__(self, tolerance: float = DEFAULT_TOLERANCE) -> None:
        require_positive("LeaderHealthCheck", tolerance=tolerance)
        self.tolerance = tolerance
        self._elector: LeaderElector | None = None

    def set_elector(self, elector: LeaderElector) -> None:
        """Set the elector to check."""
        self._elector = elector

    def check(self) -> None:
        """Check that the elector does not exist, does not lead, or has a valid lease.

        Raises:
            LeadershipLostError: If a term is running although its lease expired longer ago than the tolerance.
        """
        if self._elector is not None:
            self._elector.check(self.tolerance)


T = TypeVar("T")


async def run_or_die(
    lock: Lock,
    work: Callable[[Term], Awaitable[T]],
    config: LeaderElectionConfig | None = None,
    *,
    client: Client | None = None,
    metrics: LeaderElectionMetrics | None = None,
    watchdog: LeaderHealthCheck | None = None,
) -> T:
    """Run ``work`` after this process becomes the leader, and return its result.

    The process does not contend again after it loses leadership, regardless of ``rejoin`` in the configuration. Let the
    error end the process. A cancellation cancels the work, waits for its end and releases the lock.

    Args:
        lock: Lock to contend for, for example a ``LeaseLock``.
        work: Function called with the term. It is canceled when leadership is lost.
        config: Durations and callbacks, as in client-go.
        client: Client that ``term.client`` guards. The default is the client of the lock.
        metrics: Hooks for metrics.
        watchdog: Health check that watches the elector.

    Raises:
        LeadershipLostError: If leadership was lost.

    Source: client-go tools/leaderelection/leaderelection.go, ``RunOrDie``, where ``Run`` returns without a result.
    """
    chosen = config if config is not None else LeaderElectionConfig()
    elector = LeaderElector(lock, replace(chosen, rejoin=False), client=client, metrics=metrics)
    if watchdog is not None:
        watchdog.set_elector(elector)
    return await elector.run(work)
