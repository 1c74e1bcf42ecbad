"""Server, relay, client, informer and a handler that writes down everything; and what must hold after any harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from deltaloop import kinds
from deltaloop._internal.pacing import Backoff
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.cache import Informer, InformerFactory, InformerOptions, QueueKind, Reaction, ReflectorOptions
from deltaloop.client import Client, ClientConfig, TlsConfig
from deltaloop.testing import Relay, RelayConnection
from tests.client.authority import Authority
from tests.hostile.scripted_server import ScriptedServer, Stream

_FDS = Path("/proc/self/fd")
# At most: a list whose version is refused, the list at the newest version, a watch, a probe, that watch once more, and
# where lists are streamed one more that is refused.
_REQUESTS_IN_A_ROW = 6


@dataclass(frozen=True)
class Variant:
    """How a scene is set up, beside what its test asks for: over TLS or not, and with which queue."""

    authority: Authority | None = None
    queue: QueueKind = QueueKind.DELTA_FIFO


_VARIANT: ContextVar[Variant] = ContextVar("variant of a scene", default=Variant())  # noqa: B039 - it cannot be changed


@contextmanager
def played_as(variant: Variant) -> Generator[None, None, None]:
    """Set up the scenes within as another variant."""
    token = _VARIANT.set(variant)
    try:
        yield
    finally:
        _VARIANT.reset(token)


@dataclass
class Told:
    """What a handler heard about one key."""

    present: bool = False
    uid: str = ""
    listed: int = 0


@dataclass
class Recorder:
    """Checks per key that (add update* delete)* holds, and that a new uid comes as an update only after a gap."""

    server: ScriptedServer
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    faults: list[str] = field(default_factory=list[str])
    state: dict[str, Told] = field(default_factory=dict[str, Told])

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        told = self._hear("add", obj)
        if told.present:
            self.faults.append(f"{obj.key}: added twice")
        self._keep(told, obj)

    def on_update(self, old: Resource, new: Resource) -> None:
        told = self._hear("update", new)
        if not told.present:
            self.faults.append(f"{new.key}: updated before it was added")
        if new.uid != told.uid and self.server.listed <= told.listed:
            self.faults.append(f"{new.key}: another object without a gap")
        if old.uid != told.uid:
            self.faults.append(f"{new.key}: the old object is not the one told before")
        self._keep(told, new)

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        told = self._hear("delete", obj)
        if not told.present:
            self.faults.append(f"{obj.key}: deleted before it was added")
        told.present = False

    def _hear(self, call: str, obj: Resource) -> Told:
        self.calls.append((call, obj.name))
        return self.state.setdefault(obj.key, Told())

    def _keep(self, told: Told, obj: Resource) -> None:
        told.present, told.uid, told.listed = True, obj.uid, self.server.listed


@dataclass
class Scene:
    """Everything of one test."""

    server: ScriptedServer
    relay: Relay
    informer: Informer[Resource]
    recorder: Recorder
    reactions: list[Reaction]
    backoff: Backoff

    @property
    def watch_connection(self) -> RelayConnection:
        """The connection of the one open watch: the newest one."""
        return self.relay.connections[-1]

    async def stream(self) -> Stream:
        """Wait for an open watch."""
        await self.until(lambda: bool(self.server.streams), "a watch is open")
        return self.server.streams[-1]

    async def until(self, condition: Any, what: str, *, seconds: float = 3600.0) -> None:
        """Wait in virtual time until something holds."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while not condition():
            assert clock() < began + seconds, f"{what}: not within {seconds:g} s"
            await asyncio.sleep(0.1 if clock() < began + 30 else 1.0)

    def is_equal(self) -> bool:
        """Whether the cache is what the server has."""
        return content(self.informer) == {
            name: (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], obj["data"]["value"])
            for name, obj in self.server.objects.items()
        }

    async def settled(self, *, seconds: float = 3600.0) -> None:
        """Wait until cache, handler and server are of one mind, and the informer watches."""
        await self.until(self.is_equal, "the cache equals the server", seconds=seconds)
        await self.until(
            lambda: (
                {key for key, told in self.recorder.state.items() if told.present}
                == {f"default/{name}" for name in self.server.objects}
            ),
            "the handler heard of everything",
            seconds=seconds,
        )
        await self.until(lambda: bool(self.server.streams), "a watch is open")

    async def still_lives(self) -> None:
        """One more change arrives: the pipeline is not merely equal, it works."""
        self.server.put("one-more", str(self.server.version))
        await self.settled()

    def requests_within(self, seconds: float) -> int:
        """The most requests in any stretch of time."""
        times = [asked.at for asked in self.server.asked]
        return max((sum(1 for at in times if start <= at < start + seconds) for start in times), default=0)

    def check_pace(self) -> None:
        """No stretch of time has more requests than the backoff allows, repeats by the client itself included."""
        for seconds in (1.0, 5.0, 30.0, 120.0):
            delay, waited, waits = self.backoff.initial, 0.0, 0
            while waited + delay < seconds:
                waited, waits, delay = waited + delay, waits + 1, min(delay * self.backoff.factor, self.backoff.cap)
            allowed = _REQUESTS_IN_A_ROW * (waits + 1) + seconds
            asked = self.requests_within(seconds)
            assert asked <= allowed, f"{asked} requests within {seconds:g} s; {allowed:g} are allowed"


