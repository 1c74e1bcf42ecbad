"""Writes of large objects: they stop the loop for no time worth speaking of, and are one transaction all the same."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import threading
import time
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deltaloop.api.status import ApiError, ConflictError
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.webhook_calls import Called
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.large_writes import LARGE, STEPS_OF_LARGE, STEPS_ON_LOOP, TRIES, LargeWrites
from deltaloop.schemas.work import CURRENT, MOST_GROWN, MOST_STEPS, charge, check_growth
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.serving import CONFIG_MAPS, CRDS, PODS, WIDGETS, config_map, serving

_BULK = {f"k{number}": "v" * 1000 for number in range(70)}


def bulky(name: str, **data: str) -> dict[str, Any]:
    return config_map(name, {**_BULK, **data})


class Turns:
    """How much the loop's thread computes from one turn of its loop to the next."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def count(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.002)
            now = time.thread_time()
            self.longest = max(self.longest, now - before)
            before = now


@asynccontextmanager
async def turns() -> AsyncGenerator[Turns]:
    counted = Turns()
    task = asyncio.create_task(counted.count())
    gc.disable()  # it would be this thread or the other, by chance, that walks through all that the test run has
    await asyncio.sleep(0)
    try:
        yield counted
    finally:
        gc.enable()
        task.cancel()


def items(number: int) -> dict[str, Any]:
    """A custom resource whose list is a map by its key: each item is checked, owned and given a default."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "large"},
        "spec": {"list": [{"k": 1_000_000_000 + value} for value in range(number)]},
    }


def definition() -> dict[str, Any]:
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {"k": {"type": "integer"}, "z": {"type": "string", "default": "q"}},
    }
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    spec = {"type": "object", "properties": {"list": listed}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.mark.nightly
@pytest.mark.real_time  # what is measured is a thread beside the loop's
async def test_large_object_requests_do_not_block_the_event_loop() -> None:
    """Each of these takes tenths of a second of computing; the loop's own part of it is a small one."""
    body = items(4_500)
    async with serving() as s:
        await s.call.created(CRDS, definition())
        began = time.process_time()
        async with turns() as counted:
            assert (await s.call.post(WIDGETS, body)).status == 201
            stored = await s.call.get(f"{WIDGETS}/large")
            assert len(stored.json["spec"]["list"]) == 4_500
            body["spec"]["list"].append({"k": -1})
            applied = await s.call.patch(f"{WIDGETS}/large?fieldManager=m&force=true", body, "apply-patch+yaml")
            assert applied.status == 200
            assert len((await s.call.get(WIDGETS)).names) == 1
            in_yaml = await s.call.get(f"{WIDGETS}/large", Accept="application/yaml")
            assert in_yaml.text.count("\n  - k: ") == 4_501
            assert (await s.call.delete(f"{WIDGETS}/large")).status == 200
        assert counted.longest < (time.process_time() - began) / 8


async def test_large_and_small_writes_give_the_same_responses() -> None:
    async with serving() as s:
        for large in (False, True):
            more = _BULK if large else {}
            made = (await s.call.post(CONFIG_MAPS, config_map("a", {**more, "n": "1"}))).json
            assert made["metadata"]["resourceVersion"] == str(s.server.revision)
            async with s.call.watch(f"{CONFIG_MAPS}?watch=true&resourceVersion={s.server.revision}") as watch:
                fields = {**made, "data": {**more, "n": "2"}}
                put = (await s.call.put(f"{CONFIG_MAPS}/a", fields)).json
                assert put["data"]["n"] == "2"
                same = (await s.call.put(f"{CONFIG_MAPS}/a", put)).json
                assert same == put, "nothing differs, and nothing is written"
                patched = await s.call.patch(f"{CONFIG_MAPS}/a", {"data": {"n": "3"}})
                dry = await s.call.patch(f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"n": "9"}})
                assert dry.json["data"]["n"] == "9"
                assert dry.revision == patched.revision
                stale = await s.call.put(f"{CONFIG_MAPS}/a", fields)
                assert "the object has been modified" in stale.refuses(409, "Conflict")
                wrong = {**config_map("a", {**more, "no/key": "x"})}
                assert "data[no/key]" in (await s.call.put(f"{CONFIG_MAPS}/a", wrong)).refuses(422, "Invalid")
                unknown = await s.call.post(f"{CONFIG_MAPS}?dryRun=All", {**config_map("b", more), "odd": 1})
                assert unknown.headers["Warning"] == '299 - "unknown field \\"odd\\""'
                assert (await s.call.delete(f"{CONFIG_MAPS}/a")).status == 200
                events = [await watch.next() for _ in range(3)]
                assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
                assert events[0]["object"] == put
                assert events[1]["object"] == patched.json
                assert events[2]["object"]["metadata"]["resourceVersion"] == str(s.server.revision)


