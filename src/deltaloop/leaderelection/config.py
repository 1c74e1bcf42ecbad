"""The options of leader election, and the hooks through which it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.leaderelection.core.timing import ElectionTiming


class LeaderElectionMetrics(Protocol):
    """Hooks for metrics; ``name`` is the elector's.

    They must not block.

    Source: client-go tools/leaderelection/metrics.go (``leader_election_master_status``,
    ``leader_election_slowpath_total``).
    """

    def leader_on(self, name: str) -> None:
        """This process leads from now on."""
        ...

    def leader_off(self, name: str) -> None:
        """This process does not lead any more."""
        ...

    def slow_path_exercised(self, name: str) -> None:
        """A renewal at the first try failed, so the leader reads the lock."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionConfig:
    """Options of a ``LeaderElector``; the durations are those of Kubernetes' own components, in seconds.

    Callbacks are plain functions on the event loop; they must not block, and what they raise is logged. Work belongs
    into ``elector.run`` or a term's body instead.

    Attributes:
        lease_duration: How long others wait, after the last change that they saw, before they take over.
        renew_deadline: How long a leader leads without a successful renewal, from the start of the last one.
        retry_period: Time from one try to the next; candidates lengthen it by up to 1.2 times itself.
        release_on_cancel: Give the lock up when a term ends, so that the next leader need not wait for it to expire.
        rejoin: Contend again after leadership was lost; False ends ``terms()``, as client-go does.
        name: Name in logs and metrics; the lock's description by default.
        on_started_leading: Called when a term is entered.
        on_stopped_leading: Called when an entered term's body has ended, before the lock is released.
        on_new_leader: Called with the identity when another leader is seen than before, the own one included.
        warning_interval: A term's body that does not end after leadership was lost is named in the log this often.
        renew_in_thread: Renew on a thread, event loop and connection of their own, so that a slow step of the work
            costs nothing; as long as the work's loop answers within the renew deadline. Only if the lock can be moved
            there (the locks of this package over a client of this package). False renews on the loop of the work.
        exit_after_loss: Seconds after leadership was lost at which the process is ended (exit code 70) if the work
            has still not ended; None never does. 0 or more. A loop that is blocked can only be ended by
            ``renew_in_thread``.

    Raises:
        InvalidArgumentError: If the durations do not fit together: all greater than 0, and
            ``lease_duration > renew_deadline > 1.2 * retry_period``.
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
        """Refuse durations that do not fit together."""
        check_types(self)
        require_positive("LeaderElectionConfig", warning_interval=self.warning_interval)
        if self.exit_after_loss is not None:
            require_not_negative("LeaderElectionConfig", exit_after_loss=self.exit_after_loss)
        self.timing()

    def timing(self) -> ElectionTiming:
        """Return the durations that the decisions need."""
        return ElectionTiming(
            lease_duration=self.lease_duration, renew_deadline=self.renew_deadline, retry_period=self.retry_period
        )