def content(informer: Informer[Resource]) -> dict[str, tuple[str, str, str]]:
    return {obj.name: (obj.uid, obj.resource_version, value_of(obj)) for obj in informer.indexer.list()}


def value_of(obj: Resource) -> str:
    try:
        return str(obj["data"]["value"])
    except MalformedObjectError:
        return "cannot be read"


InformerOf: TypeAlias = Callable[[Client, InformerOptions], AbstractAsyncContextManager[Informer[Resource]]]


@asynccontextmanager
async def from_factory(client: Client, options: InformerOptions) -> AsyncGenerator[Informer[Resource], None]:
    """Run the informer that a factory makes."""
    async with InformerFactory(client, options=options) as factory:
        yield factory.informer(kinds.CONFIG_MAP)


@asynccontextmanager
async def scene(
    *,
    page_size: int = 0,
    objects: int = 3,
    wait: bool = True,
    watch_list: bool = False,
    informer_of: InformerOf = from_factory,
) -> AsyncGenerator[Scene, None]:
    """Start everything, hand it to the test, then check what must hold after any harm, and that nothing is left.

    ``informer_of`` runs another informer than that of a factory.
    """
    variant = _VARIANT.get()
    authority = variant.authority
    before, tasks = open_files(), asyncio.all_tasks()
    server_side = authority.server_context() if authority else None
    client_side = TlsConfig(ca_data=authority.pem) if authority else TlsConfig()
    async with ScriptedServer(server_side) as server, Relay(server.url) as relay:
        for number in range(objects):
            server.put(f"object-{number}", "first")
        reactions: list[Reaction] = []
        reflector = ReflectorOptions(page_size=page_size, watch_list=watch_list)
        options = InformerOptions(
            queue=variant.queue, reflector=reflector, on_error=reactions.append, random=lambda: 0.5
        )
        async with (
            Client(ClientConfig(server=relay.url, tls=client_side)) as client,
            informer_of(client, options) as informer,
        ):
            recorder = Recorder(server)
            informer.add_event_handler(recorder)
            made = Scene(server, relay, informer, recorder, reactions, Backoff())
            if wait:
                await made.settled()
            yield made
            await made.settled()
            await made.still_lives()
            made.check_pace()
            assert not recorder.faults, recorder.faults
        relay.clear()
        await until_closed(relay, server)
    assert open_files() == before, "sockets are left open"
    assert asyncio.all_tasks() == tasks, "tasks are left running"


async def until_closed(relay: Relay, server: ScriptedServer) -> None:
    """The client has closed everything: so must the relay and the server see it."""
    for _ in range(100):
        if not relay.connections and not server.open_connections:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"connections are left: {relay!r}, {server.open_connections} at the server")


def open_files() -> int:
    """How many files and sockets this process has open; 0 where the system does not tell."""
    return sum(1 for _ in _FDS.iterdir()) if _FDS.exists() else 0
