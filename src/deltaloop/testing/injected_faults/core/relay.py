"""What a relay does with the bytes of one connection: pass them on, or do harm as it was told.

    peer ──received──▶ [ line of one direction ] ──Send──▶ other peer

A *fault* waits for its moment (at once, after so many seconds, or after so many bytes of its direction were passed on)
and is then in force:

| fault      | from its moment on                                                                              |
| ---------- | ------------------------------------------------------------------------------------------------ |
| `Cut`      | both sides are closed, as by a program that ends                                                  |
| `Reset`    | both sides are closed by a reset, as by a machine that crashed                                    |
| `Stall`    | bytes of its direction wait, and are no longer read once 64 KiB wait; for ever, or for some time  |
| `HalfOpen` | what either side sends, its end included, is read and thrown away: each believes the other is there |
| `Delay`    | bytes of its direction arrive later, in order                                                     |
| `Throttle` | bytes of its direction arrive at a rate                                                           |
| `Corrupt`  | the next bytes of its direction have some of their bits flipped                                   |

Rules:

* Without faults, both directions are passed on byte for byte, ends of stream included. Nothing is ever sent twice.
* A moment by bytes is exact: the byte before it has been passed on, the byte after it has not.
* Moments by time come in the order of their time; bytes that were due before one are passed on before it.
* Moments count from when the fault was given to the connection.
* Once both peers have ended their side and nothing that could be passed on is left, the connection is over.
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
    """Which way bytes go."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"

    @property
    def opposite(self) -> Direction:
        """The other one."""
        return Direction.TO_CLIENT if self is Direction.TO_SERVER else Direction.TO_SERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayFault:
    """What all faults have: a direction and a moment.

    Attributes:
        direction: Whose bytes are counted, and which of them the fault is about.
        after_bytes: The moment comes once so many bytes of the direction were passed on.
        after: The moment comes after so many seconds. Without either, it is now.
    """

    direction: Direction = Direction.TO_CLIENT
    after_bytes: int | None = None
    after: float | None = None

    def __post_init__(self) -> None:
        """Refuse moments that are none.

        Raises:
            ValueError: If one is negative, or both are given.
        """
        name = type(self).__name__
        if self.after_bytes is not None and self.after is not None:
            raise ValueError(f"{name} has both after_bytes and after; a moment is one of them")
        require_not_negative(name, after_bytes=self.after_bytes or 0, after=self.after or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(RelayFault):
    """Close both sides in order, after what was passed on has left."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(RelayFault):
    """Close both sides by a reset; what was passed on and not yet read may be lost with it, as TCP has it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stall(RelayFault):
    """Pass on nothing in the direction; the end of its stream waits, too.

    Attributes:
        duration: For so many seconds; None means for ever.
    """

    duration: float | None = None

    def __post_init__(self) -> None:
        """Refuse a negative duration."""
        RelayFault.__post_init__(self)
        require_not_negative("Stall", duration=self.duration or 0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalfOpen(RelayFault):
    """Throw away what either side sends and tell neither about it, as when a node or a NAT entry is gone.

    The kernels still acknowledge to each other, because the relay is there: TCP's own time limits do not notice.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(RelayFault):
    """Let bytes that come from then on arrive later.

    Attributes:
        seconds: How much later.
    """

    seconds: float

    def __post_init__(self) -> None:
        """Refuse a negative delay."""
        RelayFault.__post_init__(self)
        require_not_negative("Delay", seconds=self.seconds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle(RelayFault):
    """Let bytes arrive at a rate.

    Attributes:
        bytes_per_second: Most bytes that pass in a second.
    """

    bytes_per_second: float

    def __post_init__(self) -> None:
        """Refuse a rate that is none."""
        RelayFault.__post_init__(self)
        require_positive("Throttle", bytes_per_second=self.bytes_per_second)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(RelayFault):
    """Flip bits of the next bytes.

    Attributes:
        count: Of how many bytes.
        mask: Which bits, 1 to 255; the lowest one by default.
    """

    count: int = 1
    mask: int = 1

    def __post_init__(self) -> None:
        """Refuse what changes nothing."""
        RelayFault.__post_init__(self)
        if self.count < 1 or not 1 <= self.mask <= 255:
            raise ValueError(f"Corrupt(count={self.count}, mask={self.mask}) flips nothing; 1 or more and 1 to 255")


@dataclass(frozen=True, slots=True)
class Send:
    """Send bytes to the peer that the direction leads to."""

    direction: Direction
    data: bytes


@dataclass(frozen=True, slots=True)
class Finish:
    """End the stream of a direction; the other one goes on."""

    direction: Direction


@dataclass(frozen=True, slots=True)
class Close:
    """Close both sides: it is over."""

    by_reset: bool = False


Act: TypeAlias = Send | Finish | Close


@dataclass(slots=True)
class _Line:
    """One direction."""

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
        """Return when the next bytes, or the end, can be passed on; None if there is nothing."""
        if not self.waiting:
            return max(self.stalled_until, self.last_ready_at) if self.ended and not self.finished else None
        return max(self.waiting[0][0], self.stalled_until, self.free_at)


@final
class RelayMachine:
    """The state of one connection. Feed it, ``act``, and come again at ``wake_at``."""

    def __init__(self, faults: Iterable[RelayFault] = (), *, now: float) -> None:
        """Begin a connection with faults."""
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
        """Take one more fault; its moment counts from now."""
        if fault.after_bytes is not None:
            line = self._lines[fault.direction]
            line.armed.append((line.passed + fault.after_bytes, fault))
            line.armed.sort(key=lambda entry: entry[0])
            self._fire_by_bytes(line, now)
        else:
            self._timed.append((now + (fault.after or 0.0), fault))
            self._timed.sort(key=lambda entry: entry[0])

    def clear(self, now: float) -> None:
        """Forget all faults: what was held or delayed goes on at once, what a half-open time swallowed stays lost."""
        self._timed.clear()
        self._half_open = False
        for line in self._lines.values():
            line.armed.clear()
            line.stalled_until = line.free_at = now
            line.delay, line.rate, line.corrupted = 0.0, None, 0
            line.last_ready_at = min(line.last_ready_at, now)
            line.waiting = deque((min(ready_at, now), data) for ready_at, data in line.waiting)

    def received(self, direction: Direction, data: bytes, now: float) -> None:
        """A peer sent bytes.

        Raises:
            RuntimeError: If it had ended its stream: a bug of the driver.
        """
        line = self._lines[direction]
        if line.ended:
            raise RuntimeError(f"bytes {direction} came after the end of that stream")
        if not data or self._over:
            return
        self._catch_up(now)  # whether these bytes are swallowed or delayed is decided by what is in force now
        if self._half_open or self._closing is not None:
            return
        line.last_ready_at = now + line.delay
        line.waiting.append((line.last_ready_at, data))
        line.size += len(data)

    def ended(self, direction: Direction, now: float) -> None:
        """A peer ended its stream."""
        self._catch_up(now)
        line = self._lines[direction]
        line.ended = True
        line.last_ready_at = now + line.delay

    def lost(self, direction: Direction, now: float) -> None:
        """The peer that sends in this direction is gone by a reset: the other one gets a reset, too, if it may know."""
        self._catch_up(now)
        self._lines[direction].ended = True
        if not self._half_open and self._closing is None:
            self._closing = Close(by_reset=True)

    # What to do

    def act(self, now: float) -> list[Act]:
        """Return everything that is to be done now, in order; after ``Close`` there is nothing more, ever."""
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
        """Return when to ``act`` next if nothing is fed until then; None means never."""
        if self._over:
            return None
        moments = [moment for moment, _ in self._timed[:1]]
        if not self._half_open:
            moments += [at for line in self._lines.values() if (at := line.next_at()) is not None]
        soonest = min(moments, default=math.inf)
        return None if math.isinf(soonest) else soonest

    def reads(self, direction: Direction) -> bool:
        """Tell whether more bytes of a direction should be read; if not, the sender is held up."""
        return self._half_open or self._lines[direction].size < BUFFER_LIMIT

    def passed(self, direction: Direction) -> int:
        """Return how many bytes of a direction were passed on."""
        return self._lines[direction].passed

    @property
    def over(self) -> bool:
        """Whether both sides were told to close."""
        return self._over

    # Inside

    def _catch_up(self, now: float) -> None:
        """Do what was due until now, faults and bytes in the order of their moments."""
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
        """Pass on the first slice that waits, or the part of it until the next moment by bytes."""
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
                raise TypeError(f"{type(fault).__name__} is no fault that a relay knows")

    def _is_done(self) -> bool:
        if not all(line.ended for line in self._lines.values()):
            return False
        # What a stall holds for ever has nobody left to wait for it.
        return self._half_open or all(line.finished or line.stalled_until == math.inf for line in self._lines.values())
