"""CEL environments of this server for new expressions, which the previous version must accept, and for stored ones.

Source: k8s.io/apiserver pkg/cel/environment/environment.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.cel import Environment
from deltaloop.cel.kubernetes import kubernetes_environment

_MAJOR, _MINOR = (int(part) for part in MINOR.split("."))
STORED: Final[Environment] = kubernetes_environment()
NEW: Final[Environment] = kubernetes_environment((_MAJOR, _MINOR - 1))