async def test_large_pod_gets_defaults_from_stored_objects() -> None:
    """A draft reads other objects, too: a priority class and a namespace."""
    environment = [{"name": f"N{number}", "value": "v"} for number in range(3_000)]
    container = {"name": "c", "image": "i", "env": environment}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "priorityClassName": "system-node-critical"},
    }
    assert len(json.dumps(pod)) > LARGE
    async with serving() as s:
        made = (await s.call.created(PODS, pod)).json
        assert made["spec"]["priority"] == 2_000_001_000
        missing = {**pod, "spec": {"containers": [container], "priorityClassName": "none"}}
        answer = await s.call.post(PODS, {**missing, "metadata": {"name": "q"}})
        assert "no PriorityClass" in answer.refuses(403, "Forbidden")
        elsewhere = await s.call.post("/api/v1/namespaces/nowhere/pods", pod)
        assert 'namespaces "nowhere" not found' in elsewhere.refuses(404, "NotFound")


async def test_large_pod_is_bound_and_evicted_once() -> None:
    environment = [{"name": f"N{number}", "value": "v"} for number in range(3_000)]
    container = {"name": "c", "image": "i", "env": environment}
    metadata = {"name": "p", "labels": {"app": "a"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    allowed = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0}
    async with serving() as s:
        await s.call.created(PODS, pod)
        answers = await asyncio.gather(*(s.call.post(f"{PODS}/p/binding", binding) for _ in range(3)))
        assert sorted(answer.status for answer in answers) == [201, 409, 409]
        assert (await s.call.get(f"{PODS}/p")).json["spec"]["nodeName"] == "n"
        await s.call.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        await s.call.created(budgets, budget)
        await s.call.patch(f"{budgets}/b/status", {"status": {**allowed, "expectedPods": 1}})
        await s.call.created(f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        status = (await s.call.get(f"{budgets}/b")).json["status"]
        assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])


async def test_concurrent_large_and_small_patches_lose_no_change() -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, bulky("a"))

        async def add(number: int) -> int:
            more = _BULK if number % 2 else {}
            change = {"data": {**more, f"n{number}": "x"}}
            while True:
                answer = await s.call.patch(f"{CONFIG_MAPS}/a", change)
                if answer.status != 409:
                    return answer.status

        assert await asyncio.gather(*(add(number) for number in range(6))) == [200] * 6
        data = (await s.call.get(f"{CONFIG_MAPS}/a")).json["data"]
        assert {key for key in data if key.startswith("n")} == {f"n{number}" for number in range(6)}


async def test_concurrent_large_creates_of_one_name_create_one_object() -> None:
    async with serving() as s:
        answers = await asyncio.gather(*(s.call.post(CONFIG_MAPS, bulky("a", n=str(n))) for n in range(4)))
        assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
        for answer in answers:
            if answer.status == 409:
                answer.refuses(409, "AlreadyExists")


def copies(op: str) -> bytes:
    """A short JSON patch that copies a part of an object."""
    start = b'{"op": "add", "path": "/data/a0", "value": "%s"}' % (b"x" * 40)
    made = [b'{"op": "%s", "from": "/data", "path": "/copies%d"}' % (op.encode(), number) for number in range(3)]
    return b"[" + b",".join([start, *made]) + b"]"


