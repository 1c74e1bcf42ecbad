"""PriorityClass: those of the system, which are there without an object of theirs.

Source: Kubernetes pkg/apis/scheduling/types.go.
"""

from __future__ import annotations

from typing import Final

SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
