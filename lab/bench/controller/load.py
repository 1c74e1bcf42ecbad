"""What the runner does to a server: it makes objects, changes them, and sees from outside when an operator is done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final, final

import aiohttp
import msgspec

from lab.bench.controller.objects import CONFIG_MAPS, DEFINITION, GREETINGS, greeting, mistake, name_of
from lab.bench.controller.server import RUNNER
from lab.bench.controller.servers import EMBEDDED, Server, counted

_WRITERS: Final = 16
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class _Spec(msgspec.Struct):
    message: str


class _Status(msgspec.Struct):
    message: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Greeting(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[_Greeting]


class _Event(msgspec.Struct):
    object: _Greeting


_LISTS: Final = msgspec.json.Decoder(_List)
_EVENTS: Final = msgspec.json.Decoder(_Event)


@final
class Load:
    """The runner's own client; what it asks for is not in what an operator is counted."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        """Made by ``connect``."""
        self._server = server
        self._session = session
        self._own: Counter[str] = Counter()
        self._wanted: dict[str, str] = {}
        self._missing: set[str] = set()
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def _ask(self, method: str, path: str, what: str, *, body: object = None) -> bytes:
        self._own[what] += 1
        headers = _MERGE if method == "PATCH" else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        async with self._session.request(method, path, data=data, headers=headers) as answer:
            text = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path} was answered with {answer.status}: {text[:300]!r}")
            return text

    async def prepare(self) -> None:
        """Have the kind served."""
        if self._server.replayed:
            return
        await self._ask("POST", _CRDS, "create customresourcedefinitions", body=DEFINITION)
        for _ in range(600):
            with contextlib.suppress(RuntimeError):
                await self._ask("GET", f"{GREETINGS}?limit=1", "list greetings")
                return
            await asyncio.sleep(0.05)
        raise RuntimeError("the kind is not served after 30 s")

    async def requests(self) -> Counter[str]:
        """Return what operators have asked for until now, by verb and resource, and their conflicts."""
        if self._server.replayed:
            return Counter(json.loads(await self._ask("GET", "/bench/requests", "")))
        if self._server.name == EMBEDDED:
            return Counter()  # it does not count
        found = counted((await self._ask("GET", "/metrics", "")).decode())
        found.subtract({what: number for what, number in self._own.items() if what.endswith(("greetings", "maps"))})
        return found

    async def seed(self, objects: int, message: str) -> None:
        """Make all objects."""
        self._expect(range(objects), message)
        if self._server.replayed:
            await self._ask("GET", f"/bench/seed?objects={objects}&message={message}", "")
            return
        bodies = ((GREETINGS, greeting(number, message)) for number in range(objects))
        await self._all("POST", "create greetings", bodies)

    async def change(self, objects: int, message: str) -> None:
        """Change all specs."""
        self._expect(range(objects), message)
        if self._server.replayed:
            await self._ask("GET", f"/bench/change?objects={objects}&message={message}", "")
            return
        body = {"spec": {"message": message}}
        bodies = ((f"{GREETINGS}/{name_of(number)}", body) for number in range(objects))
        await self._all("PATCH", "patch greetings", bodies)

    async def single(self, number: int, message: str, *, limit: float) -> float:
        """Change one spec; return the seconds from before the write until the status is seen."""
        self._expect([number], message)
        began = time.perf_counter()
        await self._ask(
            "PATCH", f"{GREETINGS}/{name_of(number)}", "patch greetings", body={"spec": {"message": message}}
        )
        await self.done(limit)
        return time.perf_counter() - began

    async def _all(self, method: str, what: str, bodies: Iterable[tuple[str, object]]) -> None:
        left = iter(bodies)

        async def write() -> None:
            for path, body in left:
                await self._ask(method, path, what, body=body)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(write())

    def _expect(self, numbers: Iterable[int], message: str) -> None:
        names = [name_of(number) for number in numbers]
        self._wanted.update(dict.fromkeys(names, message))
        self._missing.update(names)

    async def done(self, limit: float) -> None:
        """Wait until every status that is watched repeats what was asked for.

        Raises:
            RuntimeError: Some do not, after ``limit`` seconds.
        """
        try:
            async with asyncio.timeout(limit):
                while self._missing:
                    self._changed.clear()
                    if self._watching is not None and self._watching.done():
                        self._watching.result()  # raises
                    await self._changed.wait()
        except TimeoutError:
            first = min(self._missing)
            raise RuntimeError(
                f"{len(self._missing)} statuses are missing after {limit:.0f} s, {first} first"
            ) from None

    async def verify(self) -> None:
        """Look at everything by lists.

        Raises:
            RuntimeError: An object has not what it should.
        """
        lists = [(GREETINGS, "list greetings"), (CONFIG_MAPS, "list configmaps")]
        found: list[list[dict[str, Any]]] = [
            msgspec.json.decode(await self._ask("GET", path, what))["items"] for path, what in lists
        ]
        messages = {each["metadata"]["name"]: each["spec"]["message"] for each in found[0]}
        wrong = mistake(*found) if messages == self._wanted else "the specs are not those that were written"
        if wrong:
            raise RuntimeError(wrong)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Follow the statuses until the block ends; what ends that before is raised by ``done``."""
        self._watching = asyncio.create_task(self._watch())
        self._watching.add_done_callback(lambda _: self._changed.set())
        try:
            yield
        finally:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        """Follow the statuses: list, watch, and begin again where the server ends a watch, as a busy one does."""
        while True:
            listed = _LISTS.decode(await self._ask("GET", GREETINGS, "list greetings"))
            for each in listed.items:
                self._see(each)
            path = f"{GREETINGS}?watch=1&resourceVersion={listed.metadata.resource_version}"
            async with self._session.get(path, read_bufsize=1 << 20) as stream:
                rest = b""
                async for part in stream.content.iter_any():
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        self._see(_EVENTS.decode(line).object)

    def _see(self, obj: _Greeting) -> None:
        name = obj.metadata.name
        if obj.spec is None or obj.status is None or obj.status.message != self._wanted.get(name):
            return
        if obj.spec.message == obj.status.message:
            self._missing.discard(name)
            if not self._missing:
                self._changed.set()


@contextlib.asynccontextmanager
async def connect(server: Server) -> AsyncGenerator[Load]:
    """Open the runner's client, with its watch."""
    config = server.config()
    headers = {
        "Authorization": f"Bearer {config['users'][0]['user']['token']}",
        "User-Agent": RUNNER.decode(),
    }
    async with aiohttp.ClientSession(
        config["clusters"][0]["cluster"]["server"],
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0, ssl=server.context()),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        load = Load(server, session)
        await load.prepare()
        async with load.watching():
            yield load
