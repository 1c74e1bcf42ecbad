"""The verbs as threads call them, against the embedded server."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, BackgroundLoopError, Client, connect
from tests.blocking.serving import config_map, our_threads

MAP = dl.kinds.CONFIG_MAP


def test_every_verb_waits_and_gives_what_the_asynchronous_one_gives(client: Client) -> None:
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
    assert client.wait_for(MAP, "b", dl.conditions.created(), namespace="default").name == "b"
    client.delete(MAP, "b", namespace="default")
    client.wait_for(MAP, "b", dl.conditions.deleted(), namespace="default", timeout=5)
    with pytest.raises(dl.NotFoundError):
        client.get(MAP, "b", namespace="default")


def test_a_status_is_written_and_other_verbs_are_called_with_their_types(client: Client) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    stored = client.create(dl.kinds.POD, pod).edit()
    stored["status"] = {"phase": "Running"}
    assert client.update_status(dl.kinds.POD, stored)["status"]["phase"] == "Running"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.create(dl.kinds.DEPLOYMENT, {"metadata": {"name": "web"}, "spec": spec})
    scaled = client.call(lambda each: each.scale(dl.kinds.DEPLOYMENT, "web", 3))
    assert scaled["spec"]["replicas"] == 3
    assert client.resource("deploy") == dl.kinds.DEPLOYMENT


def test_it_owns_its_loop_unless_one_is_given(kubeconfig: dict[str, Any]) -> None:
    made = connect(kubeconfig=kubeconfig, namespace="here")
    assert made.namespace == "here"
    assert made.config.namespace == "here"
    assert "server" not in our_threads()
    with pytest.raises(BackgroundLoopError, match="does not run yet"):
        made.list(MAP)
    with made:
        assert our_threads() == {"deltaloop"}
        assert repr(made) == f"<blocking {made.asynchronous!r}>"
    assert our_threads() == set()
    with pytest.raises(BackgroundLoopError, match="is closed"):
        made.list(MAP)
    with pytest.raises(BackgroundLoopError, match="is closed"):
        made.call(lambda each: each.list(MAP))
    made.close()
    with BackgroundLoop() as loop:
        with connect(kubeconfig=kubeconfig, loop=loop) as client:
            assert client.loop is loop
            assert len(client.list(MAP).items) == 0
        loop.check()


def test_closing_leaves_a_loop_that_others_use_and_calls_nothing_any_more() -> None:
    done = list[str]()

    class Counting:
        async def __aenter__(self) -> None:
            done.append("entered")

        async def __aexit__(self, *_: object) -> None:
            done.append("left")

        def verb(self) -> Coroutine[Any, Any, None]:
            done.append("called")
            return asyncio.sleep(0)

    counting: Any = Counting()
    with BackgroundLoop() as loop:
        client = Client(counting, loop=loop)
        client.open()
        client.close()
        assert done == ["entered", "left"]
        loop.check()
        client.close()
    with pytest.raises(BackgroundLoopError, match="is closed"):
        client.call(lambda _: counting.verb())
    assert done == ["entered", "left"]


def test_connect_says_which_cluster_and_how(kubeconfig: dict[str, Any]) -> None:
    here = kubeconfig["contexts"][0]
    other = {"name": "other", "context": {**here["context"], "namespace": "there"}}
    several = {**kubeconfig, "contexts": [here, other]}
    seen = list[str]()
    options = dl.ClientOptions(on_request=lambda verb, path, query, where: seen.append(verb))
    with connect(kubeconfig=several, context="other", options=options) as client:
        assert client.namespace == "there"
        client.list(MAP)
        assert len(seen) == 1


def test_a_call_that_takes_too_long_is_ended(client: Client) -> None:
    with pytest.raises(TimeoutError, match=r"longer than 0\.02"):
        client.call(
            lambda each: each.wait_for(MAP, "never", dl.conditions.created(), namespace="default"), timeout=0.02
        )


def test_queues_wait_on_the_clients_loop(client: Client) -> None:
    queue = client.queue(dl.WorkQueue[str]())
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


VERBS = ["apply", "create", "delete", "get", "list", "list_all", "patch", "resource", "update", "update_status"]


@pytest.mark.parametrize("verb", [*VERBS, "wait_for"])
def test_arguments_reach_the_verb_of_the_same_name(verb: str) -> None:
    """Every one, given and left out; what is left out is as in the asynchronous client."""
    recording: Any = Recording()
    theirs = inspect.signature(getattr(dl.Client, verb)).parameters
    named = [name for name, each in theirs.items() if each.kind is each.KEYWORD_ONLY]
    given = tuple(f"the {name}" for name in theirs if name not in ["self", *named])
    keywords = {name: f"the {name}" for name in named}
    assert named
    with BackgroundLoop() as loop:
        call = getattr(Client(recording, loop=loop), verb)
        assert call(*given, **keywords) == f"answer of {verb}"
        assert call(*given) == f"answer of {verb}"
    assert recording.calls == [(verb, given, keywords), (verb, given, {name: theirs[name].default for name in named})]
