"""Waiting effect of state machines."""

from __future__ import annotations

from typing import final

import msgspec


@final
class Wait(msgspec.Struct, frozen=True):
    """Wait until ``until``, then call ``ask`` again."""

    until: float
