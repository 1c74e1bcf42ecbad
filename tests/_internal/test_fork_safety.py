"""A forked child of a program with threads hangs in no lock of ours, and gives no wrong answers."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import deltaloop
from deltaloop._internal.fork_safety import ForkedError

FORK = """
import asyncio, os, signal, sys, threading
import deltaloop as dl
from deltaloop.api.resource import Resource
from deltaloop.cache.thread_safe_store import ThreadSafeStore
from deltaloop.events import EventRecorder
from deltaloop._internal.fork_safety import ForkedError
from deltaloop.leaderelection.metrics import LeaderElectionCounters
from deltaloop.metrics import WorkQueueMetrics
from deltaloop.runtime.sources import Channel
from prometheus_client import CollectorRegistry

POD = {"metadata": {"name": "a", "namespace": "b", "uid": "c"}, "spec": {"x": 1}}

class Client:
    async def create(self, *args, **kwargs): ...
    async def patch(self, *args, **kwargs): ...

def things():
    queue, store, channel = dl.RateLimitingQueue(name="pods"), ThreadSafeStore(name="pods"), Channel()
    queue.add("before")
    store.add("before", 1)
    channel.send("b/before")
    recorder = EventRecorder(Client(), component="c")
    counters = LeaderElectionCounters()
    metrics = WorkQueueMetrics(registry=CollectorRegistry())
    obj = Resource.from_dict(POD)
    return [
        ("queue.add", queue._lock, lambda: queue.add("a"), True),
        ("queue.get", queue._lock, lambda: asyncio.run(queue.get(1)) == "before", True),
        ("queue.add_rate_limited", queue._lock, lambda: queue.add_rate_limited("b"), True),
        ("queue.add_after", queue._lock, lambda: queue.add_after("b", 1), True),
        ("store.add", store._lock, lambda: store.add("a", 2), True),
        ("store.get", store._lock, lambda: store.get("before") == 1, True),
        ("len(store)", store._lock, lambda: len(store) == 2, True),
        ("channel", channel._lock, lambda: channel.send("b/c"), False),
        ("recorder", recorder._lock, lambda: recorder.event(obj, "Normal", "R", "m"), False),
        ("counters", counters._mutex, lambda: counters.leader_on("a"), False),
        ("metrics", metrics._lock, lambda: list(metrics.collect()), False),
    ]

def outcome(call):
    try:
        return "wrong answer" if call() is False else "works"
    except ForkedError as error:
        return "refused" if error.what in ("the queue 'pods'", "the store 'pods'") else str(error)

def in_child(expected):
    # What each says in a child, after which no lock may be held.
    wrong = {name: said for name, _, call, refuses in used if (said := outcome(call)) != expected(refuses)}
    stuck = [name for name, lock, _, _ in used if not lock.acquire(timeout=1)]
    if wrong or stuck:
        print(expected, wrong, stuck, file=sys.stderr, flush=True)
    return 1 if wrong or stuck else 0

def forked(expected):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(in_child(expected))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

used = things()
statuses = [forked(lambda refuses: "works")]
held, over = threading.Event(), threading.Event()

def hold():
    for lock in {id(lock): lock for _, lock, _, _ in used}.values():
        lock.acquire()
    held.set()
    over.wait()
    for lock in {id(lock): lock for _, lock, _, _ in used}.values():
        lock.release()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
statuses.append(forked(lambda refuses: "refused" if refuses else "works"))
over.set()
holder.join()
statuses.append(in_child(lambda refuses: "works"))  # the parent
sys.exit(statuses != [0, 0, 0])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_can_use_unlocked_objects_only() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_forked_error_has_remedy_and_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(ForkedError("the queue 'pods'")))
    assert error.what == "the queue 'pods'"
    assert "Create a new object in the child" in str(error)


# Locks that no forked child reaches, each with its reason.
OUT_OF_REACH = {
    "blocking/background_loop.py": "every use compares the process id first",
    "blocking/handoff.py": "belongs to one call that waits for the background loop",
    "cache/adapters/blocking.py": "belongs to one stream of a loop that the child does not have",
    "planning/network.py": "is held only while the audit hook is added",
    "simulation/determinism.py": "is never waited for",
    "testing/deterministic_loop/thread_turns.py": "belongs to an event loop",
    "testing/deterministic_loop/virtual_loop.py": "belongs to an event loop",
}
LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"}


def unsafe_locks(source: str) -> list[int]:
    """Return the lines on which a lock of ``threading`` is made that is not handed to ``fork_safe`` at once."""
    tree = ast.parse(source)
    safe = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fork_safe"
        for argument in node.args
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "threading"
        and node.func.attr in LOCKS
        and id(node) not in safe
    ]


def test_each_lock_is_fork_safe_or_listed() -> None:
    root = Path(deltaloop.__file__).parent
    sources = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    found = {
        name: lines for name, source in sources.items() if "threading" in source and (lines := unsafe_locks(source))
    }
    assert set(found) == set(OUT_OF_REACH), found
    assert unsafe_locks("import threading\nx = threading.Lock()\ny = fork_safe(threading.RLock(), f)") == [2]
