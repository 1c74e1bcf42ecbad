"""Proven settings, for example for ``dataclasses.replace(CORE_COMPONENTS, on_new_leader=...)``."""

from __future__ import annotations

from typing import Final

from deltaloop.leaderelection.config import LeaderElectionConfig

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
