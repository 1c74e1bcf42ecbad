"""The checks of the scene bite: wrong stories, too many requests and a cache that is behind are found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from deltaloop.api.resource import Resource
from deltaloop.testing import HalfOpen
from tests.hostile.scene import Recorder, scene
from tests.hostile.scripted_server import Asked, ScriptedServer


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
def test_wrong_stories_are_found(story: str) -> None:
    recorder = Recorder(ScriptedServer())
    for step in WRONG[story]:
        step(recorder)
    assert recorder.faults


def test_a_right_story_passes_with_another_object_after_a_list() -> None:
    recorder = Recorder(ScriptedServer())
    add(recorder)
    recorder.on_update(obj(), obj(version="2"))
    delete(recorder)
    add(recorder)
    recorder.server.listed += 1
    recorder.on_update(obj(), obj("other"))
    assert recorder.faults == []


async def test_too_many_requests_are_found() -> None:
    async with scene() as made:
        now = asyncio.get_running_loop().time()
        asked = list(made.server.asked)
        made.server.asked.extend(Asked(now + 0.001 * number, "list", {}) for number in range(20))
        with pytest.raises(AssertionError, match="requests within"):
            made.check_pace()
        made.server.asked[:] = asked


async def test_a_cache_that_is_behind_is_found() -> None:
    async with scene() as made:
        await made.stream()
        made.relay.inject(HalfOpen())
        made.server.put("object-0", "second")
        with pytest.raises(AssertionError, match="the cache equals the server"):
            await made.settled(seconds=60)
