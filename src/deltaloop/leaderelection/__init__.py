"""Leader election: of many candidates, at most one works, and another takes over when it is gone.

This room owns the record that candidates share, the decisions of one candidate (``core/``), the locks that store the
record, and the elector with its terms. A leader that cannot renew stops by itself before anybody else may start: its
work is cancelled, and its guarded client refuses writes, by a clock that also runs while the machine sleeps.

Not here: what a leader does (runtime), the clients (client), the recorder of events (events; the two meet by protocol).
"""

from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.core.annotation import LEADER_ANNOTATION
from deltaloop.leaderelection.core.combined import UNKNOWN_LEADER
from deltaloop.leaderelection.core.effects import LossReason, ReleaseOutcome
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState
from deltaloop.leaderelection.core.timing import ElectionTiming
from deltaloop.leaderelection.elector import LeaderElector, Terms
from deltaloop.leaderelection.guard import LeadershipGuard, LeadershipLostError
from deltaloop.leaderelection.health import LeaderHealthCheck
from deltaloop.leaderelection.last_resort import LAST_RESORT_EXIT_CODE
from deltaloop.leaderelection.lock import LeaseClient, Lock, LockEventRecorder, MovableLock
from deltaloop.leaderelection.metrics import MASTER_STATUS, SLOWPATH_TOTAL, LeaderElectionCounters
from deltaloop.leaderelection.multi_lock import MultiLock
from deltaloop.leaderelection.object_lock import ConfigMapLock, EndpointsLock, LeaseLock, ObjectLock
from deltaloop.leaderelection.presets import CONTROL_PLANE_UPGRADES, CORE_COMPONENTS, EXAMPLE
from deltaloop.leaderelection.run_or_die import run_or_die
from deltaloop.leaderelection.term import Term, TermEnd

__all__ = [
    "CONTROL_PLANE_UPGRADES",
    "CORE_COMPONENTS",
    "EXAMPLE",
    "LAST_RESORT_EXIT_CODE",
    "LEADER_ANNOTATION",
    "MASTER_STATUS",
    "SLOWPATH_TOTAL",
    "UNKNOWN_LEADER",
    "ConfigMapLock",
    "ElectionTiming",
    "EndpointsLock",
    "LeaderElectionConfig",
    "LeaderElectionCounters",
    "LeaderElectionMetrics",
    "LeaderElectionRecord",
    "LeaderElector",
    "LeaderHealthCheck",
    "LeadershipGuard",
    "LeadershipLostError",
    "LeaseClient",
    "LeaseLock",
    "Lock",
    "LockEventRecorder",
    "LockState",
    "LossReason",
    "MovableLock",
    "MultiLock",
    "ObjectLock",
    "ReleaseOutcome",
    "Term",
    "TermEnd",
    "Terms",
    "run_or_die",
]
