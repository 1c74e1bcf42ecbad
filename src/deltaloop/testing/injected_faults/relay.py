"""TCP relay on loopback that injects network faults; ``core/relay.py`` explains the faults.

    client ──▶ Relay ──▶ server        relay.inject(Stall())            # all open connections, now
                                       relay.plan(Cut(after_bytes=100)) # the next connection, after 100 response bytes
                                       relay.refuse()                   # refuse new connections

The relay works with any server and does not inspect bytes, so TLS passes through. On a ``VirtualLoop``, both peers must
be on that loop, and a stall of an hour takes no real time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, cast, final
from urllib.parse import urlsplit, urlunsplit

from deltaloop.testing.deterministic_loop.memory_network import MemoryTransport
from deltaloop.testing.injected_faults.core.relay import Close, Direction, Finish, RelayFault, RelayMachine, Send

_LINGER_NOT_AT_ALL: Final = struct.pack("ii", 1, 0)
_BACKLOG: Final = 128


@final
class Relay:
    """TCP relay to one address; an async context manager that listens while it is entered.

    On exit or cancellation, it resets all connections and waits until their sockets are closed.
    """

    def __init__(self, target: str, *, host: str = "127.0.0.1") -> None:
        """Make a relay that does not listen yet.

        Args:
            target: Address to forward to: ``host:port`` or a URL. Connections that cannot be forwarded are reset.
            host: Address to listen on, with a free port.

        Raises:
            ValueError: If the target has no host or no port.
        """
        self._url = urlsplit(target if "://" in target else f"tcp://{target}")
        port = self._url.port or {"http": 80, "https": 443}.get(self._url.scheme)
        if not self._url.hostname or not port:
            raise ValueError(f"Relay target must be host:port or a URL, got {target!r}.")
        self._target = (self._url.hostname, port)
        self._host = host
        self._port = 0
        self._held: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._planned: deque[tuple[RelayFault, ...]] = deque()
        self._always: tuple[RelayFault, ...] = ()
        self._connections: dict[RelayConnection, None] = {}
        self._accepted = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def port(self) -> int:
        """Port on which it listens, or listened before ``refuse``; 0 before it is entered."""
        return self._port

    @property
    def address(self) -> str:
        """Address of the relay, ``host:port``."""
        return f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"

    @property
    def url(self) -> str:
        """URL of the target with the relay's address."""
        return urlunsplit(self._url._replace(netloc=self.address))

    @property
    def connections(self) -> tuple[RelayConnection, ...]:
        """Open connections, oldest first."""
        return tuple(self._connections)

    @property
    def accepted(self) -> int:
        """Number of accepted connections."""
        return self._accepted

    @property
    def refusing(self) -> bool:
        """Whether the relay rejects new connections."""
        return self._server is None

    def kubeconfig(self, kubeconfig: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a kubeconfig whose clusters at the target's address use the relay instead.

        The server's certificate must be valid for the relay's host, for example for the same loopback address.
        """
        clusters: list[dict[str, Any]] = []
        for entry in cast("list[dict[str, Any]]", kubeconfig.get("clusters", [])):
            cluster = dict(cast("Mapping[str, Any]", entry.get("cluster", {})))
            found = urlsplit(str(cluster.get("server", "")))
            if (found.hostname, found.port) == self._target:
                cluster["server"] = urlunsplit(found._replace(netloc=self.address))
            clusters.append({**entry, "cluster": cluster})
        return {**kubeconfig, "clusters": clusters}

    def inject(self, *faults: RelayFault, on: RelayConnection | None = None) -> None:
        """Inject faults into open connections; the moments of the faults count from now.

        Args:
            faults: Faults to inject.
            on: A single connection; None means all open connections.
        """
        for connection in (on,) if on is not None else self.connections:
            for fault in faults:
                connection.inject(fault)

    def plan(self, *faults: RelayFault, connections: int | None = 1) -> None:
        """Plan faults for future connections; the moments of the faults count from their acceptance.

        Args:
            faults: Faults to inject; none plans connections without faults.
            connections: Number of connections, after those that are planned already. None means all connections after
                these, and replaces an earlier plan with None.
        """
        if connections is None:
            self._always = faults
        else:
            self._planned.extend([faults] * connections)

    def clear(self) -> None:
        """Remove all injected and planned faults; stalled connections continue."""
        self._planned.clear()
        self._always = ()
        for connection in self.connections:
            connection.clear()

    def refuse(self) -> None:
        """Reject new connections from now on; open connections continue.

        It can be called repeatedly.
        """
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def accept(self) -> None:
        """Accept connections again on the same port, unless the relay listens already.

        Raises:
            OSError: If another program has taken the port.
        """
        if self._server is None:
            loop = asyncio.get_running_loop()
            listening = _bound(self._host, self._port)
            try:
                self._server = await loop.create_server(
                    lambda: self._connection().client, sock=listening, backlog=_BACKLOG
                )
            except BaseException:
                listening.close()
                raise
            self._port = int(listening.getsockname()[1])

    async def wait_for_connections(self, count: int) -> None:
        """Wait until at least ``count`` connections were accepted since the start; can be canceled safely."""
        if self._accepted >= count:
            return
        waiter = (count, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter[1]
        finally:
            self._waiters.remove(waiter)

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            OSError: If the host cannot be listened on.
        """
        await self.accept()
        # A second socket reserves the port during `refuse`, if the system allows it.
        with contextlib.suppress(OSError):
            self._held = _bound(self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening, reset open connections, and wait until they are closed."""
        self.refuse()
        if self._held is not None:
            self._held.close()
        connections = self.connections
        for connection in connections:
            connection.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))

    def _connection(self) -> RelayConnection:
        faults = self._planned.popleft() if self._planned else self._always
        connection = RelayConnection(self._accepted, self._target, faults, self._connections)
        self._accepted += 1
        for count, waiter in self._waiters:
            if self._accepted >= count and not waiter.done():
                waiter.set_result(None)
        return connection

    def __repr__(self) -> str:
        what = "refusing" if self.refusing else "listening"
        return f"<Relay {self.address} to {self._target[0]}:{self._target[1]}, {what}, {len(self._connections)} open>"


@final
class RelayConnection:
    """Connection through a relay; call its methods on the relay's loop."""

    def __init__(
        self,
        number: int,
        target: tuple[str, int],
        faults: tuple[RelayFault, ...],
        registry: dict[RelayConnection, None],
    ) -> None:
        self._number = number
        self._target = target
        self._registry = registry
        self._loop = asyncio.get_running_loop()
        self._machine = RelayMachine(faults, now=self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._closed = self._loop.create_future()
        self.client: _Side = _Side(self, Direction.TO_SERVER)
        self.server: _Side = _Side(self, Direction.TO_CLIENT)
        registry[self] = None

    @property
    def number(self) -> int:
        """Number in the order of acceptance, from 0."""
        return self._number

    @property
    def is_open(self) -> bool:
        """Whether one of its sockets is open."""
        return not self._closed.done()

    def passed(self, direction: Direction) -> int:
        """Return the number of bytes forwarded in a direction."""
        return self._machine.passed(direction)

    def inject(self, fault: RelayFault) -> None:
        """Inject a fault whose moment counts from now."""
        self._machine.inject(fault, self._loop.time())
        self.step()

    def clear(self) -> None:
        """Remove its faults; stalled bytes continue."""
        self._machine.clear(self._loop.time())
        self.step()

    def abort(self) -> None:
        """Reset both sides immediately."""
        self._close(by_reset=True)

    async def wait_closed(self) -> None:
        """Wait until both sockets are closed; can be canceled safely."""
        await asyncio.shield(self._closed)

    # For its two sides

    def opened(self, side: _Side) -> None:
        """Handle a connected side: connect to the target, or begin to forward."""
        if side is self.client:
            self._connecting = self._loop.create_task(self._connect(), name=f"relay: connection {self._number}")
            self._connecting.add_done_callback(self._connect_ended)
        self.step()

    def received(self, direction: Direction, data: bytes) -> None:
        """Handle received bytes."""
        self._machine.received(direction, data, self._loop.time())
        self.step()

    def ended(self, direction: Direction) -> None:
        """Handle the end of a stream."""
        self._machine.ended(direction, self._loop.time())
        self.step()

    def lost(self, side: _Side) -> None:
        """Handle a closed socket, closed by the relay or by a reset."""
        if not self._machine.over:
            self._machine.lost(side.direction, self._loop.time())
            self.step()
        self._finish_if_closed()

    def step(self) -> None:
        """Carry out the machine's actions, and set a timer for the next actions."""
        for act in self._machine.act(self._loop.time()):
            match act:
                case Send(direction, data):
                    self._to(direction).write(data)
                case Finish(direction):
                    self._to(direction).end()
                case Close(by_reset):
                    self._close(by_reset=by_reset)
        if self._timer is not None:
            self._timer.cancel()
        at = self._machine.wake_at()
        self._timer = self._loop.call_at(at, self.step) if at is not None else None
        for side in (self.client, self.server):
            side.read(self._machine.reads(side.direction) and not self._to(side.direction).is_full)

    # Inside

    def _to(self, direction: Direction) -> _Side:
        return self.server if direction is Direction.TO_SERVER else self.client

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: self.server, *self._target)
        except OSError:
            self._close(by_reset=True)

    def _connect_ended(self, task: asyncio.Task[None]) -> None:
        # Use a callback, because a task that is canceled before its first step runs no `finally`.
        del task
        self._connecting = None
        self._finish_if_closed()

    def _close(self, *, by_reset: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connecting is not None and self._connecting is not asyncio.current_task():
            self._connecting.cancel()
        for side in (self.client, self.server):
            side.close(by_reset=by_reset)

    def _finish_if_closed(self) -> None:
        if self._connecting is not None or self.client.transport is not None or self.server.transport is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._registry.pop(self, None)
        if not self._closed.done():
            self._closed.set_result(None)

    def __repr__(self) -> str:
        passed = ", ".join(f"{self.passed(direction)} bytes {direction}" for direction in Direction)
        return f"<RelayConnection {self._number}: {passed}{'' if self.is_open else ', closed'}>"


@final
class _Side(asyncio.Protocol):
    """One socket of a connection; ``direction`` is the direction of the bytes that it receives."""

    def __init__(self, connection: RelayConnection, direction: Direction) -> None:
        self.direction = direction
        self.transport: asyncio.Transport | None = None
        self.is_full: bool = True  # an unconnected side cannot take bytes
        self._connection = connection
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_full = False
        self._connection.opened(self)

    def data_received(self, data: bytes) -> None:
        self._connection.received(self.direction, data)

    def eof_received(self) -> bool:
        self._has_ended = True
        self._connection.ended(self.direction)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.transport = None
        self._connection.lost(self)

    def pause_writing(self) -> None:
        self.is_full = True
        self._connection.step()

    def resume_writing(self) -> None:
        self.is_full = False
        self._connection.step()

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(OSError):  # the peer may be gone, which connection_lost reports
                self.transport.write_eof()

    def read(self, wanted: bool) -> None:
        if self.transport is None or self.transport.is_closing() or self._has_ended:
            return
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def close(self, *, by_reset: bool) -> None:
        if self.transport is None:
            return
        if by_reset and isinstance(self.transport, MemoryTransport):
            self.transport.reset()
        elif by_reset:
            opened = self.transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT_AT_ALL)
            self.transport.abort()
        else:
            self.transport.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Specify the protocol, because asyncio disables Nagle's algorithm only for sockets with IPPROTO_TCP.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except BaseException:
        made.close()
        raise
    return made
