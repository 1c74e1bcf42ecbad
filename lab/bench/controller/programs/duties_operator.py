"""The benchmark's job on a straight path, with the duties of a real runtime, each in its cheapest form.

The duties: objects with their received bytes and a view that is decoded on use; causes for each key, bounded; own
writes laid over the store, and their echoes labelled; writes of which the outcome is unknown; a fence and a permission
check before each write; a deadline for each request, by one timer; histograms of the queue, of reconciles and of
requests; a count of the writes of each key; and generic ``create_or_update`` and ``status``.

It has no retries, priorities, conditions, finalizers or children. It is a yardstick, not a runtime.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from bisect import bisect
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, final

import msgspec

from deltaloop.api.json_values import copied, is_mapping
from lab.bench.controller.programs.anchor_objects import (
    CONFIG_MAPS,
    GREETINGS,
    MERGE,
    WORKERS,
    Metadata,
    decode_event,
    decode_fields,
    decode_head,
    encode,
    owner_reference,
)
from lab.bench.controller.programs.plain_http import PlainClient

Key = tuple[str, str]
Fields = dict[str, Any]

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MOST_CAUSES: Final = 16
_MOST_ECHOES: Final = 5000
_REQUEST_TIMEOUT: Final = 30.0
_PERMISSIONS: Final = frozenset(
    {
        ("Greeting", "get"),
        ("Greeting", "patch"),
        ("ConfigMap", "get"),
        ("ConfigMap", "create"),
        ("ConfigMap", "update"),
    }
)
_logger: Final = logging.getLogger("duties")


@final
class Resource:
    """An object with its received bytes."""

    __slots__ = ("_view", "metadata", "raw", "version")

    def __init__(self, raw: bytes, metadata: Metadata) -> None:
        """Decode nothing yet."""
        self.raw = raw
        self.metadata = metadata
        self.version = int(metadata.resource_version)
        self._view: Fields | None = None

    @property
    def view(self) -> Fields:
        """All fields, to read."""
        if self._view is None:
            self._view = decode_fields(self.raw)
        return self._view

    def edit(self) -> Fields:
        """Return a copy to change."""
        return decode_fields(self.raw)


Store = dict[Key, Resource]


class Request(msgspec.Struct, frozen=True):
    """The object to reconcile."""

    namespace: str
    name: str


class Cause(msgspec.Struct, frozen=True, gc=False):
    """A reason why a key was queued."""

    source: str
    event: str
    kind: str
    key: Key
    version: str
    at: float
    own: str


@final
class Histogram:
    """Durations in seconds."""

    __slots__ = ("buckets", "count", "sum")

    def __init__(self) -> None:
        """Begin at zero."""
        self.count, self.sum, self.buckets = 0, 0.0, [0] * (len(_BOUNDS) + 1)

    def observe(self, seconds: float) -> None:
        """Add a duration."""
        self.count += 1
        self.sum += seconds
        self.buckets[bisect(_BOUNDS, seconds)] += 1


@final
class Deadlines:
    """The deadlines of all requests, watched by one timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch nothing."""
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self.waiting: dict[asyncio.Future[tuple[int, bytes]], float] = {}

    def start(self, answer: asyncio.Future[tuple[int, bytes]]) -> None:
        """Fail a request when its time is over."""
        self.waiting[answer] = self._loop.time() + _REQUEST_TIMEOUT
        if self._timer is None:
            self._timer = self._loop.call_later(1.0, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        for answer in [answer for answer, at in self.waiting.items() if at <= now]:
            del self.waiting[answer]
            if not answer.done():
                answer.set_exception(TimeoutError())
        self._timer = self._loop.call_later(1.0, self._look) if self.waiting else None


def merge_patch(before: Fields, after: Fields) -> Fields:
    """Return the patch that makes one object of another."""
    patch: Fields = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if is_mapping(value) and is_mapping(known):
            below = merge_patch(known, value)
            if below:
                patch[name] = below
        elif value != known:
            patch[name] = value
    return patch


class Context:
    """What one reconcile may use."""

    __slots__ = ("_runtime", "attempt", "causes", "request", "writes")

    def __init__(self, runtime: Runtime, request: Request, causes: list[Cause], attempt: int) -> None:
        """Belong to one reconcile."""
        self._runtime, self.request, self.causes, self.attempt = runtime, request, causes, attempt
        self.writes: list[tuple[str, Key, int]] = []

    def find(self, kind: str, name: str) -> Resource | None:
        """Return an object of the request's namespace, own writes included."""
        self._runtime.check(kind, "get")
        return self._runtime.stores[kind].get((self.request.namespace, name))

    async def create_or_update(self, kind: str, name: str, mutate: Callable[[Fields], object]) -> None:
        """Create an object, or change it if the function changes anything."""
        namespace = self.request.namespace
        path = f"{CONFIG_MAPS}/namespaces/{namespace}/configmaps"
        found = self.find(kind, name)
        if found is None:
            fields: Fields = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
            mutate(fields)
            await self._write(kind, "create", b"POST", path, fields, (namespace, name))
            return
        fields = found.edit()
        mutate(fields)
        if fields != found.view:
            await self._write(kind, "update", b"PUT", f"{path}/{name}", fields, (namespace, name))

    @asynccontextmanager
    async def status(self, obj: Resource) -> AsyncGenerator[Fields]:
        """Patch the status of a Greeting with the changes that the block makes."""
        before: Fields = obj.view.get("status") or {}
        wanted: Fields = copied(before)
        yield wanted
        patch = merge_patch(before, wanted)
        if patch:
            namespace, name = key = obj.metadata.key
            path = f"{GREETINGS}/namespaces/{namespace}/greetings/{name}/status"
            await self._write("Greeting", "patch", b"PATCH", path, {"status": patch}, key, MERGE)

    async def _write(
        self,
        kind: str,
        verb: str,
        method: bytes,
        path: str,
        fields: Fields,
        key: Key,
        content_type: bytes = b"application/json",
    ) -> None:
        runtime, began = self._runtime, time.monotonic()
        if runtime.fenced:
            raise RuntimeError("this process does not lead any more")
        runtime.check(kind, verb)
        runtime.uncertain[key] = verb
        raw = await runtime.ask(method, path, encode(fields), content_type)
        del runtime.uncertain[key]
        written = Resource(raw, decode_head(raw).metadata)
        if len(runtime.echoes) > _MOST_ECHOES:
            runtime.echoes.clear()
        runtime.echoes[key, written.version] = verb
        self.writes.append((verb, key, written.version))
        runtime.keep(kind, key, written)
        runtime.requests.setdefault(verb, Histogram()).observe(time.monotonic() - began)