@pytest.mark.parametrize(
    ("method", "content_type", "body", "beside"),
    [
        ("PATCH", "application/json-patch+json", copies("copy"), True),
        ("PATCH", "application/json-patch+json", copies("c\\u006fpy"), True),
        ("PATCH", "application/json-patch+json", b'[{"op": "add", "path": "/data/b", "value": "x"}]', False),
        ("PUT", "application/yaml", b"metadata: &m {name: a}\ndata: {}\nlabels: *m\n", True),
        ("PATCH", "application/apply-patch+yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: a}\n", True),
        ("PUT", "application/yaml", b"metadata: {name: a}\ndata: {}\n", False),
        ("PUT", "application/json", b'{"metadata": {"name": "a"}, "data": {"x": "&"}}', False),
    ],
)
async def test_short_body_that_can_expand_is_written_in_a_thread(
    method: str, content_type: str, body: bytes, beside: bool
) -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("a", {"n": "1"}))
        answer = await s.call.call(method, f"{CONFIG_MAPS}/a?fieldManager=m", body, **{"Content-Type": content_type})
        assert answer.status == 200, answer.text
        assert ("large-writes" in s.server._large_writes._threads) is beside


class Worked:
    """A write that notes where it ran, and lets others in between."""

    def __init__(self, state: ServerState, interferences: int) -> None:
        self.state = state
        self.left = interferences
        self.threads: list[str] = []

    def __call__(self, context: WriteContext) -> str:
        self.threads.append(threading.current_thread().name)
        context.objects.get("namespaces", "a")
        if self.left:
            self.left -= 1
            store = self.state.store
            context.ask(lambda: store.update("namespaces", "a", {"metadata": {"name": "a"}}, always=True))
        return "done"


def writes() -> tuple[ServerState, LargeWrites]:
    state = ServerState(RevisionStore(), built_in_registry())
    state.store.create("namespaces", "a", {"metadata": {"name": "a"}})
    return state, LargeWrites(state)


def sized(state: ServerState, size: int, *, name: str = "") -> WriteContext:
    """Return the context of a write of a namespace of so many bytes."""
    served = state.registry.find("", "v1", "namespaces")
    assert served is not None
    return dataclasses.replace(state.own_write(served, "", name, Moment(now=0)), size=size)


async def test_small_writes_run_on_the_event_loop_and_large_writes_in_a_thread() -> None:
    state, large = writes()
    here = threading.current_thread().name
    for size, where in ((LARGE, here), (LARGE + 1, "deltaloop-apiserver-large-writes_0")):
        work = Worked(state, 0)
        assert (await large.run(work, sized(state, size)))[0] == "done"
        assert work.threads == [where]
    large.close()


@pytest.mark.parametrize(
    ("content_type", "body", "swells"),
    [
        ("application/json", b'{"a": "&b *b"}', False),
        ("application/yaml", b"a: &b [1]", True),
        ("application/yaml; charset=utf-8", b"a: 1", False),
        ("application/apply-patch+yaml", b"a: &b [1]", True),
        ("application/json-patch+json", b'[{"op": "copy"}]', True),
        ("application/json-patch+json", b'[{"op": "\\u0063opy"}]', True),
        ("Application/JSON-Patch+JSON; a=b", b'[{"op": "copy"}]', True),
        ("application/json-patch+json", b'[{"op": "add"}]', False),
        ("application/merge-patch+json", b'{"a": "copy"}', False),
    ],
)
def test_may_swell_is_true_for_bodies_that_can_expand(content_type: str, body: bytes, swells: bool) -> None:
    assert SentBody(raw=body, content_type=content_type).may_swell() is swells


@pytest.mark.parametrize(
    ("steps", "threads"),
    [
        (STEPS_ON_LOOP, [""]),
        (STEPS_ON_LOOP + 1, ["", "large-writes"]),
        (STEPS_OF_LARGE + 1, ["", "large-writes", "long-writes"]),
    ],
)
async def test_small_write_with_much_computation_restarts_in_a_thread(steps: int, threads: list[str]) -> None:
    state, large = writes()
    ran: list[str] = []

    def work(_: WriteContext) -> str:
        ran.append(threading.current_thread().name.removeprefix("deltaloop-apiserver-").removesuffix("_0"))
        charge(steps)
        return "done"

    assert (await large.run(work, sized(state, 10)))[0] == "done"
    assert ran[1:] == threads[1:]
    large.close()


