"""``--processes M``: a supervisor starts members of one sharded program on this machine, and serves their pages."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import urlencode

import msgspec

from deltaloop.client import connect
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.core.merged_pages import merged_documents, merged_metrics
from deltaloop.runtime.core.readiness import Check
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.options import RunOptionError, RunOptions, metrics_address
from deltaloop.runtime.program.pages import HttpPage, LocalRoute, Route
from deltaloop.runtime.program.webhooks import ProgramWebhooks

if TYPE_CHECKING:
    from deltaloop.runtime.program.manager import Manager

_log: Final = logging.getLogger("deltaloop.runtime")
_VARIABLE: Final = "DELTALOOP_PROCESS"
_LOCAL: Final = "127.0.0.1:0"
_PAUSE: Final = 1.0
"""Time in seconds before a member that ended is started again."""
_PATIENCE: Final = 5.0
_TIMEOUT: Final = 5.0
_POLL: Final = 0.05
_MOST: Final = 64 * 2**20


class _Start(msgspec.Struct):
    number: int
    socket: int
    kubeconfig: str = ""


@final
class MemberProcess:
    def __init__(self, start: _Start) -> None:
        self._start = start

    def options(self, options: RunOptions) -> RunOptions:
        """Return the options of this member: pages at free local ports, and webhooks in the first process only."""
        own = replace(
            options,
            health_probe_bind_address=_LOCAL,
            metrics_bind_address="0" if metrics_address(options) is None else _LOCAL,
            metrics_cert=None,
            metrics_key=None,
            metrics_token_review=False,
            webhook_bind_address="0" if self._start.number else options.webhook_bind_address,
            identity=None if options.identity is None else f"{options.identity}-{self._start.number}",
        )
        if self._start.kubeconfig:
            own = replace(own, embedded=False, load=(), write_kubeconfig=None, kubeconfig=self._start.kubeconfig)
        return own

    def follow(self, manager: Manager) -> Callable[[], Awaitable[None]]:
        """Report the ports of a manager when it listens, stop it with the supervisor, and return the end of both."""
        task = asyncio.create_task(self._follow(manager), name="member process")

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        return end

    async def _follow(self, manager: Manager) -> None:
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=self._start.socket))
        try:
            while not manager.servers or not all(each.port for each in manager.servers.values()):  # noqa: ASYNC110 - no event
                await asyncio.sleep(_POLL)
            ports = {name: server.port for name, server in manager.servers.items()}
            writer.write(json.dumps(ports).encode() + b"\n")
            await reader.read()
            manager.stop()
        finally:
            writer.close()


def this_process() -> MemberProcess | None:
    """Return this process as a member, or None in the supervisor."""
    text = os.environ.pop(_VARIABLE, "")
    return MemberProcess(msgspec.json.decode(text, type=_Start)) if text else None


async def supervise(
    options: RunOptions,
    controllers: Sequence[Controller],
    webhooks: ProgramWebhooks,
    definitions: Sequence[dict[str, Any]],
) -> None:
    """Run the members until SIGINT, SIGTERM or a cancellation, and start each again that ends."""
    if options.embedded and webhooks.webhooks:
        raise RunOptionError("{embedded} serves no webhooks of several {processes}. Omit {processes}.")
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        kubeconfig, client = "", None
        load: Callable[[], Awaitable[None]] = _nothing
        if options.embedded:
            from deltaloop.client import ClientOptions
            from deltaloop.runtime.program.embedded import embedded_cluster

            folder = stack.enter_context(TemporaryDirectory(prefix="deltaloop-"))
            kubeconfig = str(options.write_kubeconfig or Path(folder) / "kubeconfig")
            own = replace(options, write_kubeconfig=kubeconfig)
            cluster = embedded_cluster(own, controllers, webhooks, definitions, ClientOptions())
            client, load = await stack.enter_async_context(cluster)
        elif options.metrics_token_review:
            client = await stack.enter_async_context(
                connect(kubeconfig=options.kubeconfig, context=options.context or None)
            )
        members = [_Supervised(number, kubeconfig) for number in range(options.processes)]
        await stack.enter_async_context(_servers(options, members, client))
        await stack.enter_async_context(_signals(stop))
        await load()
        tasks = [asyncio.create_task(each.run(stop, options.shutdown_timeout)) for each in members]
        try:
            await asyncio.gather(*tasks)
        finally:
            stop.set()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _nothing() -> None:
    """The cluster already has its objects."""


@asynccontextmanager
async def _signals(stop: asyncio.Event) -> AsyncGenerator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _servers(options: RunOptions, members: Sequence[_Supervised], client: Any) -> AsyncGenerator[None]:
    """Serve the pages of all members at the addresses of the program."""
    from deltaloop.runtime.program.health_pages import DOCTOR_PATH, EXPLAIN_PATH, probe
    from deltaloop.runtime.program.health_server import HealthServer
    from deltaloop.runtime.program.token_reviews import review_tokens

    health, metrics = BindAddress.parse(options.health_probe_bind_address), metrics_address(options)
    may_get = None if client is None else review_tokens(client)
    async with AsyncExitStack() as stack:
        if health is not None:
            routes: dict[str, Route] = {
                "/healthz": _checks_of("healthz", members, probe),
                "/readyz": _checks_of("readyz", members, probe),
                EXPLAIN_PATH: LocalRoute(_documents_of(EXPLAIN_PATH, members)),
                DOCTOR_PATH: LocalRoute(_documents_of(DOCTOR_PATH, members)),
            }
            await stack.enter_async_context(HealthServer(health, routes))
        if metrics is not None:
            routes = {"/metrics": _metrics_of(members)}
            await stack.enter_async_context(HealthServer(metrics, routes, may_get=may_get))
        yield


def _checks_of(
    name: str, members: Sequence[_Supervised], probe: Callable[[Callable[[], tuple[Check, ...]]], Route]
) -> Route:
    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        answers = await asyncio.gather(*(each.get("health", f"/{name}?verbose") for each in members))
        checks = tuple(
            Check(name=f"process-{each.number}", ok=status == 200, message=_failures(body))
            for each, (status, body) in zip(members, answers, strict=True)
        )
        return await probe(lambda: checks)(rest, query)

    return route


def _failures(body: bytes) -> str:
    failed = [line[3:] for line in body.decode(errors="replace").splitlines() if line.startswith("[-]")]
    return ", ".join(failed)


def _documents_of(path: str, members: Sequence[_Supervised]) -> Route:
    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        asked = f"{path}{f'/{rest}' if rest else ''}?{urlencode(query, doseq=True)}"
        answers = await asyncio.gather(*(each.get("health", asked) for each in members))
        status, body = merged_documents(answers)
        return HttpPage(body, "application/json" if body.startswith(b"{") else "text/plain", status=status)

    return route


def _metrics_of(members: Sequence[_Supervised]) -> Route:
    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        del rest, query
        answers = await asyncio.gather(*(each.get("metrics", "/metrics") for each in members))
        pages = {str(each.number): body for each, (status, body) in zip(members, answers, strict=True) if status == 200}
        return HttpPage(merged_metrics(pages), "text/plain; version=0.0.4; charset=utf-8")

    return route


@final
class _Supervised:
    """One member, which is started again when it ends."""

    def __init__(self, number: int, kubeconfig: str) -> None:
        self.number = number
        self._kubeconfig = kubeconfig
        self._ports: dict[str, int] = {}

    async def run(self, stop: asyncio.Event, patience: float) -> None:
        while not stop.is_set():
            code = await self._run_once(stop, patience)
            if stop.is_set():
                return
            _log.error("a member process ended, starting it again", extra={"member": self.number, "exit_code": code})
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({stopping}, timeout=_PAUSE)
            stopping.cancel()

    async def _run_once(self, stop: asyncio.Event, patience: float) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            start = _Start(self.number, theirs.fileno(), self._kubeconfig)
            environment = {**os.environ, _VARIABLE: msgspec.json.encode(start).decode()}
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *sys.orig_argv[1:],
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # a terminal sends its signals to the supervisor only
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        reading = asyncio.create_task(self._read_ports(reader))
        ended, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, stopping):
                task.cancel()
            if not ended.done():
                process.terminate()
                await asyncio.wait({ended}, timeout=patience + _PATIENCE)
            if not ended.done():
                process.kill()
            writer.close()
            self._ports = {}
        return await ended

    async def _read_ports(self, reader: asyncio.StreamReader) -> None:
        self._ports = json.loads(await reader.readline() or b"{}")

    async def get(self, server: str, path: str) -> tuple[int, bytes]:
        """Request a page, and return its status and body; without an answer, the status is 503."""
        port = self._ports.get(server)
        if port is None:
            return 503, b"[-]process does not listen\n"
        try:
            async with asyncio.timeout(_TIMEOUT):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MOST)
                try:
                    writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                    answer = await reader.read(_MOST)
                    while part := await reader.read(_MOST):
                        answer += part
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return 503, b"[-]process does not answer\n"
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(None, 2)[1]), body
