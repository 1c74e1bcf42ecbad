"""Settings with a history, to start from: ``dataclasses.replace(CORE_COMPONENTS, on_new_leader=...)``."""

from __future__ import annotations

from typing import Final

from deltaloop.leaderelection.config import LeaderElectionConfig

CORE_COMPONENTS: Final = LeaderElectionConfig(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)
"""What the scheduler and the controller manager of Kubernetes use; our default.

A leader that is just gone is replaced within 24 s at the worst: the lease, and two waits of up to 2.2 retry periods.
"""

CONTROL_PLANE_UPGRADES: Final = LeaderElectionConfig(lease_duration=137.0, renew_deadline=107.0, retry_period=26.0)
"""OpenShift's: survives 78 s without an API server, and takes up to 252 s to replace a leader that is just gone.

Source: openshift/library-go pkg/config/leaderelection, ``LeaderElectionDefaulting``.
"""

EXAMPLE: Final = LeaderElectionConfig(lease_duration=60.0, renew_deadline=15.0, retry_period=5.0)
"""client-go's example program: a work may take long to stop, 45 s until others may take over.

Source: client-go examples/leader-election/main.go.
"""
