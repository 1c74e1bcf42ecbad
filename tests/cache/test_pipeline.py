"""The whole pipeline against a server that misbehaves, in virtual time: scripted source, informer, handlers.

Whatever happens, once the server is well again: the cache equals the server, every handler's own picture equals it,
too, every handler saw for each key (add update* delete)* with nothing lost or doubled, the server was not asked too
often, and nothing is left open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.interfaces import Registration
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.testing import run_virtual
from tests.cache.fake_source import FakeSource, api_error, broken, expired, refused, too_large
from tests.cache.objects import nameless
from tests.nightly import examples

FAULTS: dict[str, Callable[[], Exception]] = {
    "expired": expired,
    "too large": too_large,
    "busy": lambda: api_error(429, retry_after=2.0),
    "internal": lambda: api_error(500),
    "forbidden": lambda: api_error(403),
    "refused": refused,
    "broken": broken,
    "malformed": lambda: MalformedEventError("no event"),
}

names = st.sampled_from(["a", "b", "c", "d"])
faults = st.sampled_from([*FAULTS])
waits = st.sampled_from([0.001, 0.5, 1.5, 40.0, 400.0])
steps = st.one_of(
    st.tuples(st.just("put"), names, st.booleans()),
    st.tuples(st.just("put"), names, st.just(False)),
    st.tuples(st.just("remove"), names, st.booleans()),
    st.tuples(st.just("remake"), names, st.booleans()),
    st.tuples(st.just("wait"), waits, st.none()),
    st.tuples(st.just("wait"), st.just(0.001), st.none()),
    st.tuples(st.just("end"), st.none(), st.none()),
    st.tuples(st.just("break"), faults, st.none()),
    st.tuples(st.just("fail lists"), faults, st.integers(1, 4)),
    st.tuples(st.just("fail watches"), faults, st.integers(1, 4)),
    st.tuples(st.just("compact"), st.none(), st.none()),
    st.tuples(st.just("bookmark"), st.none(), st.none()),
    st.tuples(st.just("odd event"), st.none(), st.none()),
    st.tuples(st.just("add handler"), st.none(), st.none()),
    st.tuples(st.just("remove handler"), st.none(), st.none()),
)


class Witness:
    """A handler with its own picture, that refuses to hear what cannot be."""

    def __init__(self) -> None:
        self.picture: dict[str, Resource] = {}
        self.complaints: list[str] = []

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.complaints.append(what)

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.check(obj.name not in self.picture, f"{obj.name} was added twice")
        self.picture[obj.name] = obj

    def on_update(self, old: Resource, new: Resource) -> None:
        known = self.picture.get(new.name)
        self.check(known is not None, f"{new.name} was updated before it was added")
        self.check(known == old, f"{new.name} was updated from a state that was never told")
        self.picture[new.name] = new

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        known = self.picture.pop(obj.name, None)
        self.check(known is not None, f"{obj.name} was deleted before it was added")
        self.check(final_state_known or known == obj, f"{obj.name}'s tombstone has a state that was never told")


class Play:
    """Carries out one script."""

    def __init__(
        self, *, page_size: int, serves_from_cache: bool, resync_period: float, watch_list: bool, queue: QueueKind
    ) -> None:
        self.source = FakeSource(serves_from_cache=serves_from_cache)
        self.informer = Informer(
            self.source,
            POD,
            options=InformerOptions(
                random=lambda: 0.0,
                resync_period=resync_period,
                queue=queue,
                reflector=ReflectorOptions(page_size=page_size, watch_list=watch_list),
            ),
        )
        self.witnesses: list[tuple[Registration, Witness]] = []
        self.removed: list[Witness] = []

    async def run(self, script: list[tuple[str, Any, Any]]) -> None:
        self.add_handler()
        task = asyncio.create_task(self.informer.run())
        for step, first, second in script:
            await self.step(step, first, second)
            self.check_rate()
        self.source.list_faults.clear()
        self.source.watch_faults.clear()
        await asyncio.sleep(100)
        self.source.break_watches(expired())  # what was changed in silence shows in the next list only
        await asyncio.sleep(100)
        self.check_end()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert self.source.opened == self.source.closed, "a watch was left open"

    async def step(self, step: str, first: Any, second: Any) -> None:
        source = self.source
        match step:
            case "put":
                source.put(first, silent=second)
            case "remove" if first in source.objects:
                source.remove(first, silent=second)
            case "remake" if first in source.objects:
                source.remove(first, silent=second)
                source.put(first, silent=second)
            case "wait":
                await asyncio.sleep(first)
            case "end":
                source.end_watches()
            case "break":
                source.break_watches(FAULTS[first]())
            case "fail lists":
                source.list_faults.extend(FAULTS[first]() for _ in range(second))
            case "fail watches":
                source.watch_faults.extend(FAULTS[first]() for _ in range(second))
            case "compact":
                source.compact()
            case "bookmark":
                source.bookmark()
            case "odd event":
                source.send(WatchEvent(EventType.MODIFIED, nameless(10**9)))
            case "add handler":
                self.add_handler()
            case "remove handler" if self.witnesses:
                registration, witness = self.witnesses.pop()
                self.informer.remove_event_handler(registration)
                self.removed.append(witness)
            case _:
                pass

    def add_handler(self) -> None:
        witness = Witness()
        self.witnesses.append((self.informer.add_event_handler(witness), witness))

    def check_rate(self) -> None:
        now = asyncio.get_running_loop().time()
        assert len(self.source.asked) <= 14 * (1 + now / 0.8), f"{len(self.source.asked)} requests in {now} s"

    def check_end(self) -> None:
        cached = {obj.name: obj for obj in self.informer.lister().list()}
        assert cached == self.source.objects
        assert [obj.name for obj in self.informer.lister().list(namespace="default")] == sorted(cached)
        for registration, witness in self.witnesses:
            assert witness.complaints == []
            assert witness.picture == self.source.objects
            assert registration.has_synced
            assert registration.failures == 0
        for witness in self.removed:
            assert witness.complaints == []
        seen = self.informer.statistics()
        assert seen.last_error is None
        assert self.informer.has_synced


@settings(
    max_examples=examples(60),
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    script=st.lists(steps, min_size=5, max_size=40),
    page_size=st.sampled_from([0, 2]),
    serves_from_cache=st.booleans(),
    resync_period=st.sampled_from([0.0, 7.0]),
    watch_list=st.booleans(),
    queue=st.sampled_from([*QueueKind]),
)
def test_cache_converges_to_server_state(
    script: list[tuple[str, Any, Any]],
    page_size: int,
    serves_from_cache: bool,
    resync_period: float,
    watch_list: bool,
    queue: QueueKind,
) -> None:
    play = Play(
        page_size=page_size,
        serves_from_cache=serves_from_cache,
        resync_period=resync_period,
        watch_list=watch_list,
        queue=queue,
    )
    run_virtual(play.run(script))
