"""Check whether programs under test have settled, and report the keys that keep them busy.

A program is *settled* if no key is queued, reconciled or waiting for a retry (other than ``requeue_after``), its caches
match the server, and it is not starting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from deltaloop._internal.root_error import DeltaloopError

_HOT: Final = 8  # observations of one busy key while no time passed
_MOST_LOOKS: Final = 500
_MOST_NAMED: Final = 10


@final
class NotSettledError(DeltaloopError, AssertionError):
    """Error of programs that did not settle; the message lists pending work and the activity during the wait.

    Attributes:
        left: Descriptions of the pending work.
    """

    def __init__(self, message: str, *, left: tuple[str, ...]) -> None:
        super().__init__(message)
        self.left = left


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Work queue of a controller; ``failing`` has the keys to retry, with delay in seconds and type of the error."""

    controller: str
    waiting: int = 0
    running: tuple[str, ...] = ()
    failing: tuple[tuple[str, float, str], ...] = ()
    runs: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """State of one program; another program with the same controllers (``does``) can replace it."""

    name: str
    starting: bool = False
    ended_by: str = ""
    stands_by: bool = False
    disconnected: bool = False
    paused: bool = False
    ranges_move: bool = False
    does: str = ""
    queues: tuple[QueueState, ...] = ()


def left_to_do(replicas: Sequence[ReplicaState]) -> tuple[str, ...]:
    """Return descriptions of the pending work; empty if all programs are settled."""
    left = [_starts(replica) for replica in replicas if replica.starting]
    running = [replica for replica in replicas if not replica.starting]
    working = [replica for replica in running if not (replica.stands_by or replica.disconnected or replica.paused)]
    if running and not working and not left:
        left.append(f"no program is working: {', '.join(map(_why_not, running))}")
    elif working:
        done = {replica.does for replica in working}
        held_up = [replica for replica in running if replica.disconnected or replica.paused]
        left += [
            f"{_why_not(replica)}, and no other replica takes over" for replica in held_up if replica.does not in done
        ]
    left += [f"{replica.name}: ranges have no owner yet, or move" for replica in working if replica.ranges_move]
    left += [text for replica in working for queue in replica.queues for text in _left_in(replica.name, queue)]
    return tuple(left)


def _starts(replica: ReplicaState) -> str:
    return f"{replica.name} starts" + (f" again after {replica.ended_by}" if replica.ended_by else "")


def _why_not(replica: ReplicaState) -> str:
    why = (
        "is disconnected from the server" if replica.disconnected else "is paused" if replica.paused else "is a standby"
    )
    return f"{replica.name} {why}"


def _left_in(name: str, queue: QueueState) -> Iterable[str]:
    where = f"{name}: {queue.controller}"
    if queue.waiting:
        yield f"{where} has {queue.waiting} {'key' if queue.waiting == 1 else 'keys'} in its queue"
    yield from (f"{where} reconciles {key}" for key in queue.running)
    for key, delay, error in queue.failing:
        yield f"{where} retries {key} in {delay:.3g} s after {f'{error} (see the log)' if error else 'a failure'}"


@final
class Settling:
    def __init__(self, *, now: float, timeout: float) -> None:
        self._until = now + timeout
        self._timeout = timeout
        self._last_at = now
        self._looks = 0  # since time last advanced
        self._hot: Counter[tuple[str, str, str]] = Counter()
        self._began: dict[tuple[str, str], int] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._left: tuple[str, ...] = ()

    def look(self, replicas: Sequence[ReplicaState], left: tuple[str, ...], *, now: float) -> bool:
        self._left = left
        if now != self._last_at:
            self._last_at, self._looks = now, 0
            self._hot.clear()
        self._looks += 1
        for replica in replicas:
            for queue in replica.queues:
                self._look_at(replica.name, queue)
        hottest = max(self._hot.values(), default=0)
        runs_hot = hottest >= _HOT and 2 * hottest >= self._looks
        return now >= self._until or runs_hot or self._looks >= _MOST_LOOKS

    def _look_at(self, replica: str, queue: QueueState) -> None:
        name = (replica, queue.controller)
        began_more = queue.runs > self._runs.get(name, queue.runs)
        self._began.setdefault(name, queue.runs)
        self._runs[name] = queue.runs
        keys = {*queue.running, *(key for key, _, _ in queue.failing)}
        self._seen.update((*name, key) for key in keys)
        if began_more:  # otherwise it may be one long reconcile
            self._hot.update((*name, key) for key in queue.running)

    def report(self, writes: Iterable[str]) -> str:
        """Return a report of the pending work, and of the activity and writes during the wait."""
        lines = [f"not settled within {self._timeout:g} s; pending:"]
        lines += [f"  {text}" for text in self._left[:_MOST_NAMED]]
        if len(self._left) > _MOST_NAMED:
            lines.append(f"  and {len(self._left) - _MOST_NAMED} more")
        for (replica, controller), runs in sorted(self._runs.items()):
            ran = runs - self._began[replica, controller]
            keys = [key for name, of, key in self._seen if (name, of) == (replica, controller)]
            if ran:
                busy = f", most often for {', '.join(keys[:_MOST_NAMED])}" if keys else ""
                lines.append(f"  during the wait, {replica}: {controller} reconciled {ran} times{busy}")
        often = Counter(writes).most_common(3)
        lines += [f"  during the wait, {count} times: {text}" for text, count in often if count > 1]
        return "\n".join(lines)
