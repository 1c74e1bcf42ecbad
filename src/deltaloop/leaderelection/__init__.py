"""Leader election: of many candidates, at most one works, and another takes over when it is gone.

This room owns the record that candidates share, the decisions of one candidate (``core/``), the locks that store the
record, and the elector with its terms. A leader that cannot renew stops by itself before anybody else may start: its
work is cancelled, and its guarded client refuses writes, by a clock that also runs while the machine sleeps.

Not here: what a leader does (runtime), the clients (client), the recorder of events (events; the two meet by protocol).
"""

from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.core.effects import LossReason, ReleaseOutcome
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState
from deltaloop.leaderelection.core.timing import ElectionTiming
from deltaloop.leaderelection.elector import LeaderElector, Terms
from deltaloop.leaderelection.guard import LeadershipGuard, LeadershipLostError
from deltaloop.leaderelection.guarded_client import GuardedClient, WorkClient
from deltaloop.leaderelection.lock import LeaseClient, LeaseLock, Lock, LockEventRecorder
from deltaloop.leaderelection.term import Term, TermEnd

__all__ = [
    "ElectionTiming",
    "GuardedClient",
    "LeaderElectionConfig",
    "LeaderElectionMetrics",
    "LeaderElectionRecord",
    "LeaderElector",
    "LeadershipGuard",
    "LeadershipLostError",
    "LeaseClient",
    "LeaseLock",
    "Lock",
    "LockEventRecorder",
    "LockState",
    "LossReason",
    "ReleaseOutcome",
    "Term",
    "TermEnd",
    "Terms",
    "WorkClient",
]
