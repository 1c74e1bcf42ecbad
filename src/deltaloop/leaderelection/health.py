"""The health check of an elector, as a health server calls it: a leader whose lease has long expired is not well."""

from __future__ import annotations

from typing import Final, final

from deltaloop._internal.pacing.checks import require_positive
from deltaloop.leaderelection.elector import LeaderElector

DEFAULT_TOLERANCE: Final = 20.0


@final
class LeaderHealthCheck:
    """A check to hand to a health server before there is an elector.

    From any thread.

    Args:
        tolerance: Seconds that a term may go on after its lease has expired, without being renewed; 20 as in the
            scheduler and the controller manager of Kubernetes.

    Source: client-go tools/leaderelection/healthzadaptor.go, ``HealthzAdaptor``.
    """

    name: Final = "leaderElection"

    def __init__(self, tolerance: float = DEFAULT_TOLERANCE) -> None:
        require_positive("LeaderHealthCheck", tolerance=tolerance)
        self.tolerance = tolerance
        self._elector: LeaderElector | None = None

    def set_elector(self, elector: LeaderElector) -> None:
        """Check this elector from now on."""
        self._elector = elector

    def check(self) -> None:
        """Return if there is no elector, it does not lead, or its lease is fresh enough.

        Raises:
            LeadershipLostError: If a term runs on although its lease has expired for longer than the tolerance.
        """
        if self._elector is not None:
            self._elector.check(self.tolerance)
