"""What destructors and signal handlers may do is safe in the middle of itself: no lock waits for its own thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from deltaloop.api.resource import Resource
from deltaloop.events import EventRecorder, EventRecorderOptions
from deltaloop.sources import Channel
from deltaloop.workqueue import WorkQueue
from tests.events.fake_events import POD_X, FakeEvents


def interrupted(action: Callable[[], object]) -> bool:
    """Do something, and the same once more whenever it calls anything; return whether it came to an end."""
    busy = False

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        nonlocal busy
        if not busy and event in {"call", "c_call"}:
            busy = True
            try:
                action()
            finally:
                busy = False

    def work() -> None:
        sys.setprofile(interrupt)
        try:
            action()
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5.0)
    return not thread.is_alive()


def recording() -> tuple[Callable[[], object], Callable[[], object]]:
    recorder = EventRecorder(FakeEvents(), component="test", options=EventRecorderOptions(queue_size=100_000))

    def check() -> None:
        names = [draft.name for draft, _ in recorder._waiting]
        assert len(names) > 10
        assert len({*names}) == len(names), "each event has a name of its own"

    return lambda: recorder.event(POD_X, "Normal", "Created", "made it"), check


def queueing() -> tuple[Callable[[], object], Callable[[], object]]:
    queue = WorkQueue[str](name="test")

    def check() -> None:
        assert len(queue) == 1

    return lambda: queue.add("a"), check


def sending() -> tuple[Callable[[], object], Callable[[], object]]:
    channel = Channel()

    def check() -> None:
        assert {key for key, _ in channel._pending} == {"default/a"}

    return lambda: channel.send("default/a"), check


def reading() -> tuple[Callable[[], object], Callable[[], object]]:
    objects = [Resource.from_dict({"metadata": {"name": f"{number}"}, "spec": {}}) for number in range(300)]

    def read() -> None:
        obj = objects.pop() if len(objects) > 1 else objects[0]
        assert obj["metadata"]["name"] == obj.name

    return read, read


@pytest.mark.parametrize("make", [recording, queueing, sending, reading])
def test_it_may_be_done_in_the_middle_of_itself(
    make: Callable[[], tuple[Callable[[], object], Callable[[], object]]],
) -> None:
    action, check = make()
    assert interrupted(action), "it waits for a lock that its own thread has"
    check()
