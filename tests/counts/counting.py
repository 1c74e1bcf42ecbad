"""Count the calls of the library on its hot path. The counts do not depend on the speed of the machine.

The program under test and an API server that answers at once (the one of ``lab.bench.controller``) share one event loop
in virtual time and talk over TLS on loopback. The profiler counts the calls of the program: those of deltaloop, of
asyncio and of every other library. It leaves out the server, the driver of the measurement and the virtual loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import ssl
import sys
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, final

import msgspec
import trustme
from lab.bench.controller.objects import NAMESPACE, is_right
from lab.bench.controller.programs.deltaloop_operator import main as controller
from lab.bench.controller.server import Connection, Store
from lab.bench.simulation import database, small

import deltaloop as dl
from deltaloop.cache import HandlerFuncs
from deltaloop.client import Client
from deltaloop.simulation import Simulation
from deltaloop.simulation.simulator import Scenario
from deltaloop.testing.deterministic_loop.virtual_loop import run_virtual

_OBJECTS: Final = 100  # each of which changes once while calls are counted
_PUTS: Final = 50
_SETTLED: Final = 2.0  # virtual seconds
_HANDLE: Final[CodeType] = asyncio.Handle._run.__code__
_UNCOUNTED_FILES: Final = ("/deltaloop/testing/deterministic_loop/", "/tests/counts/")
_apart: Final = ContextVar("_apart", default=False)  # whether code belongs to the server or the driver

Numbers = dict[str, float]


@final
class CallCounter:
    """Counter of calls in the current thread, except those of the server and the driver.

    Attributes:
        python: Calls of Python functions, resumptions of coroutines included.
        c: Calls of C functions.
        decodes: JSON decodes.
        handles: Callbacks that the event loop ran.
    """

    def __init__(self, *, everything: bool = False) -> None:
        """Start at zero.

        Args:
            everything: Whether to count the calls of the server, the driver and the virtual loop, too.
        """
        self.python = self.c = self.decodes = self.handles = 0
        self._everything = everything
        self._of_another = False  # whether the running callback belongs to the server or the driver
        self._uncounted: dict[CodeType, bool] = {}

    @contextlib.contextmanager
    def counting(self) -> Generator[None]:
        """Count the calls in this block."""
        gc.collect()
        gc.disable()
        self._of_another = not self._everything
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()

    def per(self, number: int) -> Numbers:
        """Return the counts, divided by a number of operations."""
        counts = {"python": self.python, "c": self.c, "decodes": self.decodes, "handles": self.handles}
        return {name: round(count / number, 3) for name, count in counts.items()}

    def _count(self, frame: FrameType, event: str, function: Any) -> None:
        code = frame.f_code
        if code is _HANDLE:
            if event == "call":
                if not self._everything:
                    self._of_another = frame.f_locals["self"]._context.get(_apart, False)
                self.handles += not self._of_another
            elif event == "return" and not self._everything:
                self._of_another = True
        if self._of_another or (not self._everything and self._is_uncounted(code)):
            return
        if event == "call":
            self.python += 1
        elif event == "c_call":
            self.c += 1
            if function.__name__ == "decode" and isinstance(function.__self__, msgspec.json.Decoder):
                self.decodes += 1

    def _is_uncounted(self, code: CodeType) -> bool:
        found = self._uncounted.get(code)
        if found is None:
            found = any(name in code.co_filename for name in _UNCOUNTED_FILES)
            self._uncounted[code] = found
        return found


@dataclass(frozen=True, slots=True)
class _Server:
    store: Store
    kubeconfig: Path

    def client(self) -> contextlib.AbstractAsyncContextManager[Client]:
        """Connect a client to the server."""
        return dl.connect(kubeconfig=self.kubeconfig)

    def write_all(self, message: str) -> None:
        """Write a message into all Greetings."""
        self.store.runner(f"/bench/{'change' if self.store.greetings.objects else 'seed'}", _query(message))

    async def done(self) -> None:
        """Wait until every status is written and all writes have come back. Work takes no virtual time."""
        await asyncio.sleep(_SETTLED)
        assert all(is_right(each) for each in self.store.greetings.objects.values()), "a status must repeat the message"


def _query(message: str) -> dict[str, str]:
    return {"objects": str(_OBJECTS), "message": message}


@contextlib.asynccontextmanager
async def _serving() -> AsyncGenerator[_Server]:
    """Serve on the current loop; the context of the caller is that of code that is not counted."""
    store = Store()
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.set_alpn_protocols(["http/1.1"])
    pair = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem
    with pair.tempfile() as file:
        tls.load_cert_chain(file)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(store), "127.0.0.1", 0, ssl=tls)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "counts",
        "clusters": [
            {
                "name": "counts",
                "cluster": {
                    "server": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}",
                    "certificate-authority-data": b64encode(authority.cert_pem.bytes()).decode(),
                },
            }
        ],
        "users": [{"name": "counts", "user": {"token": "any"}}],
        "contexts": [{"name": "counts", "context": {"cluster": "counts", "user": "counts"}}],
    }
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        kubeconfig.chmod(0o600)
        async with server:
            yield _Server(store, kubeconfig)


@contextlib.asynccontextmanager
async def _running(program: Coroutine[Any, Any, object]) -> AsyncGenerator[None]:
    """Run a program whose calls are counted, and cancel it at the end."""
    task = asyncio.create_task(program, context=Context())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


# -- operations


async def _change(server: _Server) -> Numbers:
    """Change all Greetings at once: for each three watch events, two reconciles, a PUT and a PATCH."""
    return await _changes(server, server.write_all)


async def _single_change(server: _Server) -> Numbers:
    """Change one Greeting after another, so that each event arrives alone."""

    async def write(message: str) -> None:
        for name in [*server.store.greetings.objects]:
            server.store.greetings.patch(name, {"spec": {"message": message}}, part="", creates=False)
            await asyncio.sleep(_SETTLED)

    return await _changes(server, write)


async def _changes(server: _Server, write: Callable[[str], Awaitable[None] | None]) -> Numbers:
    counter = CallCounter()
    server.write_all("first")
    os.environ |= {"KUBECONFIG": str(server.kubeconfig)}
    async with _running(controller()):
        await server.done()
        server.write_all("second")  # values that are computed once are computed by now
        await server.done()
        server.store.requests.clear()
        with counter.counting():
            if (writing := write("third")) is not None:
                await writing
            await server.done()
        asked = dict(server.store.requests)
    least = {"update configmaps": _OBJECTS, "patch greetings/status": _OBJECTS}
    assert asked == least, f"the controller must send {least}, got {asked}"
    return counter.per(_OBJECTS)


async def _restart(server: _Server) -> Numbers:
    """Start a controller whose objects are already correct: for each two listed objects and one reconcile."""
    server.write_all("first")
    os.environ |= {"KUBECONFIG": str(server.kubeconfig)}
    counter, asked = CallCounter(), server.store.requests
    for start in range(3):
        asked = server.store.requests.copy()
        with counter.counting() if start == 2 else contextlib.nullcontext():
            async with _running(controller()):
                await server.done()
    assert not any(verb.startswith(("update", "patch")) for verb in server.store.requests - asked)
    return counter.per(_OBJECTS)


async def _event(server: _Server) -> Numbers:
    """Deliver one event of a watch to one handler of an informer."""
    counter, seen = CallCounter(), list[str]()
    server.write_all("first")
    greetings = dl.ResourceType[dl.Resource]("bench.deltaloop.dev", "v1", "Greeting", "greetings")

    async def informer() -> None:
        async with server.client() as client, dl.InformerFactory(client) as informers:
            handler = HandlerFuncs[dl.Resource](on_update=lambda _, new: seen.append(new.name))
            informers.informer(greetings).add_event_handler(handler)
            await asyncio.Event().wait()

    async with _running(informer()):
        await asyncio.sleep(_SETTLED)
        server.write_all("second")
        await asyncio.sleep(_SETTLED)
        seen.clear()
        with counter.counting():
            server.write_all("third")
            await asyncio.sleep(_SETTLED)
    assert len(seen) == _OBJECTS, f"the handler must see {_OBJECTS} updates, got {len(seen)}"
    return counter.per(_OBJECTS)


async def _put(server: _Server) -> Numbers:
    """Replace one object, with a client that has a connection already."""
    counter, ready, go, done = CallCounter(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def puts() -> None:
        async with server.client() as client:
            stored = await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": "a", "namespace": NAMESPACE}})
            for number in range(_PUTS + 2):
                if number == 2:
                    ready.set()
                    await go.wait()
                metadata = {"name": "a", "namespace": NAMESPACE, "resourceVersion": stored.resource_version}
                changed: dict[str, Any] = {"metadata": metadata, "data": {"x": str(number)}}
                stored = await client.update(dl.kinds.CONFIG_MAP, changed)
            done.set()

    async with _running(puts()):
        await ready.wait()
        with counter.counting():
            go.set()
            await done.wait()
    return counter.per(_PUTS)


def _schedule(scenario: Scenario) -> Numbers:
    """Run a scenario without faults, the embedded server and the simulator included."""
    simulation = Simulation(scenario)
    for _ in range(3):
        simulation.run()
    counter = CallCounter(everything=True)
    with counter.counting():
        simulation.run()
    return counter.per(1)


def measure() -> dict[str, Numbers]:
    """Return the counts of all operations, by name."""
    found: dict[str, Numbers] = {}
    for name, operation in (
        ("change", _change),
        ("single change", _single_change),
        ("restart", _restart),
        ("informer event", _event),
        ("plain PUT", _put),
    ):
        found[name] = run_virtual(_measured(operation))
    for name, scenario in (("small schedule", small()), ("Database schedule", database())):
        found[name] = _schedule(scenario)
    return found


async def _measured(operation: Callable[[_Server], Awaitable[Numbers]]) -> Numbers:
    _apart.set(True)
    async with _serving() as server:
        return await operation(server)
