"""Health check of an elector."""

from __future__ import annotations

from typing import Final, final

from deltaloop._internal.pacing.checks import require_positive
from deltaloop.leaderelection.elector import LeaderElector

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
