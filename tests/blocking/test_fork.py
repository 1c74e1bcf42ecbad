"""A fork has the objects and none of the threads: whatever it touches says so, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, Client, InformerFactory
from deltaloop.errors import BackgroundLoopError
from tests.blocking.serving import config_map

FORK = """
import multiprocessing, os, sys
import deltaloop as dl
from deltaloop.blocking import InformerFactory, connect
from deltaloop.errors import BackgroundLoopError
from tests.blocking.serving import config_map, serving

def refused(call):
    try:
        call()
    except BackgroundLoopError as error:
        return "after the fork" in str(error)
    return False

def in_child(calls):
    return [name for name, call in calls.items() if not refused(call)]

with serving() as kubeconfig, connect(kubeconfig=kubeconfig) as client, InformerFactory(client) as factory:
    client.create(dl.kinds.CONFIG_MAP, config_map("a"))
    maps = factory.informer(dl.kinds.CONFIG_MAP)
    registration = maps.add_event_handler(dl.HandlerFuncs())
    factory.wait_for_sync(timeout=10)
    lister = maps.lister()
    queue = factory.queue(dl.workqueue.WorkQueue())
    calls = {
        "wait_for_sync": factory.wait_for_sync,
        "informer": lambda: factory.informer(dl.kinds.POD),
        "close": factory.close,
        "open": factory.open,
        "lister.list": lister.list,
        "lister.get": lambda: lister.get("default/a"),
        "lister.namespace": lambda: lister.list(namespace="default"),
        "len": lambda: len(lister),
        "has_synced": lambda: maps.has_synced,
        "stopped": lambda: maps.stopped,
        "resource_version": lambda: maps.resource_version,
        "add_event_handler": lambda: maps.add_event_handler(dl.HandlerFuncs()),
        "remove_event_handler": lambda: maps.remove_event_handler(registration),
        "registration": lambda: registration.failures,
        "get": lambda: client.get(dl.kinds.CONFIG_MAP, "a"),
        "client.close": client.close,
        "queue": queue.get,
    }
    def work():
        os._exit(len(in_child(calls)))
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(20)
    assert process.exitcode == 0, process.exitcode
    child = os.fork()
    if child == 0:
        missing = in_child(calls)
        print(*missing, file=sys.stderr, flush=True)
        with connect(kubeconfig=kubeconfig) as again:  # a new one works
            found = again.get(dl.kinds.CONFIG_MAP, "a", namespace="default").name
        os._exit(0 if not missing and found == "a" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert lister.get("default/a").name == "a"
    assert client.get(dl.kinds.CONFIG_MAP, "a", namespace="default").name == "a"
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_cannot_use_blocking_objects_but_parent_can() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (0, "done\n", "")


def test_all_calls_check_process(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a fork, but in this process, where the loop would answer: the number of the process tells."""
    client.create(dl.kinds.CONFIG_MAP, config_map("a"))
    own = BackgroundLoop()
    with InformerFactory(client) as factory:
        maps = factory.informer(dl.kinds.CONFIG_MAP, indexers={"name": dl.field_path("metadata.name")})
        registration = maps.add_event_handler(dl.HandlerFuncs())
        factory.wait_for_sync(timeout=5)
        lister, queue = maps.lister(), factory.queue(dl.workqueue.WorkQueue[str]())
        queue.add("a")
        assert queue.get(timeout=5) == "a"
        calls: list[Callable[[], object]] = [
            *(
                client.open,
                client.close,
                lambda: client.list(dl.kinds.CONFIG_MAP),
                lambda: client.loop.run(client.asynchronous.list(dl.kinds.POD)),
            ),
            *(factory.open, factory.close, factory.wait_for_sync, lambda: factory.informer(dl.kinds.POD)),
            *(own.start, own.close, own.check, client.loop.start, client.loop.close, client.loop.check),
            *(lambda: client.loop.leave(client.asynchronous), lambda: own.leave(client.asynchronous)),
            *(lambda: maps.has_synced, lambda: maps.stopped, lambda: maps.resource_version, maps.freshness),
            *(lister.list, lambda: lister.get("default/a"), lambda: lister.by_index("name", "a"), lambda: len(lister)),
            *(lambda: registration.has_synced, lambda: registration.pending, lambda: registration.failures),
            *(lambda: maps.add_event_handler(dl.HandlerFuncs()), lambda: maps.remove_event_handler(registration)),
            *(lambda: queue.add("b"), lambda: queue.get(timeout=5), lambda: queue.done("a"), queue.shut_down),
            *(lambda: queue.shut_down_with_drain(timeout=5), lambda: next(iter(queue))),
        ]
        with monkeypatch.context() as patched:
            number = os.getpid()
            patched.setattr(os, "getpid", lambda: number + 1)
            for call in calls:
                with pytest.raises(BackgroundLoopError):
                    call()
        queue.done("a")
        assert lister.get("default/a").name == "a"
