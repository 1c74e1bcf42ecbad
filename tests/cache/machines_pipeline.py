"""The whole pipeline beside a naive model, as a Hypothesis machine: scripted server, informer, handlers of every kind.

The model is the server's own table of objects, the identities that lists have brought, and what each handler was told
last. Whatever happens:

* when it is quiet, the cache equals the server, and so does the picture of every handler, whatever its buffer policy;
* each handler hears (add update* delete)* of each key; a deletion of what it never heard of only as a tombstone;
* an update starts from the state told last; it leads to another object (uid) only if a list brought that one, which
  means that something was missed, or if the handler's buffer merges;
* the transform sees each object once, and whatever is stored or told has been through it;
* what is read of a cached object's bytes belongs to the object, be the cache compressed or not;
* a resync tells the very state that was told last; a removed handler hears nothing more;
* the server is not asked more often than the backoff allows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deltaloop.api.kinds import POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.informer_options import ZstdOptions
from deltaloop.cache.interfaces import Registration
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList
from deltaloop.testing import VirtualLoop
from tests.cache.fake_source import FakeSource, api_error, broken, expired, refused, too_large
from tests.cache.objects import nameless, pod

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
NAMES = st.sampled_from(["a", "b", "c"])
MARK = "seen"
PADDING = "so that a compressed object is smaller, which is why it is compressed at all " * 3
QUIET = 200.0

MakeInformer = Callable[[ListerWatcher, InformerOptions], Informer[Resource]]


class Server(FakeSource):
    """The scripted server, that remembers which identities it has shown in a list."""

    def __init__(self, *, serves_from_cache: bool) -> None:
        super().__init__(serves_from_cache=serves_from_cache)
        self.listed: set[str] = set()

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        page = await super().list(options)
        self.listed |= {obj.uid for obj in page.items}
        return page

    def _send_state(self, stream: asyncio.Queue[Any]) -> None:
        self.listed |= {obj.uid for obj in self.objects.values()}
        super()._send_state(stream)


def state_of(obj: Resource) -> tuple[str, str]:
    return obj.uid, obj.resource_version


class Witness:
    """A handler with its own picture; complains of whatever cannot be."""

    def __init__(self, server: Server, *, merges: bool, seconds: float) -> None:
        self.server = server
        self.merges = merges
        self.seconds = seconds
        self.picture: dict[str, Resource] = {}
        self.complaints: list[str] = []
        self.heard = 0
        self.in_a_call = False
        self.removed = False

    async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.check(obj.name not in self.picture, f"{obj.name} was added twice")
        await self.keep(obj)

    async def on_update(self, old: Resource, new: Resource) -> None:
        known = self.picture.get(new.name)
        self.check(known is not None, f"{new.name} was updated before it was added")
        another = old.uid != new.uid
        if known is not None:
            # A deletion merged with what was made again starts from the deleted state, which nobody was told.
            from_last = known.uid == old.uid if self.merges and another else state_of(known) == state_of(old)
            self.check(from_last, f"{new.name}: not from the state told last")
        self.check(not another or self.merges or new.uid in self.server.listed, f"{new.name}: another one, no gap")
        self.check(old is new or state_of(old) != state_of(new), f"{new.name} was told twice in the same state")
        await self.keep(new)

    async def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        known = self.picture.pop(obj.name, None)
        self.check(known is not None or not final_state_known, f"{obj.name} was deleted before it was added")
        if known is not None:
            of_it = known.uid == obj.uid or self.merges
            self.check(of_it, f"{obj.name}: the deletion of another one")
            told_last = final_state_known or self.merges or state_of(known) == state_of(obj)
            self.check(told_last, f"{obj.name}: a tombstone that was never told")
        await self.wait()

    async def keep(self, obj: Resource) -> None:
        self.check(obj.labels.get(MARK) == "once", f"{obj.name} was not transformed once")
        self.picture[obj.name] = obj
        await self.wait()

    async def wait(self) -> None:
        self.heard += 1
        self.in_a_call = True
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.in_a_call = False

    def check(self, holds: bool, what: str) -> None:
        if self.removed:
            self.complaints.append("told after it was removed")
        if not holds:
            self.complaints.append(what)


def mark(obj: Resource) -> Resource:
    """The transform: every object is labelled; one that comes a second time is labelled otherwise."""
    fields = json.loads(obj.raw)
    labels = fields["metadata"].setdefault("labels", {})
    labels[MARK] = "once" if MARK not in labels else "twice"
    fields["padding"] = PADDING
    return Resource.from_dict(fields, POD)


def make_machine(make: MakeInformer) -> type[RuleBasedStateMachine]:
    """Build the machine around an informer, so that broken ones go through it, too."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.runner = asyncio.Runner(loop_factory=VirtualLoop)
            self.handlers: list[tuple[Registration, Witness]] = []
            self.removed: list[Witness] = []
            self.server = Server(serves_from_cache=True)

        @initialize(
            queue=st.sampled_from([*QueueKind]),
            page_size=st.sampled_from([0, 2]),
            watch_list=st.booleans(),
            policy=st.sampled_from([*BufferPolicy]),
            compressed=st.booleans(),
        )
        def start(
            self, queue: QueueKind, page_size: int, watch_list: bool, policy: BufferPolicy, compressed: bool = False
        ) -> None:
            self.server = Server(serves_from_cache=not page_size)
            reflector = ReflectorOptions(page_size=page_size, watch_list=watch_list)
            options = InformerOptions(
                random=lambda: 0.0,
                transform=mark,
                queue=queue,
                reflector=reflector,
                compression=ZstdOptions(page=2, min_objects=2) if compressed else None,
            )
            self.runner.run(self.begin(options))
            self.add_handler(policy, 0.0, 0.0)

        async def begin(self, options: InformerOptions) -> None:
            self.informer = make(self.server, options)
            self.task = asyncio.create_task(self.informer.run())

        @property
        def now(self) -> float:
            return self.runner.get_loop().time()

        # The world

        @rule(name=NAMES)
        def put(self, name: str) -> None:
            self.server.put(name)

        @rule(name=NAMES, again=st.booleans())
        def remove(self, name: str, again: bool) -> None:
            """Delete an object; perhaps make it again at once, with another uid."""
            if name in self.server.objects:
                self.server.remove(name)
            if again:
                self.server.put(name)

        @rule(seconds=st.sampled_from([0.001, 0.4, 3.0, 60.0]))
        def wait(self, seconds: float) -> None:
            self.runner.run(asyncio.sleep(seconds))

        # What goes wrong

        @rule(gone=st.sets(NAMES), made=st.sets(NAMES), lost=st.booleans())
        def change_unseen(self, gone: set[str], made: set[str], lost: bool) -> None:
            """Let the watch break and change things meanwhile; lost, the events are forgotten before it resumes."""
            self.server.break_watches(broken())
            self.server.watch_faults.append(refused())
            self.wait(0.1)
            for name in sorted(gone & {*self.server.objects}):
                self.server.remove(name)
            for name in sorted(made):
                self.server.put(name)
            if lost:
                self.server.compact()

        @rule(fault=st.none() | st.sampled_from([*FAULTS]))
        def end_watch(self, fault: str | None) -> None:
            if fault is None:
                self.server.end_watches()
            else:
                self.server.break_watches(FAULTS[fault]())
            self.wait(0.001)

        @rule(lists=st.booleans(), fault=st.sampled_from([*FAULTS]), times=st.integers(1, 3))
        def refuse(self, lists: bool, fault: str, times: int) -> None:
            faults = self.server.list_faults if lists else self.server.watch_faults
            faults.extend(FAULTS[fault]() for _ in range(times))

        @rule(name=NAMES)
        def delete_what_never_was(self, name: str) -> None:
            """Send the deletion of an object that nobody ever saw."""
            self.server.send(WatchEvent(EventType.DELETED, pod(f"ghost-{name}", self.server.version)))

        @rule(odd=st.booleans())
        def say_nothing_new(self, odd: bool) -> None:
            """Send a bookmark, or an event whose object has no name."""
            if odd:
                self.server.send(WatchEvent(EventType.MODIFIED, nameless(10**9)))
            else:
                self.server.bookmark()

        # Who listens

        @rule(
            policy=st.sampled_from([*BufferPolicy]),
            seconds=st.sampled_from([0.0, 0.3]),
            resync=st.sampled_from([0.0, 7.0]),
        )
        def add_handler(self, policy: BufferPolicy, seconds: float, resync: float) -> None:
            witness = Witness(self.server, merges=policy is BufferPolicy.COALESCING, seconds=seconds)
            options = HandlerOptions(resync_period=resync, buffer=policy, buffer_size=2)
            self.handlers.append((self.runner.run(self.register(witness, options)), witness))

        async def register(self, witness: Witness, options: HandlerOptions) -> Registration:
            return self.informer.add_event_handler(witness, options=options)

        @precondition(lambda self: len(self.handlers) > 1)
        @rule(place=st.integers(0, 10))
        def remove_handler(self, place: int) -> None:
            registration, witness = self.handlers.pop(place % len(self.handlers))
            self.runner.run(self.unregister(registration))
            witness.removed = True
            self.removed.append(witness)

        async def unregister(self, registration: Registration) -> None:
            self.informer.remove_event_handler(registration)

        # What must hold

        @invariant()
        def nobody_complains(self) -> None:
            for witness in (*(witness for _, witness in self.handlers), *self.removed):
                assert not witness.complaints, witness.complaints

        @invariant()
        def never_asks_like_mad(self) -> None:
            asked = len(self.server.asked)
            assert asked <= 16 * (1 + self.now / 0.8), f"{asked} requests in {self.now} s"

        @rule()
        def become_quiet(self) -> None:
            """The server is well and nothing changes: everybody comes to know the same."""
            self.server.list_faults.clear()
            self.server.watch_faults.clear()
            self.wait(QUIET)
            truth = {name: state_of(obj) for name, obj in self.server.objects.items()}
            cached = {obj.name: state_of(obj) for obj in self.informer.lister().list()}
            assert cached == truth, "the cache is not what the server has"
            by_namespace = self.informer.lister().list(namespace="default")
            assert {obj.name for obj in by_namespace} == {*truth}
            for obj in by_namespace:
                assert state_of(Resource.from_json(obj.raw)) == state_of(obj), "the bytes of another one"
            for registration, witness in self.handlers:
                told = {name: state_of(obj) for name, obj in witness.picture.items()}
                assert told == truth, f"{registration.name} knows something else"
                assert registration.has_synced
                assert registration.failures == 0
            self.nobody_complains()

        def teardown(self) -> None:
            try:
                if hasattr(self, "informer"):
                    self.become_quiet()
            finally:
                self.discard()
            assert self.server.opened == self.server.closed, "a watch was left open"

        def discard(self) -> None:
            """Stop everything."""
            if hasattr(self, "task"):
                self.task.cancel()
                self.runner.run(asyncio.wait([self.task]))
            self.runner.close()

    return Machine
