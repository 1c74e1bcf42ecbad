"""What a state machine says when there is nothing to do yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before ``until``; ask again then."""

    until: float
