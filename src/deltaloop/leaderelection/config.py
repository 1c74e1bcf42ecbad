"""Options and metrics hooks of leader election."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.leaderelection.core.election import ElectionTiming


class LeaderElectionMetrics(Protocol):
    """Hooks for metrics.

    They must not block. ``name`` is the name of the elector.

    Source: client-go tools/leaderelection/metrics.go (``leader_election_master_status``,
    ``leader_election_slowpath_total``).
    """

    def leader_on(self, name: str) -> None:
        """Record that this process leads."""
        ...

    def leader_off(self, name: str) -> None:
        """Record that this process does not lead."""
        ...

    def slow_path_exercised(self, name: str) -> None:
        """Record that the first attempt of a renewal failed, so the leader reads the lock."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionConfig:
    """Options of a ``LeaderElector``.

    The default durations are those of the Kubernetes components. Callbacks are plain functions that run on the event
    loop and must not block. Their exceptions are logged. Do the work in ``elector.run`` or inside a term, not in
    callbacks.

    Attributes:
        lease_duration: Seconds that other candidates wait after the last change that they observed before they take
            over.
        renew_deadline: Seconds for which a leader leads after it sent its last successful renewal.
        retry_period: Seconds between two attempts. Candidates add a random delay of up to 1.2 times this value.
        release_on_cancel: Whether to release the lock at the end of a term, so that the next leader does not wait until
            the lease expires.
        rejoin: Whether to contend again after leadership is lost. If False, ``terms()`` ends, as in client-go.
        name: Name in logs and metrics. The default is the description of the lock.
        on_started_leading: Function called when a term is entered.
        on_stopped_leading: Function called when the body of a term has ended, before the lock is released.
        on_new_leader: Function called with the identity of each new leader, including this candidate.
        warning_interval: Seconds between log messages about a body that does not end after leadership was lost.
        renew_in_thread: Whether to renew on a separate thread, event loop and connection, so that slow steps of the
            work do not delay renewals. The work's event loop must still respond within the renew deadline. The option
            requires a lock of deltaloop with a client of deltaloop. Other locks renew on the work's event loop.
        exit_after_loss: Seconds after a loss of leadership until the process exits with code 70, if the work has not
            ended by then. None disables the exit. If the event loop is blocked, this requires ``renew_in_thread``.

    Raises:
        InvalidArgumentError: If a duration is not positive, or unless ``lease_duration > renew_deadline > 1.2 *
            retry_period``.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release_on_cancel: bool = True
    rejoin: bool = True
    name: str = ""
    on_started_leading: Callable[[], object] | None = None
    on_stopped_leading: Callable[[], object] | None = None
    on_new_leader: Callable[[str], object] | None = None
    warning_interval: float = 5.0
    renew_in_thread: bool = True
    exit_after_loss: float | None = None

    def __post_init__(self) -> None:
        check_types(self)
        require_positive("LeaderElectionConfig", warning_interval=self.warning_interval)
        if self.exit_after_loss is not None:
            require_not_negative("LeaderElectionConfig", exit_after_loss=self.exit_after_loss)
        self.timing()

    def timing(self) -> ElectionTiming:
        """Return the durations of the election."""
        return ElectionTiming(
            lease_duration=self.lease_duration, renew_deadline=self.renew_deadline, retry_period=self.retry_period
        )


CORE_COMPONENTS: Final = LeaderElectionConfig(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)
"""Settings of the scheduler and the controller manager of Kubernetes, and the defaults of deltaloop.

A leader that disappears is replaced within 24 s: the lease duration and two waits of up to 2.2 retry periods.
"""

CONTROL_PLANE_UPGRADES: Final = LeaderElectionConfig(lease_duration=137.0, renew_deadline=107.0, retry_period=26.0)
"""Settings of OpenShift. A leader survives 78 s without an API server, and its replacement takes up to 252 s.

Source: openshift/library-go pkg/config/leaderelection, ``LeaderElectionDefaulting``.
"""

EXAMPLE: Final = LeaderElectionConfig(lease_duration=60.0, renew_deadline=15.0, retry_period=5.0)
"""Settings of client-go's example. After a loss, the work has 45 s to stop before another candidate takes over.

Source: client-go examples/leader-election/main.go.
"""
