"""One item in a rate limiting queue."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.errors import TerminalError
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from deltaloop.workqueue.core.facts import Ending, Failed, Interrupted, Succeeded
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore

ITEM = "default/web"


def _queue() -> RateLimitingCore[str]:
    return RateLimitingCore(limiter=ItemExponentialFailureRateLimiter(1.0, 1.0), max_requeues=1)


@dataclass
class _Item:
    queue: RateLimitingCore[str] = field(default_factory=_queue)
    now: float = 0.0

    @property
    def delayed(self) -> bool:
        return bool(self.queue.delayed())

    @property
    def parked(self) -> bool:
        return bool(self.queue.dead_letters())

    def finish(self, ending: Ending) -> None:
        self.queue.finish(self.queue.runs()[0], self.now, ending)

    def wait(self) -> None:
        self.now = self.queue.next_due_at() or self.now
        self.queue.promote(self.now)


def _view(item: _Item) -> str:
    statistics = item.queue.statistics(item.now)
    if statistics.processing:
        return "in process, must run again" if statistics.postponed else "in process"
    if statistics.queued:
        return "in line"
    if item.delayed:
        return "delayed"
    return "dead letter" if item.parked else "unknown"


def _identity(item: _Item) -> Hashable:
    runs = item.queue.runs()
    failing = item.queue.statistics(item.now).failing
    return _view(item), item.delayed, item.parked, failing, [run.handed_on for run in runs] == [True]


def _ends(words: str, ending: Callable[[], Ending]) -> Move[_Item]:
    return words, lambda item: item.finish(ending())


def _moves(item: _Item) -> Iterable[Move[_Item]]:
    statistics = item.queue.statistics(item.now)
    yield "`add`", lambda item: item.queue.add(ITEM, item.now)
    yield "`add_after`", lambda item: item.queue.add_after(ITEM, item.now, 1.0)
    if statistics.queued:
        yield "a worker takes the item", lambda item: item.queue.get(item.now)
    if statistics.processing:
        yield _ends("the run succeeds", Succeeded)
        yield _ends("the run fails", lambda: Failed(OSError()))
        yield _ends("the run fails with `TerminalError`", lambda: Failed(TerminalError("no")))
        yield _ends("the run is canceled", Interrupted)
    if item.delayed:
        yield "the delay ends", lambda item: item.wait()
        yield "`cancel_delayed`", lambda item: item.queue.cancel_delayed(ITEM)
    if item.parked and not statistics.processing:
        yield "`retry_dead_letter`", lambda item: item.queue.retry_dead_letter(ITEM, item.now)
        yield "`discard_dead_letter`", lambda item: item.queue.discard_dead_letter(ITEM)


def diagrams() -> list[Diagram]:
    """Walk the queue with one item, at most one retry."""
    machine = Machine(_Item, _moves, view=_view, identity=_identity)
    title = "One item of a work queue"
    return [walked("work-queue-item", "workqueue", title, "workqueue/core/rate_limiting.py", machine)]
