"""Who is told of changes, in which turn of the loop, and how often."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from deltaloop.apiserver.change_signal import ALL_RESOURCES, ChangeSignal
from deltaloop.apiserver.core.storage.store import RevisionStore

MANY = 20


class Told:
    """Notes in which turn it was told, and of which revision."""

    def __init__(self, store: RevisionStore) -> None:
        self.store = store
        self.revisions: list[int] = []

    def __call__(self) -> None:
        self.revisions.append(self.store.revision)


def write(store: RevisionStore, resource: str = "pods") -> None:
    store.create(resource, f"a{store.revision}", {"metadata": {"name": "a"}})


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_few_subscribers_are_notified_once_in_the_next_iteration() -> None:
    store = RevisionStore()
    signal = ChangeSignal(store, stride=100)
    told, other = Told(store), Told(store)
    with signal.notify("pods", told), signal.notify("secrets", other):
        for _ in range(3):
            write(store)
            signal.publish()
        assert told.revisions == []
        await turns(1)
        assert told.revisions == [4]
        signal.publish()  # nothing has changed
        await turns(5)
    assert (told.revisions, other.revisions) == ([4], [])
    write(store)
    signal.publish()
    await turns(5)
    assert told.revisions == [4]


async def test_many_subscribers_are_notified_after_pending_requests() -> None:
    store = RevisionStore()
    signal = ChangeSignal(store, stride=100)
    many = [Told(store) for _ in range(MANY)]

    async def arrived() -> None:
        # As a request goes: its bytes are read in one turn, and it is answered in the next one.
        await turns(1)
        write(store)
        signal.publish()

    with ExitStack() as stack:
        for told in many:
            stack.enter_context(signal.notify("pods", told))
        write(store)
        signal.publish()
        answering = asyncio.create_task(arrived())
        await turns(2)
        assert answering.done()
        assert [told.revisions for told in many] == [[]] * MANY
        await turns(1)
        assert [told.revisions for told in many] == [[3]] * MANY
        await turns(5)
        assert [told.revisions for told in many] == [[3]] * MANY
        # However much goes on, it is not put off any further.
        for _ in range(6):
            write(store)
            signal.publish()
            await turns(1)
        assert many[0].revisions == [3, 6, 9]


@pytest.mark.parametrize("count", [1, MANY])
async def test_close_notifies_all_subscribers(count: int) -> None:
    store = RevisionStore()
    signal = ChangeSignal(store, stride=100)
    told = [Told(store) for _ in range(count)]
    with ExitStack() as stack, signal.subscribe() as event:
        for each in told:
            stack.enter_context(signal.notify("pods", each))
        signal.close()
        assert signal.closed
        assert event.is_set()
        await turns(1)
        assert [each.revisions for each in told] == [[1]] * count


async def test_subscribers_of_unchanged_resources_are_notified_periodically() -> None:
    store = RevisionStore()
    signal = ChangeSignal(store, stride=4)
    told = Told(store)
    with signal.notify("secrets", told), signal.subscribe("leases") as leases, signal.subscribe() as anything:
        for number in range(1, 9):
            write(store)
            signal.publish()
            await turns(2)
            assert anything.is_set()
            assert len(told.revisions) == number // 4
            assert leases.is_set() is (number >= 4)
        assert told.revisions == [5, 9]


async def test_compaction_notifies_all_subscribers() -> None:
    store = RevisionStore(window=2)
    signal = ChangeSignal(store, stride=100)
    told = Told(store)
    with signal.notify("secrets", told), signal.subscribe(ALL_RESOURCES):
        for _ in range(5):
            write(store)
        signal.publish()
        await turns(2)
    assert told.revisions == [6]


async def test_callback_can_unsubscribe_another_subscriber() -> None:
    store = RevisionStore()
    signal = ChangeSignal(store, stride=100)
    told = Told(store)
    with ExitStack() as leaving, signal.notify("pods", leaving.close):
        leaving.enter_context(signal.notify("pods", Told(store)))
        with signal.notify("pods", told):
            write(store)
            signal.publish()
            await turns(1)
        assert told.revisions == [2]