@final
class Runtime:
    """Watches, the queue and the workers."""

    def __init__(self) -> None:
        """Know of no objects."""
        self._loop = asyncio.get_running_loop()
        self._client = PlainClient()
        self._deadlines = Deadlines(self._loop)
        self.stores: dict[str, Store] = {"Greeting": {}, "ConfigMap": {}}
        self.fenced: bool = False
        self.uncertain: dict[Key, str] = {}
        self.echoes: dict[tuple[Key, int], str] = {}
        self.requests: dict[str, Histogram] = {}
        self._waits, self._durations, self._results = Histogram(), Histogram(), Counter[str]()
        self._queue: deque[Key] = deque()
        self._causes: dict[Key, list[Cause]] = {}
        self._running: dict[Key, Context] = {}
        self._failures: dict[Key, int] = {}
        self._hot: Counter[Key] = Counter()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._unsynced = 2
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Run until the process is told to end."""
        stopped = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGTERM, stopped.set)
        await self._client.watch(f"{GREETINGS}/greetings", lambda line: self._on_event(line, "Greeting"))
        await self._client.watch(f"{CONFIG_MAPS}/configmaps", lambda line: self._on_event(line, "ConfigMap"))
        await self._synced.wait()
        workers = [asyncio.create_task(self._work()) for _ in range(WORKERS)]
        await stopped.wait()
        self.fenced = True
        for worker in workers:
            worker.cancel()

    def check(self, kind: str, verb: str) -> None:
        """Reject a verb that the controller did not declare."""
        if (kind, verb) not in _PERMISSIONS:
            raise PermissionError(f"the controller does not declare {verb} of {kind}")

    async def ask(self, method: bytes, path: str, body: bytes, content_type: bytes) -> bytes:
        """Send a request with a deadline and return the body of its answer."""
        answer = await self._client.sent(method, path, body, content_type)
        self._deadlines.start(answer)
        try:
            status, content = await answer
        finally:
            self._deadlines.waiting.pop(answer, None)
        if status >= 300:
            raise ConnectionError(f"{method.decode()} {path}: {status} {content[:200]!r}")
        return content

    def keep(self, kind: str, key: Key, obj: Resource) -> None:
        """Keep an object unless the store has a newer one."""
        store = self.stores[kind]
        before = store.get(key)
        if before is None or before.version < obj.version:
            store[key] = obj

    # -- watches

    def _on_event(self, line: bytes, kind: str) -> None:
        event = decode_event(line)
        if event.type == "BOOKMARK":
            self._unsynced -= 1
            if self._unsynced == 0:
                self._synced.set()
            return
        raw = bytes(event.object)
        metadata = decode_head(raw).metadata
        obj, key = Resource(raw, metadata), metadata.key
        self.keep(kind, key, obj)
        own = self.echoes.pop((key, obj.version), "")
        now = self._loop.time()
        if kind == "Greeting":
            self._add(key, Cause("informer", event.type, kind, key, metadata.resource_version, now, own))
            return
        for owner in metadata.owner_references:
            if owner.controller and owner.kind == "Greeting":
                cause = Cause("owner", event.type, kind, key, metadata.resource_version, now, own)
                self._add((metadata.namespace, owner.name), cause)

    # -- the queue

    def _add(self, key: Key, cause: Cause) -> None:
        causes = self._causes.get(key)
        if causes is not None:
            if len(causes) < _MOST_CAUSES:
                causes.append(cause)
            return
        self._causes[key] = [cause]
        if key not in self._running:
            self._queue.append(key)
            if self._idle:
                self._idle.popleft().set_result(None)

    async def _work(self) -> None:
        while True:
            while not self._queue:
                idle: asyncio.Future[None] = self._loop.create_future()
                self._idle.append(idle)
                await idle
            key = self._queue.popleft()
            await self._run(key, self._causes.pop(key))

    async def _run(self, key: Key, causes: list[Cause]) -> None:
        began = self._loop.time()
        self._waits.observe(began - causes[0].at)
        request = Request(*key)
        context = self._running[key] = Context(self, request, causes, self._failures.get(key, 0))
        try:
            await reconcile(request, context)
        except Exception:
            self._failures[key] = context.attempt + 1
            self._results["error"] += 1
            _logger.exception("reconcile failed")
        else:
            self._failures.pop(key, None)
            self._results["success"] += 1
        finally:
            del self._running[key]
            self._durations.observe(self._loop.time() - began)
            if context.writes:
                self._hot[key] += 1
            if key in self._causes:
                self._queue.append(key)


# -- the job


async def reconcile(request: Request, context: Context) -> None:
    """Make the ConfigMap and the status of one Greeting."""
    greeting = context.find("Greeting", request.name)
    if greeting is None:
        return
    message: str = greeting.view["spec"]["message"]

    def wanted(config_map: Fields) -> None:
        reference = owner_reference(greeting.metadata.name, greeting.metadata.uid)
        owners: list[Fields] = config_map["metadata"].setdefault("ownerReferences", [])
        for number, owner in enumerate(owners):
            if owner["uid"] == reference["uid"]:
                owners[number] = reference
                break
        else:
            owners.append(reference)
        config_map["data"] = {"message": message}

    await context.create_or_update("ConfigMap", request.name, wanted)
    async with context.status(greeting) as status:
        status["message"] = message


async def main() -> None:
    """Run the operator."""
    await Runtime().run()


if __name__ == "__main__":
    asyncio.run(main())
