"""Durations of an election."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from deltaloop._internal.option_types import check_types
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.leaderelection.core.record import LARGEST_NUMBER

JITTER_FACTOR: Final = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTiming:
    """Durations of an election in seconds.

    The defaults are those of the Kubernetes components.

    Attributes:
        lease_duration: Time that other candidates wait after the last change that they observed before they take over.
        renew_deadline: Time for which a leader leads without a successful renewal.
        retry_period: Time between two attempts. Candidates add a random delay of up to 1.2 times this value.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Reject durations that permit two leaders or leave no time to renew."""
        check_types(self)
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value: float = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"must be a finite number > 0, got {value!r}.", argument=name)
        if self.lease_duration > LARGEST_NUMBER:
            raise InvalidArgumentError(
                f"must be <= {LARGEST_NUMBER}, got {self.lease_duration:g}.", argument="lease_duration"
            )
        if not self.lease_duration > self.renew_deadline:
            raise InvalidArgumentError(
                f"({self.lease_duration:g} s) must be greater than renew_deadline ({self.renew_deadline:g} s), so that "
                "the leader stops before another candidate takes over.",
                argument="lease_duration",
            )
        if not self.renew_deadline > JITTER_FACTOR * self.retry_period:
            raise InvalidArgumentError(
                f"({self.renew_deadline:g} s) must be greater than {JITTER_FACTOR:g} times retry_period "
                f"({self.retry_period:g} s), so that the leader can retry.",
                argument="renew_deadline",
            )
