"""The embedded server: one watcher of its store, and one object from creation to removal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.api import kinds
from deltaloop.apiserver.builtin_tables import built_in
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.storage.watching import REVISION_WAIT, Watcher, WatchPlan
from deltaloop.apiserver.core.write_options import parse_delete_options
from deltaloop.apiserver.core.writes.delete import Fate, delete_object

RESOURCE = "pods."
KEY = "default/web"
SECONDS = 60.0
OBJECTS = 2
MOST_CHANGES = 6
PHASES = {
    "WAITING": "waiting for the requested version",
    "INITIAL": "sending the existing objects",
    "CHANGES": "sending changes",
    "ENDED": "ended",
}


def _fields(number: int) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "default", "uid": "1", "labels": {"n": str(number)}}}


class _Watch:
    """A store with a window of two changes, and a watcher that asks for its next version, with what is there first."""

    def __init__(self) -> None:
        self.store = RevisionStore(window=2)
        for number in range(OBJECTS):
            self.store.create(RESOURCE, f"{KEY}-{number}", _fields(0))
        self.now = 0.0
        plan = WatchPlan(resource=RESOURCE, revision=self.store.revision + 1, bookmarks=True)
        self.watcher = Watcher(self.store, plan, now=0.0, seconds=SECONDS)

    @property
    def phase(self) -> str:
        return repr(self.watcher).removesuffix(">").rpartition(" ")[2]

    def change(self, times: int) -> None:
        for _ in range(times):
            self.store.update(RESOURCE, f"{KEY}-0", _fields(self.store.revision))

    def wait(self, seconds: float) -> None:
        self.now = max(self.now, seconds)

    def poll(self) -> None:
        """Give it a turn; it sends one event at a time."""
        self.watcher.poll(self.now, limit=1)


def _watch_view(watch: _Watch) -> str:
    return PHASES[watch.phase]


def _watch_identity(watch: _Watch) -> Hashable:
    behind = watch.store.revision - watch.watcher.cursor
    return watch.phase, min(behind, 4), watch.now, watch.store.revision > OBJECTS + MOST_CHANGES


def _watch_moves(watch: _Watch) -> Iterable[Move[_Watch]]:
    if watch.watcher.ended:
        return
    waits = watch.phase == "WAITING"
    if not waits:
        yield "the connection has room", lambda watch: watch.poll()
    if watch.store.revision <= OBJECTS + MOST_CHANGES:
        yield "the store changes", _changing(1)
        if watch.phase == "CHANGES":
            yield "it falls behind the window: 410 Expired", _changing(4)
    if waits:
        yield f"{REVISION_WAIT:.0f} s pass: 504", _waiting(REVISION_WAIT)
    yield "its timeout passes", _waiting(SECONDS)


def _changing(times: int) -> Callable[[_Watch], object]:
    def change(watch: _Watch) -> None:
        watch.change(times)
        watch.poll()

    return change


def _waiting(seconds: float) -> Callable[[_Watch], object]:
    def wait(watch: _Watch) -> None:
        watch.wait(seconds)
        watch.poll()

    return wait


# -- one object


SERVED = next(item for item in built_in() if item.type == kinds.POD)


class _Life:
    """A pod on a node, which has a grace period and may have a finalizer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fields: dict[str, Any] | None = None

    def create(self, finalizers: list[str]) -> None:
        metadata = {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "1"}
        self.fields = {"metadata": {**metadata, "finalizers": finalizers}, "spec": {"nodeName": "n1"}}

    def delete(self, **options: object) -> None:
        assert self.fields is not None
        chosen = parse_delete_options(options)
        fate, fields = delete_object(SERVED, self.fields, chosen, now=self.now)
        self.fields = None if fate is Fate.REMOVED else fields

    def drop_finalizers(self) -> None:
        """Write the object without finalizers: if it is marked and nothing else holds it, it goes."""
        assert self.fields is not None
        metadata = {name: value for name, value in self.fields["metadata"].items() if name != "finalizers"}
        self.fields = {**self.fields, "metadata": metadata}
        if metadata.get("deletionGracePeriodSeconds") == 0:
            self.delete(gracePeriodSeconds=0)


def _life_view(life: _Life) -> str:
    if life.fields is None:
        return "absent"
    metadata = life.fields["metadata"]
    held = "with finalizers" if metadata.get("finalizers") else "without finalizers"
    if "deletionTimestamp" not in metadata:
        return f"present, {held}"
    grace = metadata["deletionGracePeriodSeconds"]
    return f"terminating, {held}{'' if grace == 0 else ', in its grace period'}"


def _life_moves(life: _Life) -> Iterable[Move[_Life]]:
    if life.fields is None:
        yield "`create`", lambda life: life.create([])
        yield "`create` with a finalizer", lambda life: life.create(["example.com/hold"])
        return
    yield "`delete`", lambda life: life.delete()
    yield "`delete` with no grace period", lambda life: life.delete(gracePeriodSeconds=0)
    yield "`delete`, foreground", lambda life: life.delete(propagationPolicy="Foreground")
    if life.fields["metadata"].get("finalizers"):
        yield "the finalizers are removed", lambda life: life.drop_finalizers()


def diagrams() -> list[Diagram]:
    """Walk both."""
    return [
        walked(
            "watcher",
            "embedded-server",
            "One watch of the embedded server",
            "apiserver/core/storage/watching.py",
            Machine(_Watch, _watch_moves, view=_watch_view, identity=_watch_identity),
        ),
        walked(
            "object-life",
            "embedded-server",
            "A Pod on a node, from creation to removal",
            "apiserver/core/writes/delete.py",
            Machine(_Life, _life_moves, view=_life_view, identity=_life_view),
        ),
    ]
