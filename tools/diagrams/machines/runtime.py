"""What a program sees of an object that it writes, how it slows down keys that keep busy, and how it ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.runtime.core.hot_loop import HotLoop, HotLoopOptions, HotLoops
from deltaloop.runtime.core.overlay import MAX_AGE, UNCERTAIN_FOR, Overlay
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.core.shutdown import Shutdown

KEY = "default/web"
FIRST = 10
MOST_VERSIONS = 4


def _object(version: int) -> Resource:
    metadata = {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": str(version)}
    return Resource.from_dict({"metadata": metadata})


class _Seen:
    """A server, a cache that follows it, and the overlay between."""

    def __init__(self) -> None:
        self.overlay = Overlay()
        self.now = 0.0
        self.version = FIRST
        self.reached = FIRST
        self.exists = True
        self.cached: Resource | None = _object(FIRST)
        self.lost: tuple[int, ...] = ()

    def write(self) -> None:
        self.version += 1
        self.overlay.wrote(_object(self.version), reached=str(self.reached), now=self.now)

    def delete(self) -> None:
        self.overlay.deleted(KEY, uid="1", version=str(self.version), reached=str(self.reached), now=self.now)
        self.version += 1
        self.exists = False

    def lose(self) -> None:
        self.lost = (*(self.lost if self.uncertain else ()), self.version)[-2:]
        self.overlay.lost_sight(KEY, "update", uid="1", version=str(self.version), now=self.now)

    def catch_up(self) -> None:
        self.reached = self.version
        self.cached = _object(self.version) if self.exists else None
        self.show()

    def settle(self, *, done: bool) -> None:
        self.version += done
        self.overlay.settle(KEY, _object(self.version), reached=str(self.reached), now=self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.show()

    def restore(self) -> None:
        self.reached = FIRST - 5
        self.cached = _object(FIRST - 5)
        self.show()

    def show(self) -> Resource | None:
        return self.overlay.show(KEY, self.cached, reached=str(self.reached), now=self.now)

    @property
    def uncertain(self) -> bool:
        return self.overlay.is_uncertain(KEY, now=self.now)


def _seen_view(seen: _Seen) -> str:
    if seen.uncertain:
        return "the server is read"
    shown = seen.show()
    if len(seen.overlay):
        return "our deletion hides the cached object" if shown is None else "our write is shown"
    return "the cache is shown"


def _seen_identity(seen: _Seen) -> Hashable:
    shown = seen.show()
    lost = seen.lost if seen.uncertain else ()
    return seen.version, seen.reached, seen.exists, seen.now, len(seen.overlay), shown is None, lost


def _seen_moves(seen: _Seen) -> Iterable[Move[_Seen]]:
    if seen.exists and seen.reached >= FIRST and seen.version < FIRST + MOST_VERSIONS and not seen.now:
        yield "a write succeeds", lambda seen: seen.write()
        yield "a deletion succeeds", lambda seen: seen.delete()
        yield "an update has no response", lambda seen: seen.lose()
    if seen.uncertain and seen.exists:
        if seen.version < FIRST + MOST_VERSIONS:
            yield "the server shows that it was processed", lambda seen: seen.settle(done=True)
        yield "the server shows the previous state", lambda seen: seen.settle(done=False)
    if seen.reached >= FIRST:
        yield "the cache catches up", lambda seen: seen.catch_up()
        if seen.uncertain and not seen.now:
            yield f"{UNCERTAIN_FOR:.0f} s pass", lambda seen: seen.wait(UNCERTAIN_FOR)
        if len(seen.overlay) and not seen.now:
            yield f"{MAX_AGE:.0f} s pass", lambda seen: seen.wait(MAX_AGE)
        yield "the server was restored from a backup", lambda seen: seen.restore()


# -- keys that keep themselves busy

HOT = HotLoopOptions(threshold=2)
"""The default threshold is 20; the states are the same."""


class _Key:
    def __init__(self) -> None:
        self.loops = HotLoops(HOT)
        self.now = 0.0
        self.version = 1
        self.strikes = 0
        self.cause = ""

    def reconcile(self, *, own: bool, writes: bool, others_write: bool = False) -> None:
        self.now += 1.0
        made: list[OwnWrite] = []
        if writes:
            before = self._object(self.version + 1, "theirs") if others_write else self._object(self.version, "ours")
            self.version += 2 if others_write else 1
            after = self._object(self.version, "ours")
            made = [
                OwnWrite(
                    verb="update",
                    kind="v1/Pod",
                    key=KEY,
                    uid="1",
                    version=str(self.version),
                    before=before,
                    after=after,
                )
            ]
        trigger = Trigger(source="informer", verb="update", origin="self, reconcile 1" if own else "")
        for fact in self.loops.observe(KEY, triggers=[trigger], writes=made, succeeded=True, now=self.now):
            self.cause = fact.cause if isinstance(fact, HotLoop) else ""
        self.strikes += writes and (own or others_write)

    def wait(self, seconds: float) -> None:
        """Let time pass; what comes first afterwards is a change by somebody else that needs no write."""
        self.now += seconds
        self.reconcile(own=False, writes=False)
        self.strikes = 0

    @staticmethod
    def _object(version: int, value: str) -> Resource:
        metadata = {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": str(version)}
        return Resource.from_dict({"metadata": metadata, "spec": {"value": value}})


def _key_view(key: _Key) -> str:
    if not key.cause:
        return "calm"
    return "hot: triggered by its own writes" if key.cause == "self" else "hot: two writers of one field"


def _key_identity(key: _Key) -> Hashable:
    return key.cause, min(key.strikes, 4), key.version > 1


def _key_moves(key: _Key) -> Iterable[Move[_Key]]:
    yield "own write triggers it, it writes", lambda key: key.reconcile(own=True, writes=True)
    yield "own write triggers it, it does not write", lambda key: key.reconcile(own=True, writes=False)
    yield "another writer triggers it, it writes", lambda key: key.reconcile(own=False, writes=True)
    if key.version > 1:
        yield (
            "another writer changes a field, it changes the field back",
            lambda key: key.reconcile(own=False, writes=True, others_write=True),
        )
    yield f"{HOT.reset_after:.0f} s without such a write", lambda key: key.wait(HOT.reset_after)


class _Program:
    def __init__(self) -> None:
        self.shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
        self.now = 0.0
        self.running = 1

    def ask(self) -> None:
        self.shutdown.ask(self.now, running=self.running)

    def stop(self) -> None:
        self.shutdown.stop(self.now)

    def finish(self) -> None:
        self.running = 0
        self.ask()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.ask()


def _program_view(program: _Program) -> str:
    return program.shutdown.phase


def _program_identity(program: _Program) -> Hashable:
    return _program_view(program), program.now, program.running


def _program_moves(program: _Program) -> Iterable[Move[_Program]]:
    if not program.shutdown.stopping:
        yield "`stop`", lambda program: program.stop()
        return
    if _program_view(program) != "ended":
        yield "`stop` again", lambda program: program.stop()
        yield "the last reconcile has ended", lambda program: program.finish()
    if _program_view(program) == "draining":
        yield "`drain_timeout` has passed", lambda program: program.wait(20.0)
    if _program_view(program) == "cancelling":
        yield "`shutdown_timeout` has passed", lambda program: program.wait(10.0)
    if _program_view(program) == "abandoning":
        yield "the remaining reconciles are logged and abandoned", lambda program: program.ask()


def diagrams() -> list[Diagram]:
    """Walk them all."""
    return [
        walked(
            "overlay",
            "reconciles",
            "Reads of an object that the program writes",
            "runtime/core/overlay.py",
            Machine(_Seen, _seen_moves, view=_seen_view, identity=_seen_identity),
        ),
        walked(
            "hot-loop",
            "reconciles",
            "A key that may trigger itself",
            "runtime/core/hot_loop.py",
            Machine(_Key, _key_moves, view=_key_view, identity=_key_identity),
        ),
        walked(
            "shutdown",
            "reconciles",
            "The shutdown of a program",
            "runtime/core/shutdown.py",
            Machine(_Program, _program_moves, view=_program_view, identity=_program_identity),
        ),
    ]
