"""What a state machine says when there is nothing to do yet."""

from __future__ import annotations

from typing import final

import msgspec


@final
class Wait(msgspec.Struct, frozen=True):
    """Nothing to do before ``until``; ask again then."""

    until: float
