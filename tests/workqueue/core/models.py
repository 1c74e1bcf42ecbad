"""What the cores should do, written as simply as possible: lists that are searched from front to back."""

from __future__ import annotations

from dataclasses import dataclass, field

from deltaloop.workqueue.core.delaying import TIMER_SLACK

BOUND = 3


def kept(triggers: list[int], bound: int = BOUND) -> tuple[int, ...]:
    """Return which of all triggers are to be kept: the first ones and the latest ones."""
    if len(triggers) <= bound:
        return tuple(triggers)
    first = (bound + 1) // 2
    last = bound - first
    return (*triggers[:first], *(triggers[-last:] if last else ()))


def dropped(triggers: list[int], bound: int = BOUND) -> int:
    """Return how many of all triggers are left out."""
    return max(0, len(triggers) - bound)


@dataclass
class Need:
    """An item that needs a run."""

    item: str
    added_at: float
    triggers: list[int]


@dataclass
class Job:
    """An item that is processed."""

    item: str
    started_at: float
    triggers: list[int]
    attempts: int
    handed_on: bool = False


@dataclass
class Later:
    """An item that waits for its time."""

    item: str
    due_at: float
    triggers: list[int]
    paid: bool


@dataclass
class Model:
    """A work queue of all three kinds, with unbounded triggers and without any index."""

    needs: list[Need] = field(default_factory=list[Need])  # in the order in which they joined, postponed ones too
    jobs: list[Job] = field(default_factory=list[Job])
    laters: list[Later] = field(default_factory=list[Later])  # in the order in which they were put in
    failures: dict[str, int] = field(default_factory=dict[str, int])
    asked: dict[str, int] = field(default_factory=dict[str, int])
    tokens: int = 0  # taken by the limiter and not given back
    shut: bool = False
    drain: bool = False
    latencies: list[float] = field(default_factory=list[float])
    durations: list[float] = field(default_factory=list[float])
    adds: int = 0
    retries: int = 0

    def need(self, item: str) -> Need | None:
        return next((need for need in self.needs if need.item == item), None)

    def job(self, item: str) -> Job | None:
        return next((job for job in self.jobs if job.item == item), None)

    def later(self, item: str) -> Later | None:
        return next((later for later in self.laters if later.item == item), None)

    def line(self) -> list[Need]:
        return [need for need in self.needs if self.job(need.item) is None]

    def join(self, item: str, now: float, triggers: list[int]) -> bool:
        """Let the item need a run; return whether it did not before."""
        need = self.need(item)
        if need is not None:
            need.triggers.extend(triggers)
            return False
        self.needs.append(Need(item, now, list(triggers)))
        self.adds += 1
        return True

    def add(self, item: str, now: float, triggers: list[int]) -> None:
        if not self.shut:
            self.join(item, now, triggers)

    def get(self, now: float) -> Job | None:
        line = self.line()
        if not line:
            return None
        need = line[0]
        self.needs.remove(need)
        self.latencies.append(now - need.added_at)
        job = Job(need.item, now, need.triggers, self.failures.get(need.item, 0) + 1)
        self.jobs.append(job)
        return job

    def done(self, item: str, now: float) -> None:
        job = self.job(item)
        assert job is not None
        self.jobs.remove(job)
        self.durations.append(now - job.started_at)
        need = self.need(item)
        if need is not None:  # it was postponed: to the end of the line
            self.needs.remove(need)
            self.needs.append(need)

    def forget(self, item: str) -> None:
        self.failures.pop(item, None)
        self.asked.pop(item, None)

    def interrupt(self, item: str, now: float) -> None:
        job = self.job(item)
        assert job is not None
        if not job.handed_on:
            need = self.need(item)
            if need is not None:
                need.triggers[:0] = job.triggers
            else:
                self.add(item, now, job.triggers)
        self.done(item, now)

    def add_after(self, item: str, now: float, delay: float, triggers: list[int], *, paid: bool = False) -> None:
        if self.shut:
            return
        self.retries += 1
        self.tokens += paid
        if delay <= 0:
            if not self.join(item, now, triggers):
                self.tokens -= paid
            return
        old = self.later(item)
        new = Later(item, now + delay, list(triggers), paid)
        if old is None:
            self.laters.append(new)
            return
        both = old.triggers + new.triggers
        if new.due_at < old.due_at:
            self.laters.remove(old)
            self.laters.append(new)
            self.tokens -= old.paid
            new.triggers = both
        else:
            self.tokens -= paid
            old.triggers = both

    def promote(self, now: float) -> None:
        for later in sorted(self.laters, key=lambda later: later.due_at):
            if later.due_at <= now + TIMER_SLACK:
                self.laters.remove(later)
                if not self.join(later.item, now, later.triggers):
                    self.tokens -= later.paid

    def cancel(self, item: str) -> None:
        later = self.later(item)
        if later is not None:
            self.laters.remove(later)
            self.tokens -= later.paid

    def ask(self, item: str) -> float:
        self.asked[item] = self.asked.get(item, 0) + 1
        return float(2 ** self.asked[item] - 2)  # 0, 2, 6, 14, ...

    def add_rate_limited(self, item: str, now: float, triggers: list[int], *, error: bool) -> None:
        job = self.job(item)
        retried = job is not None and (error or not triggers)
        need = self.need(item)
        if self.shut and (need is None or not retried):
            return
        delay = self.ask(item)
        old: list[int] = []
        if job is not None and retried and not job.handed_on:
            job.handed_on = True
            self.failures[item] = job.attempts
            old = job.triggers
        if need is not None:
            need.triggers = [*old, *need.triggers, *triggers]
            self.retries += 1
        else:
            self.add_after(item, now, delay, [*old, *triggers], paid=True)

    def fail(self, item: str, now: float) -> None:
        job = self.job(item)
        assert job is not None
        if not job.handed_on:
            self.add_rate_limited(item, now, [], error=True)
        self.done(item, now)

    def again(self, item: str, now: float, delay: float, triggers: list[int], *, keep: bool) -> None:
        job = self.job(item)
        assert job is not None
        self.forget(item)
        old: list[int] = []
        if keep and not job.handed_on:
            job.handed_on = True
            old = job.triggers
        self.add_after(item, now, delay, [*old, *triggers])
        self.done(item, now)

    def shut_down(self, *, drain: bool) -> None:
        self.shut = True
        self.drain = drain
        for later in list(self.laters):
            self.cancel_quietly(later)

    def cancel_quietly(self, later: Later) -> None:
        self.laters.remove(later)
        self.tokens -= later.paid  # the machine does not look at tokens after a shutdown
