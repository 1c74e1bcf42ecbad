"""A reconcile that runs, whether a program is ready, what predicates pass, and a compressed cache's dictionary."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

from tools.diagrams.model import Diagram, Machine, Move, Table, walked

from deltaloop.api.resource import Resource
from deltaloop.cache.core.dictionary_training import DictionaryTraining, TrainingPhase
from deltaloop.cache.informer_options import ZstdOptions
from deltaloop.leaderelection.core.election import Beat, Heartbeat, Silent
from deltaloop.runtime.core.changes import Change, Predicate
from deltaloop.runtime.core.outcomes import ROWS, Action, Case
from deltaloop.runtime.core.predicates import (
    AnnotationsChanged,
    GenerationChanged,
    HasLabels,
    LabelsChanged,
    PathChanged,
    ResourceVersionChanged,
)
from deltaloop.runtime.core.readiness import CacheState, Leadership, readiness
from deltaloop.runtime.core.running import Running, Runs, StopReason

KEY = "default/web"

# -- one run of a reconcile


class _Run:
    """One slot, a time limit of 30 s."""

    def __init__(self) -> None:
        self.runs = Runs(Running, slots=1, timeout=30.0)
        self.now = 0.0
        self.said = ""
        self.reason = ""

    def begin(self) -> None:
        self.runs.begin(KEY, self.now)
        self.said = "running"

    def ask(self) -> None:
        stop, warn = self.runs.due(self.now)
        if stop:
            self.said = "stopping"
            self.reason = "it took too long" if stop[0].reason is StopReason.TIMEOUT else "interrupted"
        elif warn:
            self.said = "stopping, named in a warning"

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.ask()

    def interrupt(self) -> None:
        self.runs.interrupt()
        self.ask()

    def abandon(self) -> None:
        self.runs.abandon()
        self.said = "abandoned"

    def end(self) -> None:
        self.runs.ended(self.runs.present()[0])
        self.said = self.reason = ""


def _run_view(run: _Run) -> str:
    return run.said or "the slot is free"


def _run_moves(run: _Run) -> Iterable[Move[_Run]]:
    if not run.said:
        yield "a worker takes a key", lambda run: run.begin()
        return
    yield "it ends", lambda run: run.end()
    if run.said == "running":
        yield "its timeout passes", lambda run: run.wait(30.0)
        yield "leadership is lost, or the program stops", lambda run: run.interrupt()
    elif run.said.startswith("stopping"):
        yield "10 s pass", lambda run: run.wait(10.0)
        yield "the program stops waiting", lambda run: run.abandon()


# -- the sign of life of an event loop that leads


class _Loop:
    def __init__(self) -> None:
        self.now = 0.0
        self.heartbeat = Heartbeat(0.0, interval=1.0, deadline=8.0)
        self.state = "idle"

    def ask(self, seconds: float) -> None:
        self.now += seconds
        effect = self.heartbeat.ask(self.now)
        if isinstance(effect, Beat):
            self.state = "waiting for the loop"
        elif isinstance(effect, Silent):
            self.state = "no response: the term ends"

    def answer(self) -> None:
        self.heartbeat.answered(self.now)
        if not isinstance(self.heartbeat.ask(self.now), Silent):
            self.state = "idle"


def _loop_view(loop: _Loop) -> str:
    return loop.state


def _loop_moves(loop: _Loop) -> Iterable[Move[_Loop]]:
    if loop.state == "idle":
        yield "the interval has passed", lambda loop: loop.ask(1.0)
    else:
        yield "the loop responds", lambda loop: loop.answer()
        yield "the deadline passes", lambda loop: loop.ask(8.0)


# -- training a dictionary

FEW = ZstdOptions(page=3, min_objects=2)
"""The defaults are 500 and 32; the states are the same."""


class _NoCodec:
    """Stands for a compressor: what it makes is of no interest here."""

    def compress(self, raw: bytes) -> bytes:
        return raw

    def decompress(self, data: bytes) -> bytes:
        return data


class _Cache:
    def __init__(self) -> None:
        self.training = DictionaryTraining(FEW)
        self.seen = 0
        self.listed = False

    def see(self) -> None:
        self.seen += 1
        if self.training.phase is not TrainingPhase.DONE:
            self.training.saw(_object(name=f"web-{self.seen}"))

    def list(self) -> None:
        self.listed = True
        self.training.list_complete()

    def finish(self) -> None:
        for _ in self.training.finish(_NoCodec()):
            pass


def _cache_view(cache: _Cache) -> str:
    phase = cache.training.phase
    if phase is TrainingPhase.COLLECTING:
        return "collecting, with enough objects" if cache.training.is_due else "collecting"
    return "training in a thread" if phase is TrainingPhase.TRAINING else "done: objects are compressed"


def _cache_identity(cache: _Cache) -> Hashable:
    return _cache_view(cache), min(cache.seen, FEW.page), cache.listed


def _cache_moves(cache: _Cache) -> Iterable[Move[_Cache]]:
    yield "an object arrives", lambda cache: cache.see()
    if not cache.listed:
        yield "the first list is complete", lambda cache: cache.list()
    if cache.training.is_due:
        yield "training starts", lambda cache: cache.training.begin()
    if cache.training.phase is TrainingPhase.TRAINING:
        yield "the dictionary is ready", lambda cache: cache.finish()


def _object(*, name: str = "web", version: int = 1, **metadata: Any) -> Resource:
    replicas = metadata.pop("replicas", 1)
    fields = {"name": name, "namespace": "default", "uid": "1", "resourceVersion": str(version), **metadata}
    return Resource.from_dict({"metadata": fields, "spec": {"replicas": replicas}})


# -- what predicates pass


def predicates() -> Table:
    """Show one change of each sort to every predicate that the room brings along."""
    old = _object(generation=1, labels={"app": "web"})
    same: dict[str, Any] = {"generation": 1, "labels": {"app": "web"}}
    scaled: dict[str, Any] = {**same, "generation": 2, "replicas": 2}
    relabelled: dict[str, Any] = {**same, "labels": {"app": "other"}}
    annotated: dict[str, Any] = {**same, "annotations": {"a": "b"}}
    changes = {
        "a new object": Change(verb="add", old=None, new=old),
        "a deleted object": Change(verb="delete", old=old, new=None),
        "a resync": Change(verb="update", old=old, new=old),
        "spec.replicas": Change(verb="update", old=old, new=_object(version=2, **scaled)),
        "status": Change(verb="update", old=old, new=_object(version=2, **same)),
        "a label": Change(verb="update", old=old, new=_object(version=2, **relabelled)),
        "an annotation": Change(verb="update", old=old, new=_object(version=2, **annotated)),
    }
    known: list[Predicate] = [
        GenerationChanged(),
        ResourceVersionChanged(),
        LabelsChanged(),
        AnnotationsChanged(),
        PathChanged("spec.replicas"),
        HasLabels("app=web"),
        ~HasLabels("app=web"),
        GenerationChanged() | LabelsChanged(),
        HasLabels("app=web") & GenerationChanged(),
    ]
    rows = [
        (
            f"`{predicate!r}`".replace("|", "\\|"),
            *("yes" if predicate.allows(change) else "–" for change in changes.values()),
        )
        for predicate in known
    ]
    return Table("predicates", "reconciles", "runtime/core/predicates.py", ("passes", *changes), rows)


# -- whether a program is ready


def readinesses() -> Table:
    """Ask for readiness in each situation."""
    fresh = CacheState(name="v1/Pod", synced=True, last_confirmed_at=100.0)
    behind = CacheState(name="v1/Pod", synced=False, last_confirmed_at=None)
    stale = CacheState(name="v1/Pod", synced=True, last_confirmed_at=0.0)
    cases: list[tuple[str, CacheState, Leadership, bool, bool]] = [
        ("caches not started", behind, Leadership.NONE, False, False),
        ("a cache is not synced", behind, Leadership.NONE, True, False),
        ("synced, no election", fresh, Leadership.NONE, True, False),
        ("synced, leading", fresh, Leadership.LEADING, True, False),
        ("synced, standby", fresh, Leadership.STANDBY, True, False),
        ("a cache is stale", stale, Leadership.NONE, True, False),
        ("the program is stopping", fresh, Leadership.NONE, True, True),
    ]
    rows: list[tuple[str, ...]] = []
    for words, cache, leadership, started, stopping in cases:
        answers: list[str] = []
        for required in (False, True):
            checks = readiness(
                [cache],
                leadership,
                started=started,
                stopping=stopping,
                now=100.0,
                max_staleness=60.0,
                require_leadership=required,
            )
            failed = [f"`{check.name}`" for check in checks if not check.ok]
            answers.append(f"no: {', '.join(failed)}" if failed else "ready")
        rows.append((words, *answers))
    heads = ("situation", "`/readyz`", "with `require_leadership`")
    return Table("readiness", "reconciles", "runtime/core/readiness.py", heads, rows)


_RETURNED: Final = {
    Case.NOTHING: "`None` or `Result()`",
    Case.AFTER: "`Result(requeue_after=s)`, with or without `requeue`",
    Case.REQUEUE: "`Result(requeue=True)`",
    Case.INVALID: "any other value, or a call was not awaited",
    Case.TIMEOUT: "any result after the timeout",
    Case.INTERRUPTED: "any result after lost leadership or shutdown",
}
_RAISED: Final = {
    Case.ERROR: "an exception",
    Case.TERMINAL: "`TerminalError`, `InvalidArgumentError`, or a group of only these",
    Case.TIMEOUT: _RETURNED[Case.TIMEOUT],
    Case.INTERRUPTED: _RETURNED[Case.INTERRUPTED],
}
_FAILURES: Final = {Action.PUT_BACK: "kept", Action.RATE_LIMIT: "one more"}


def outcomes() -> Table:
    """List what each end of a reconcile does to its key."""
    rows: list[tuple[str, ...]] = []
    for case, row in ROWS.items():
        counters = ", ".join(f"`{name}`" for name in row.counters) or "–"
        result = f"`{row.result}`" if row.result else "not counted"
        ends = (_RETURNED.get(case, "–"), _RAISED.get(case, "–"))
        rows.append((*ends, row.action.value, _FAILURES.get(row.action, "forgotten"), result, counters))
    heads = ("returned", "raised", "key", "failures so far", "`result`", "counters")
    return Table("outcomes", "reconciles", "runtime/core/outcomes.py", heads, rows)


def tables() -> list[Table]:
    """Return the tables of this module."""
    return [predicates(), outcomes(), readinesses()]


def diagrams() -> list[Diagram]:
    """Walk them all."""
    return [
        walked(
            "running",
            "reconciles",
            "One slot of a controller, with a time limit of 30 s",
            "runtime/core/running.py",
            Machine(_Run, _run_moves, view=_run_view, identity=_run_view),
        ),
        walked(
            "heartbeat",
            "leader-election",
            "The heartbeat of a leader's event loop",
            "leaderelection/core/election.py",
            Machine(_Loop, _loop_moves, view=_loop_view, identity=_loop_view),
        ),
        walked(
            "dictionary-training",
            "informer",
            "The dictionary of a compressed cache",
            "cache/core/dictionary_training.py",
            Machine(_Cache, _cache_moves, view=_cache_view, identity=_cache_identity),
        ),
    ]