async def test_write_above_the_computation_limit_gives_a_timeout() -> None:
    state, large = writes()

    def work(_: WriteContext) -> str:
        charge(MOST_STEPS + 1)
        return "done"

    with pytest.raises(ApiError) as caught:
        await large.run(work, sized(state, 10))
    assert (caught.value.status.code, caught.value.status.reason) == (504, "Timeout")
    large.close()


@pytest.mark.parametrize("interferences", [1, TRIES - 1, TRIES])
async def test_write_is_retried_after_concurrent_changes_until_a_limit(interferences: int) -> None:
    state, large = writes()
    work = Worked(state, interferences)
    if interferences < TRIES:
        assert (await large.run(work, sized(state, LARGE + 1)))[0] == "done"
        assert len(work.threads) == interferences + 1
    else:
        with pytest.raises(ConflictError, match="has been modified"):
            await large.run(work, sized(state, LARGE + 1))
        assert len(work.threads) == TRIES
    large.close()


async def test_error_is_raised_only_if_the_state_is_unchanged() -> None:
    state, large = writes()
    tries: list[str] = []

    def read(context: WriteContext) -> str:
        tries.append("")
        try:
            return context.read().name
        finally:
            if len(tries) == 1:
                context.ask(lambda: state.store.create("namespaces", "b", {"metadata": {"name": "b"}}))

    assert (await large.run(read, sized(state, LARGE + 1, name="b")))[0] == "b"
    state.store.delete("namespaces", "b")
    with pytest.raises(ApiError, match="not found"):
        await large.run(read, sized(state, LARGE + 1, name="b"))
    assert len(tries) == 3
    large.close()


async def test_failed_ask_raises_in_the_calling_thread() -> None:
    state, large = writes()

    def nobody() -> str:
        raise TimeoutError("of the question")

    def write(context: WriteContext) -> str:
        return context.ask(nobody)

    with pytest.raises(TimeoutError, match="of the question"):
        await large.run(write, sized(state, LARGE + 1))
    large.close()


async def test_canceled_write_is_not_committed() -> None:
    state, large = writes()
    begun, go_on = threading.Event(), threading.Event()

    def write(context: WriteContext) -> None:
        context.objects.create("namespaces", "b", {"metadata": {"name": "b"}})
        begun.set()
        go_on.wait(10.0)

    task = asyncio.create_task(large.run(write, sized(state, LARGE + 1)))
    await asyncio.to_thread(begun.wait, 10.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    work = Worked(state, 0)
    await large.run(work, sized(state, LARGE + 1))  # comes after it, in the same thread
    assert state.store.get("namespaces", "b") is None
    large.close()


async def test_thread_does_not_wait_for_a_stopped_server() -> None:
    _, large = writes()
    stopped = asyncio.new_event_loop()  # it never runs, so it never answers
    ask = large._ask_on(stopped)
    large.close()
    ended: list[str] = []

    def work() -> None:
        try:
            ask(lambda: None)
        except Exception as error:  # noqa: BLE001 - whatever it is
            ended.append(type(error).__name__)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    await asyncio.to_thread(thread.join, 10.0)
    assert ended == ["_ClosedError"]
    stopped.close()


async def test_write_continues_in_a_thread_after_a_large_response() -> None:
    state, _ = writes()

    async def answer(_question: Hashable) -> object:
        return (Called(uid="u", status=200, body=b"x" * (LARGE + 1)),)

    large = LargeWrites(state, answer=answer)
    threads: list[bool] = []

    def write(context: WriteContext) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        assert context.answers is not None
        return context.answers.ask("question")

    await large.run(write, dataclasses.replace(sized(state, 1), answers=ExternalAnswers()))
    large.close()
    assert threads == [True, False]


async def test_write_that_grows_is_repeated_in_the_thread() -> None:
    state, large = writes()
    allowed: list[int] = []

    def write(_: WriteContext) -> None:
        allowed.append(CURRENT.account.growth)
        check_growth(LARGE + 1)

    await large.run(write, sized(state, 1))
    large.close()
    assert allowed == [LARGE, MOST_GROWN]
