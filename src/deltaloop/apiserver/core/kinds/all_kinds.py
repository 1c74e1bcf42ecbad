"""The strategies of the built-in kinds, by resource and group; what is not here has nothing of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import lease
from deltaloop.apiserver.core.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "leases.coordination.k8s.io": lease.STRATEGY,
}
