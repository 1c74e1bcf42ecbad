"""Leader election: of many candidates, at most one works, and another takes over when it is gone.

This room owns the record that candidates share, the decisions of one candidate (``core/``), the locks that store the
record, and the elector with its terms. A leader that cannot renew stops before another candidate may lead: its work is
cancelled, and its guarded client refuses writes, by a clock that also runs while the machine sleeps.

Not here: what a leader does (runtime), the clients (client), the recorder of events (events; the two meet by protocol).
"""

from deltaloop.leaderelection.config import LeaderElectionConfig as LeaderElectionConfig
from deltaloop.leaderelection.config import LeaderElectionMetrics as LeaderElectionMetrics
from deltaloop.leaderelection.core.annotation import LEADER_ANNOTATION as LEADER_ANNOTATION
from deltaloop.leaderelection.core.combined import UNKNOWN_LEADER as UNKNOWN_LEADER
from deltaloop.leaderelection.core.effects import LossReason as LossReason
from deltaloop.leaderelection.core.effects import ReleaseOutcome as ReleaseOutcome
from deltaloop.leaderelection.core.record import LeaderElectionRecord as LeaderElectionRecord
from deltaloop.leaderelection.core.record import LockState as LockState
from deltaloop.leaderelection.core.timing import ElectionTiming as ElectionTiming
from deltaloop.leaderelection.elector import LeaderElector as LeaderElector
from deltaloop.leaderelection.elector import Terms as Terms
from deltaloop.leaderelection.guard import LeadershipGuard as LeadershipGuard
from deltaloop.leaderelection.health import LeaderHealthCheck as LeaderHealthCheck
from deltaloop.leaderelection.last_resort import LAST_RESORT_EXIT_CODE as LAST_RESORT_EXIT_CODE
from deltaloop.leaderelection.lock import LeaseClient as LeaseClient
from deltaloop.leaderelection.lock import Lock as Lock
from deltaloop.leaderelection.lock import LockEventRecorder as LockEventRecorder
from deltaloop.leaderelection.lock import MovableLock as MovableLock
from deltaloop.leaderelection.metrics import MASTER_STATUS as MASTER_STATUS
from deltaloop.leaderelection.metrics import SLOWPATH_TOTAL as SLOWPATH_TOTAL
from deltaloop.leaderelection.metrics import LeaderElectionCounters as LeaderElectionCounters
from deltaloop.leaderelection.multi_lock import MultiLock as MultiLock
from deltaloop.leaderelection.object_lock import ConfigMapLock as ConfigMapLock
from deltaloop.leaderelection.object_lock import EndpointsLock as EndpointsLock
from deltaloop.leaderelection.object_lock import LeaseLock as LeaseLock
from deltaloop.leaderelection.object_lock import ObjectLock as ObjectLock
from deltaloop.leaderelection.presets import CONTROL_PLANE_UPGRADES as CONTROL_PLANE_UPGRADES
from deltaloop.leaderelection.presets import CORE_COMPONENTS as CORE_COMPONENTS
from deltaloop.leaderelection.presets import EXAMPLE as EXAMPLE
from deltaloop.leaderelection.run_or_die import run_or_die as run_or_die
from deltaloop.leaderelection.term import Term as Term
from deltaloop.leaderelection.term import TermEnd as TermEnd
