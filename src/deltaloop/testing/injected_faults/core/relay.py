"""State machine of a relayed connection: forward bytes, and apply faults.

    peer ──received──▶ [ line of one direction ] ──Send──▶ other peer

A *fault* begins at its moment (immediately, after some seconds, or after some forwarded bytes of its direction).

Rules:

* Without faults, both directions are forwarded byte for byte, including ends of stream.
* A moment in bytes is exact: the byte before it has been forwarded, the byte after it has not.
* Moments count from the time when the connection received the fault, and apply in the order of their time.
* The connection ends once both peers have ended their streams and no byte that could be forwarded is left.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, final

from deltaloop._internal.pacing.checks import require_not_negative, require_positive

BUFFER_LIMIT: Final = 64 * 1024
_THROTTLE_STEP: Final = 0.05


class Direction(StrEnum):
    """Direction of bytes."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"

    @property
    def opposite(self) -> Direction:
        """Opposite direction."""
        return Direction.TO_CLIENT if self is Direction.TO_SERVER else Direction.TO_SERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayFault:
    """Base class of faults, with a direction and a moment.

    Attributes:
        direction: Direction whose bytes are counted and affected.
        after_bytes: Number of forwarded bytes of the direction after which the fault begins.
        after: Seconds after which the fault begins. By default, it begins immediately.
    """

    direction: Direction = Direction.TO_CLIENT
    after_bytes: int | None = None
    after: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.after_bytes is not None and self.after is not None:
            raise ValueError(f"{name}: after_bytes and after cannot be combined. Use one of them.")
        require_not_negative(name, after_bytes=self.after_bytes or 0, after=self.after or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(RelayFault):
    """Close both sides gracefully, after forwarded bytes were sent."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(RelayFault):
    """Reset both sides; forwarded bytes that were not read yet may be lost, as usual in TCP."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stall(RelayFault):
    """Stop forwarding bytes in the direction, including the end of its stream.

    Attributes:
        duration: Duration in seconds; None means permanently.
    """

    duration: float | None = None

    def __post_init__(self) -> None:
        RelayFault.__post_init__(self)
        require_not_negative("Stall", duration=self.duration or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalfOpen(RelayFault):
    """Silently discard the bytes of both sides, like a lost node or NAT entry.

    The kernels still acknowledge the bytes, because the relay exists, so TCP timeouts do not detect the fault.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(RelayFault):
    """Delay bytes that arrive from then on.

    Attributes:
        seconds: Delay in seconds.
    """

    seconds: float

    def __post_init__(self) -> None:
        RelayFault.__post_init__(self)
        require_not_negative("Delay", seconds=self.seconds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle(RelayFault):
    """Limit the rate of bytes.

    Attributes:
        bytes_per_second: Maximum bytes per second.
    """

    bytes_per_second: float

    def __post_init__(self) -> None:
        RelayFault.__post_init__(self)
        require_positive("Throttle", bytes_per_second=self.bytes_per_second)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(RelayFault):
    """Flip bits of the next bytes.

    Attributes:
        count: Number of bytes.
        mask: Bits to flip, 1 to 255; by default the lowest bit.
    """

    count: int = 1
    mask: int = 1

    def __post_init__(self) -> None:
        RelayFault.__post_init__(self)
        if self.count < 1 or not 1 <= self.mask <= 255:
            raise ValueError(f"Corrupt must have count >= 1 and mask 1 to 255, got {self.count} and {self.mask}.")


@dataclass(frozen=True, slots=True)
class Send:
    """Action: send bytes to the peer in this direction."""

    direction: Direction
    data: bytes


@dataclass(frozen=True, slots=True)
class Finish:
    """Action: end the stream of a direction; the other direction continues."""

    direction: Direction


@dataclass(frozen=True, slots=True)
class Close:
    """Action: close both sides, which ends the connection."""

    by_reset: bool = False


Act: TypeAlias = Send | Finish | Close


@dataclass(slots=True)
class _Line:
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque[tuple[float, bytes]])
    size: int = 0
    passed: int = 0
    ended: bool = False
    finished: bool = False
    last_ready_at: float = -math.inf
    stalled_until: float = -math.inf
    delay: float = 0.0
    rate: float | None = None
    free_at: float = -math.inf
    corrupted: int = 0
    mask: int = 0
    armed: list[tuple[int, RelayFault]] = field(default_factory=list[tuple[int, RelayFault]])

    def next_at(self) -> float | None:
        """Return the time when the next bytes, or the end, can be forwarded; None if the line is empty."""
        if not self.waiting:
            return max(self.stalled_until, self.last_ready_at) if self.ended and not self.finished else None
        return max(self.waiting[0][0], self.stalled_until, self.free_at)


@final
class RelayMachine:
    """State machine of one connection; feed it, then call ``act`` now and at ``wake_at``."""

    def __init__(self, faults: Iterable[RelayFault] = (), *, now: float) -> None:
        self._lines = {direction: _Line() for direction in Direction}
        self._timed: list[tuple[float, RelayFault]] = []
        self._half_open = False
        self._closing: Close | None = None
        self._over = False
        self._acts: list[Act] = []
        for fault in faults:
            self.inject(fault, now)

    # Feeds

    def inject(self, fault: RelayFault, now: float) -> None:
        if fault.after_bytes is not None:
            line = self._lines[fault.direction]
            line.armed.append((line.passed + fault.after_bytes, fault))
            line.armed.sort(key=lambda entry: entry[0])
            self._fire_by_bytes(line, now)
        else:
            self._timed.append((now + (fault.after or 0.0), fault))
            self._timed.sort(key=lambda entry: entry[0])

    def clear(self, now: float) -> None:
        """Remove all faults; held and delayed bytes continue, but discarded bytes stay lost."""
        self._timed.clear()
        self._half_open = False
        for line in self._lines.values():
            line.armed.clear()
            line.stalled_until = line.free_at = now
            line.delay, line.rate, line.corrupted = 0.0, None, 0
            line.last_ready_at = min(line.last_ready_at, now)
            line.waiting = deque((min(ready_at, now), data) for ready_at, data in line.waiting)

    def received(self, direction: Direction, data: bytes, now: float) -> None:
        """Add bytes from a peer; raise ``RuntimeError`` after the end of its stream."""
        line = self._lines[direction]
        if line.ended:
            raise RuntimeError(f"received bytes {direction} after the end of the stream")
        if not data or self._over:
            return
        self._catch_up(now)  # the faults of this moment decide whether these bytes are discarded or delayed
        if self._half_open or self._closing is not None:
            return
        line.last_ready_at = now + line.delay
        line.waiting.append((line.last_ready_at, data))
        line.size += len(data)

    def ended(self, direction: Direction, now: float) -> None:
        self._catch_up(now)
        line = self._lines[direction]
        line.ended = True
        line.last_ready_at = now + line.delay

    def lost(self, direction: Direction, now: float) -> None:
        """Record a reset by the sender; reset the other peer as well, unless half open."""
        self._catch_up(now)
        self._lines[direction].ended = True
        if not self._half_open and self._closing is None:
            self._closing = Close(by_reset=True)

    # Actions

    def act(self, now: float) -> list[Act]:
        """Return the actions that are due, in order; none after ``Close``."""
        if self._over:
            return []
        self._catch_up(now)
        acts, self._acts = self._acts, []
        if self._closing is None and self._is_done():
            self._closing = Close()
        if self._closing is not None:
            acts.append(self._closing)
            self._over = True
        return acts

    def wake_at(self) -> float | None:
        """Return the time of the next ``act`` if no bytes arrive until then; None means never."""
        if self._over:
            return None
        moments = [moment for moment, _ in self._timed[:1]]
        if not self._half_open:
            moments += [at for line in self._lines.values() if (at := line.next_at()) is not None]
        soonest = min(moments, default=math.inf)
        return None if math.isinf(soonest) else soonest

    def reads(self, direction: Direction) -> bool:
        """Return whether to read more bytes of a direction; otherwise the sender is held back."""
        return self._half_open or self._lines[direction].size < BUFFER_LIMIT

    def passed(self, direction: Direction) -> int:
        return self._lines[direction].passed

    @property
    def over(self) -> bool:
        return self._over

    # Inside

    def _catch_up(self, now: float) -> None:
        """Apply faults and forward bytes that were due until now, in the order of their times."""
        while self._timed and self._timed[0][0] <= now and self._closing is None:
            moment, fault = self._timed.pop(0)
            self._pump_all(moment, including=False)
            if self._closing is None:
                self._fire(fault, moment)
        self._pump_all(now, including=True)

    def _pump_all(self, until: float, *, including: bool) -> None:
        for direction, line in self._lines.items():
            self._pump(direction, line, until, including=including)

    def _pump(self, direction: Direction, line: _Line, until: float, *, including: bool) -> None:
        while not self._half_open and self._closing is None:
            at = line.next_at()
            if at is None or at > until or (at == until and not including):
                return
            if not line.waiting:
                line.finished = True
                self._acts.append(Finish(direction))
                return
            self._pass_on(direction, line, at)

    def _pass_on(self, direction: Direction, line: _Line, now: float) -> None:
        """Forward the first waiting slice, up to the next fault in bytes."""
        ready_at, data = line.waiting.popleft()
        most = len(data)
        if line.rate is not None:
            most = min(most, max(1, int(line.rate * _THROTTLE_STEP)))
        if line.armed:
            most = min(most, line.armed[0][0] - line.passed)
        if line.corrupted:
            most = min(most, line.corrupted)
        now_sent, rest = data[:most], data[most:]
        if rest:
            line.waiting.appendleft((ready_at, rest))
        if line.corrupted:
            line.corrupted -= len(now_sent)
            now_sent = bytes(byte ^ line.mask for byte in now_sent)
        if line.rate is not None:
            line.free_at = now + len(now_sent) / line.rate
        line.size -= len(now_sent)
        line.passed += len(now_sent)
        self._acts.append(Send(direction, now_sent))
        self._fire_by_bytes(line, now)

    def _fire_by_bytes(self, line: _Line, now: float) -> None:
        while line.armed and line.armed[0][0] <= line.passed and self._closing is None:
            self._fire(line.armed.pop(0)[1], now)

    def _fire(self, fault: RelayFault, now: float) -> None:
        line = self._lines[fault.direction]
        match fault:
            case Cut():
                self._closing = Close()
            case Reset():
                self._closing = Close(by_reset=True)
            case HalfOpen():
                self._half_open = True
                for each in self._lines.values():
                    each.waiting.clear()
                    each.size = 0
            case Stall(duration=duration):
                line.stalled_until = max(line.stalled_until, math.inf if duration is None else now + duration)
            case Delay(seconds=seconds):
                line.delay = seconds
            case Throttle(bytes_per_second=rate):
                line.rate = rate
            case Corrupt(count=count, mask=mask):
                line.corrupted, line.mask = count, mask
            case _:
                raise TypeError(f"fault must be a fault of a relay, got {type(fault).__name__}")

    def _is_done(self) -> bool:
        if not all(line.ended for line in self._lines.values()):
            return False
        # Both peers have ended, so bytes of a permanent stall will never be needed.
        return self._half_open or all(line.finished or line.stalled_until == math.inf for line in self._lines.values())
