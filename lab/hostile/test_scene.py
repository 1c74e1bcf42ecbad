"""The checks of the scene bite: for each there is a seeded bug that it finds."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.hostile.leaks import nothing_kept
from tests.hostile.scene import InformerOf, Recorder, Variant, played_as, scene
from tests.hostile.scripted_server import Asked, ScriptedServer, status_reply

from deltaloop import kinds
from deltaloop.api.resource import Resource
from deltaloop.cache import Informer, InformerOptions, ListWatch, QueueKind
from deltaloop.client import Client
from deltaloop.testing import HalfOpen
from lab.mutants.pipeline import (
    AsksLikeMad,
    HidesTombstones,
    LosesChanges,
    MutantInformer,
    Mutation,
    SkipsToTheLastDelta,
    TellsDeletionsOfTheUnheardOf,
)


def obj(uid: str = "u", version: str = "1") -> Resource:
    return Resource.from_dict(
        {"metadata": {"name": "a", "namespace": "n", "uid": uid, "resourceVersion": version}, "data": {}}
    )


def add(recorder: Recorder, uid: str = "u") -> None:
    recorder.on_add(obj(uid), is_in_initial_list=False)


def delete(recorder: Recorder) -> None:
    recorder.on_delete(obj(), final_state_known=True)


Step = Callable[[Recorder], None]
WRONG: dict[str, list[Step]] = {
    "added twice": [add, add],
    "deleted before it was added": [delete],
    "deleted twice": [add, delete, delete],
    "updated before it was added": [lambda recorder: recorder.on_update(obj(), obj())],
    "another object without a gap": [add, lambda recorder: recorder.on_update(obj(), obj("other"))],
    "an old object that nobody knew": [add, lambda recorder: recorder.on_update(obj("x"), obj())],
}


@pytest.mark.parametrize("story", list(WRONG))
def test_wrong_histories_are_detected(story: str) -> None:
    recorder = Recorder(ScriptedServer())
    for step in WRONG[story]:
        step(recorder)
    assert recorder.faults


def test_valid_history_with_replaced_object_passes() -> None:
    recorder = Recorder(ScriptedServer())
    add(recorder)
    recorder.on_update(obj(), obj(version="2"))
    delete(recorder)
    add(recorder)
    recorder.server.listed += 1
    recorder.on_update(obj(), obj("other"))
    assert recorder.faults == []


async def test_excessive_requests_are_detected() -> None:
    async with scene() as made:
        now = asyncio.get_running_loop().time()
        asked = list(made.server.asked)
        made.server.asked.extend(Asked(now + 0.001 * number, "list", {}) for number in range(20))
        with pytest.raises(AssertionError, match="requests within"):
            made.check_pace()
        made.server.asked[:] = asked


async def test_stale_cache_is_detected() -> None:
    async with scene() as made:
        await made.stream()
        made.relay.inject(HalfOpen())
        made.server.put("object-0", "second")
        with pytest.raises(AssertionError, match="the cache equals the server"):
            await made.settled(seconds=60)


# Informers that are broken


def mutated(mutant: type[Mutation]) -> InformerOf:
    """Return a function that runs an informer with a mistake."""

    @asynccontextmanager
    async def running(client: Client, options: InformerOptions) -> AsyncGenerator[Informer[Resource], None]:
        informer = MutantInformer(ListWatch(client, kinds.CONFIG_MAP), mutant(), options=options)
        task = asyncio.create_task(informer.run())
        try:
            yield informer
        finally:
            task.cancel()
            await asyncio.wait([task])

    return running


async def test_informer_that_loses_changes_is_detected() -> None:
    async with scene(informer_of=mutated(LosesChanges)) as made:
        made.server.put("object-0", "second")
        with pytest.raises(AssertionError, match="the cache equals the server"):
            await made.settled(seconds=5)
        made.server.remove("object-0")


async def test_delete_without_add_is_detected() -> None:
    async def delete_twice() -> None:
        async with scene(informer_of=mutated(TellsDeletionsOfTheUnheardOf)) as made:
            stream = await made.stream()
            stream.line("DELETED", made.server.remove("object-0"))

    with played_as(Variant(queue=QueueKind.REAL_FIFO)), pytest.raises(AssertionError, match="before it was added"):
        await delete_twice()


async def test_replaced_object_without_list_is_detected() -> None:
    async def make_again() -> None:
        async with scene(informer_of=mutated(SkipsToTheLastDelta)) as made:
            made.server.remove("object-0")
            made.server.put("object-0", "another")

    with pytest.raises(AssertionError, match="another object without a gap"):
        await make_again()


async def test_missing_delete_notification_is_detected() -> None:
    async with scene(informer_of=mutated(HidesTombstones)) as made:
        stream = await made.stream()
        await asyncio.sleep(2.0)
        made.server.objects.pop("object-1")
        made.server.expire()
        stream.chunk(b'{"type":"ERROR","object":' + status_reply(410, "Expired").body + b"}\n")
        with pytest.raises(AssertionError, match="the handler heard of everything"):
            await made.settled(seconds=5)
        made.recorder.state["default/object-1"].present = False


async def test_client_without_backoff_is_detected() -> None:
    async def refuse() -> None:
        async with scene(wait=False, informer_of=mutated(AsksLikeMad)) as made:
            made.server.lists.extend([status_reply(503)] * 30)
            await made.settled()

    with pytest.raises(AssertionError, match="requests within"):
        await refuse()


# What is left


async def test_open_socket_is_detected() -> None:
    kept = socket.socket()
    kept.close()
    with pytest.raises(AssertionError, match="sockets are left open"):
        async with scene():
            kept = socket.socket()
    kept.close()


async def test_running_task_is_detected() -> None:
    task: asyncio.Task[None] | None = None
    with pytest.raises(AssertionError, match="tasks are left running"):
        async with scene():
            task = asyncio.create_task(asyncio.sleep(1e6))
    assert task is not None
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("what", ["object", "informer"])
async def test_memory_leak_is_detected(what: str) -> None:
    hoard: list[object] = []

    async def keep() -> None:
        async with scene() as made:
            hoard.append(made.informer.indexer.list()[0] if what == "object" else made.informer)

    with pytest.raises(AssertionError, match="are left" if what == "object" else "left"), nothing_kept():
        await keep()
    assert len(hoard) == 1
