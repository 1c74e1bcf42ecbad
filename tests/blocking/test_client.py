"""The verbs as threads call them, against the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import threading
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, Client, connect
from deltaloop.errors import BackgroundLoopError
from tests.blocking.serving import config_map, our_threads
from tests.having import having

MAP = dl.kinds.CONFIG_MAP


def test_each_verb_waits_and_returns_result_of_async_verb(client: Client) -> None:
    created = client.create(MAP, config_map("a", key="1"))
    assert created.name == "a"
    assert client.get(MAP, "a", namespace="default") == created
    assert client.get("v1/ConfigMap", "a", namespace="default") == created
    changed = created.edit()
    changed["data"] = {"key": "2"}
    updated = client.update(MAP, changed)
    assert updated["data"] == {"key": "2"}
    with pytest.raises(dl.ConflictError):
        client.update(MAP, created)
    patched = client.patch(MAP, "a", {"data": {"more": "3"}}, namespace="default")
    assert patched["data"] == {"key": "2", "more": "3"}
    other = client.create(MAP, config_map("b", key="1"))
    assert [each.name for each in client.list(MAP, namespace="default").items] == ["a", "b"]
    assert list(client.list_all(MAP, options=dl.ListOptions(label_selector="app=b")).items) == [other]
    assert client.wait_for(MAP, "b", dl.wait.created(), namespace="default").name == "b"
    client.delete(MAP, "b", namespace="default")
    client.wait_for(MAP, "b", dl.wait.deleted(), namespace="default", timeout=5)
    with pytest.raises(dl.NotFoundError):
        client.get(MAP, "b", namespace="default")


def test_status_update_and_other_verbs_accept_types(client: Client) -> None:
    pod: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    stored = client.create(dl.kinds.POD, pod).edit()
    stored["status"] = {"phase": "Running"}
    assert client.update_status(dl.kinds.POD, stored)["status"]["phase"] == "Running"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    spec: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.create(dl.kinds.DEPLOYMENT, {"metadata": {"name": "web"}, "spec": spec})
    scaled = client.scale(dl.kinds.DEPLOYMENT, "web", 3)
    assert scaled["spec"]["replicas"] == 3
    assert client.resource("deploy") == dl.kinds.DEPLOYMENT


def test_client_owns_loop_unless_passed(kubeconfig: dict[str, Any]) -> None:
    made = connect(kubeconfig=kubeconfig, namespace="here")
    assert made.namespace == "here"
    assert made.config.namespace == "here"
    assert "server" not in our_threads()
    with pytest.raises(BackgroundLoopError):
        made.list(MAP)
    with made:
        assert our_threads() == {"deltaloop"}
        assert repr(made) == f"<blocking {made.asynchronous!r}>"
    assert our_threads() == set()
    with pytest.raises(BackgroundLoopError):
        made.list(MAP)
    with pytest.raises(BackgroundLoopError):
        made.loop.run(made.asynchronous.list(MAP))
    made.close()
    with BackgroundLoop() as loop:
        with connect(kubeconfig=kubeconfig, loop=loop) as client:
            assert client.loop is loop
            assert len(client.list(MAP).items) == 0
        loop.check()


def test_close_leaves_shared_loop_and_rejects_calls() -> None:
    done = list[str]()

    class Counting:
        async def __aenter__(self) -> None:
            done.append("entered")

        async def __aexit__(self, *_: object) -> None:
            done.append("left")

        async def get(self, *_: object) -> None:
            done.append("called")

    counting: Any = Counting()
    with BackgroundLoop() as loop:
        client = Client(counting, loop=loop)
        client.open()
        client.close()
        assert done == ["entered", "left"]
        loop.check()
        client.close()
    with pytest.raises(BackgroundLoopError):
        client.get(MAP, "a")
    assert done == ["entered", "left"]


def test_connect_accepts_context_and_options(kubeconfig: dict[str, Any]) -> None:
    here = kubeconfig["contexts"][0]
    other = {"name": "other", "context": {**here["context"], "namespace": "there"}}
    several = {**kubeconfig, "contexts": [here, other]}
    seen = list[str]()
    options = dl.ClientOptions(on_request=lambda verb, path, query, where: seen.append(verb))
    with connect(kubeconfig=several, context="other", options=options) as client:
        assert client.namespace == "there"
        client.list(MAP)
        assert len(seen) == 1


def test_call_is_canceled_after_timeout(client: Client) -> None:
    never = client.asynchronous.wait_for(MAP, "never", dl.wait.created(), namespace="default")
    with pytest.raises(TimeoutError, match=r"longer than 0\.02"):
        client.loop.run(never, timeout=0.02)


def test_queues_can_use_loop_of_client(client: Client) -> None:
    queue = dl.blocking.BlockingQueue(dl.workqueue.WorkQueue[str](), loop=client.loop)
    done = list[str]()

    def work() -> None:
        for item in queue:
            with item:
                done.append(item.key)

    worker = threading.Thread(target=work)
    worker.start()
    queue.add("a")
    queue.shut_down_with_drain(timeout=5)
    worker.join(5)
    assert done == ["a"]


class Recording:
    """A client whose verbs only tell how they were called."""

    def __init__(self) -> None:
        self.calls = list[tuple[str, tuple[object, ...], dict[str, object]]]()

    def __getattr__(self, name: str) -> Any:
        async def verb(*args: object, **options: object) -> str:
            self.calls.append((name, args, options))
            return f"answer of {name}"

        return verb


def verbs() -> dict[str, Any]:
    """The verbs of the asynchronous client that answer once."""
    members = inspect.getmembers(dl.Client, inspect.iscoroutinefunction)
    return {name: verb for name, verb in members if not name.startswith("_") and name != "close"}


@pytest.mark.parametrize("verb", [*verbs()])
def test_arguments_reach_async_verb(verb: str) -> None:
    """Every one, given and left out; what is left out is left to the asynchronous client."""
    recording: Any = Recording()
    theirs = inspect.signature(getattr(dl.Client, verb)).parameters
    given = tuple(f"the {name}" for name, each in theirs.items() if each.default is each.empty and name != "self")
    with BackgroundLoop() as loop:
        call = getattr(Client(recording, loop=loop), verb)
        assert call(*given, namespace="n") == f"answer of {verb}"
        assert call(*given) == f"answer of {verb}"
    assert recording.calls == [(verb, given, {"namespace": "n"}), (verb, given, {})]


def test_each_verb_has_signature_and_docstring_of_async_verb() -> None:
    streams = {"iter_list", "watch", "logs"}
    for name in {*verbs(), *streams}:
        theirs, ours = getattr(dl.Client, name), getattr(Client, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert (ours.__name__, ours.__doc__) == (name, theirs.__doc__)
        assert not inspect.iscoroutinefunction(ours)


def test_streams_are_iterated_item_by_item(client: Client) -> None:
    for name in ("a", "b", "c"):
        client.create(MAP, config_map(name, key="1"))
    with contextlib.closing(client.iter_list(MAP, namespace="default", page_size=1)) as items:
        assert next(items).name == "a"
    assert [each.name for each in client.iter_list("v1/ConfigMap", namespace="default")] == ["a", "b", "c"]
    with pytest.raises(ValueError, check=having(argument="page_buffer")):
        client.iter_list(MAP, page_buffer=-1)
    version = client.list(MAP).resource_version
    with client.watch(MAP, namespace="default", options=dl.ListOptions(resource_version=version)) as events:
        client.patch(MAP, "b", {"data": {"key": "2"}}, namespace="default")
        first = next(events)
        assert (first.type, first.object.name) == ("MODIFIED", "b")
        client.delete(MAP, "c", namespace="default")
        assert [event.type for event in itertools.islice(events, 1)] == ["DELETED"]
    with pytest.raises(dl.NotFoundError), client.logs("none", namespace="default"):
        pass


def test_stream_is_closed_at_exit_and_with_client(kubeconfig: dict[str, Any]) -> None:
    with BackgroundLoop() as loop:
        with connect(kubeconfig=kubeconfig, loop=loop) as client:
            client.list(MAP)
            before = tasks_of(loop)
            with client.watch(MAP, options=dl.ListOptions(timeout_seconds=1)) as events:
                assert list(events) == [], "the server ends it"
            with pytest.raises(ZeroDivisionError), client.watch(MAP) as events:
                raise ZeroDivisionError
            assert tasks_of(loop) == before, "left, they end"
            stream = client.watch(MAP)
            events = stream.__enter__()
        loop.check()
    with pytest.raises(BackgroundLoopError):
        next(events)
    stream.__exit__(None, None, None)


def tasks_of(loop: BackgroundLoop) -> int:
    """How many tasks a loop has."""

    async def count() -> int:
        return len(asyncio.all_tasks())

    return loop.run(count())
