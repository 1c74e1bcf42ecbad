"""In-memory connections between servers and clients on one event loop.

Servers and clients need no changes, including HTTP and TLS. Written bytes arrive in order in the next turn of the loop,
so a run does not depend on the kernel. A peer that does not read holds the writer back.

Not supported: direct use of sockets (``sock_recv``, ``add_reader``, other libraries' loops and threads), other
processes, datagrams, and socket options. Source: asyncio's documentation (transports and protocols).
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
import socket
import ssl
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast, final

T = TypeVar("T")
Address = tuple[str, int]

_HIGH_WATER: Final = 64 * 1024
_SLICE: Final = 256 * 1024
_FIRST_PORT: Final = 49152
_LAST_PORT: Final = 65535
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
_LOCAL: Final = "127.0.0.1"
_ANY: Final = "0.0.0.0"  # noqa: S104 - no socket is bound
_NAMES: Final = {"localhost": _LOCAL, "::1": _LOCAL, "::": _ANY}


class NetworkLoop(asyncio.SelectorEventLoop):
    """Event loop whose TCP connections can use a ``MemoryNetwork``; without a network it uses the machine's."""

    network: MemoryNetwork | None = None

    def accepted(self, transport: T) -> T:
        """Return an accepted connection; loops with processes override this to register it."""
        return transport

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **keywords: Any
    ) -> Any:
        """Listen in memory if there is a network, at the address of the arguments or of a given socket."""
        if self.network is None or (sock is not None and sock.family not in _FAMILIES):
            return await super().create_server(protocol_factory, host, port, sock=sock, **keywords)
        if sock is not None:
            host, port = sock.getsockname()[:2]
        return self.network.listen(protocol_factory, host, port, held=sock, **_of_tls(keywords))

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect a socket; in memory, only record its address for ``create_connection``.

        Raises:
            ConnectionRefusedError: If no server listens there.
        """
        if self.network is None or sock.family not in _FAMILIES:
            await super().sock_connect(sock, address)
        else:
            self.network.dial(sock, address)

    async def create_connection(
        self,
        protocol_factory: Any,
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: str | None = None,
        **keywords: Any,
    ) -> Any:
        """Connect in memory if there is a network, or raise ConnectionRefusedError."""
        network = self.network
        address = None if network is None else network.dialled(sock) if sock is not None else (host, port)
        if network is None or address is None:
            return await super().create_connection(
                protocol_factory, host, port, ssl=ssl, sock=sock, server_hostname=server_hostname, **keywords
            )
        tls = _of_tls({**keywords, "ssl": ssl})
        return await network.connect(protocol_factory, address, server_hostname=server_hostname or host, **tls)


def _of_tls(keywords: dict[str, Any]) -> dict[str, Any]:
    return {"tls": keywords.get("ssl"), "handshake_timeout": keywords.get("ssl_handshake_timeout")}


@final
class MemoryNetwork:
    """In-memory network of one loop; networks are independent of each other."""

    def __init__(self) -> None:
        self._servers: dict[Address, MemoryServer] = {}
        self._next_port = _FIRST_PORT
        self._dialled: weakref.WeakKeyDictionary[socket.socket, Address] = weakref.WeakKeyDictionary()

    def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str | None,
        port: int | None,
        *,
        held: socket.socket | None = None,
        tls: ssl.SSLContext | None = None,
        handshake_timeout: float | None = None,
    ) -> MemoryServer:
        """Listen at an address.

        Args:
            factory: Function that makes the protocol of a connection.
            host: Host name or IP address; None is any.
            port: Port; None or 0 chooses a free port.
            held: Socket that reserves the port, closed with the server.
            tls: TLS context; None uses plain connections.
            handshake_timeout: Seconds until a TLS handshake times out; None is asyncio's default.

        Raises:
            OSError: If the address is in use.
        """
        while not port:
            candidate = (_host(host), self._next_port)
            self._next_port = self._next_port + 1 if self._next_port < _LAST_PORT else _FIRST_PORT
            port = None if candidate in self._servers else candidate[1]
        address = (_host(host), port)
        if address in self._servers:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {address} in the memory network")
        server = self._servers[address] = MemoryServer(self, factory, address, held, tls, handshake_timeout)
        return server

    def forget(self, server: MemoryServer) -> None:
        """Remove a closed server; called by the server."""
        if self._servers.get(server.address) is server:
            del self._servers[server.address]

    def dial(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        """Record the address to which a socket connects.

        Raises:
            ConnectionRefusedError: If no server listens there.
        """
        self._find(address[:2])
        self._dialled[sock] = address[:2]

    def dialled(self, sock: socket.socket) -> Address | None:
        """Return the recorded address of a socket and close the socket, which carries no data."""
        address = self._dialled.pop(sock, None)
        if address is not None:
            sock.close()
        return address

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        address: Address,
        *,
        server_hostname: str | None = None,
        tls: ssl.SSLContext | bool | None = None,
        handshake_timeout: float | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to the server at an address.

        Args:
            factory: Function that makes the client's protocol.
            address: Host and port.
            server_hostname: Name to verify in the server's certificate.
            tls: TLS context; True verifies by the system's authorities, None uses a plain connection.
            handshake_timeout: Seconds until a TLS handshake times out; None is asyncio's default.

        Raises:
            ConnectionRefusedError: If no server listens there.
        """
        loop = asyncio.get_running_loop()
        server = self._find(address)
        ours, theirs = MemoryTransport(loop, address), MemoryTransport(loop, (_LOCAL, self._client_port()))
        ours.peer, theirs.peer = theirs, ours
        server.accept(theirs)
        protocol = factory()
        transport: asyncio.Transport = ours
        if tls:
            context = ssl.create_default_context() if tls is True else tls
            ours.set_protocol(protocol)
            encrypted = await loop.start_tls(
                ours, protocol, context, server_hostname=server_hostname, ssl_handshake_timeout=handshake_timeout
            )
            transport = cast("asyncio.Transport", encrypted)
        else:
            ours.set_protocol(protocol)
        protocol.connection_made(transport)
        ours.resume_reading()
        return transport, protocol

    def _client_port(self) -> int:
        self._next_port = self._next_port + 1 if self._next_port < _LAST_PORT else _FIRST_PORT
        return self._next_port

    def _find(self, address: tuple[Any, ...]) -> MemoryServer:
        host, port = _host(address[0]), int(address[1])
        server = self._servers.get((host, port)) or self._servers.get((_ANY, port))
        if server is None:
            where = f"{address[0]}:{port} in the memory network"
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{os.strerror(errno.ECONNREFUSED)}: {where}")
        return server


def _host(name: str | None) -> str:
    return _ANY if name is None else _NAMES.get(name, name)


@final
class _Listening:
    """Replacement of a listening socket that only provides its address."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address


@final
class MemoryServer(asyncio.AbstractServer):
    """Server that listens in memory; made by ``MemoryNetwork.listen``."""

    def __init__(
        self,
        network: MemoryNetwork,
        factory: Callable[[], asyncio.BaseProtocol],
        address: Address,
        held: socket.socket | None,
        tls: ssl.SSLContext | None,
        handshake_timeout: float | None,
    ) -> None:
        self.address = address
        self._network = network
        self._factory = factory
        self._tls = tls
        self._handshake_timeout = handshake_timeout
        self._held = held
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._serving = True
        self._handshakes: set[asyncio.Task[None]] = set()

    @property
    def sockets(self) -> tuple[_Listening, ...]:
        return (_Listening(self.address),) if self._serving else ()

    def accept(self, transport: MemoryTransport) -> None:
        """Serve another connection in the next turn of the loop."""
        context = self._context.copy()
        transport.context = context
        if isinstance(self._loop, NetworkLoop):
            context.run(self._loop.accepted, transport)
        if self._tls is None:
            self._loop.call_soon(self._made, transport, context=context)
            return
        task = self._loop.create_task(self._handshake(transport, self._tls), context=context)
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def _made(self, transport: MemoryTransport) -> None:
        protocol = self._factory()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        transport.resume_reading()

    async def _handshake(self, transport: MemoryTransport, tls: ssl.SSLContext) -> None:
        protocol = self._factory()
        transport.set_protocol(protocol)
        try:
            encrypted = await self._loop.start_tls(
                transport, protocol, tls, server_side=True, ssl_handshake_timeout=self._handshake_timeout
            )
        except (OSError, asyncio.CancelledError):
            transport.abort()
            return
        if encrypted is not None:
            protocol.connection_made(encrypted)

    def close(self) -> None:
        self._serving = False
        self._network.forget(self)
        if self._held is not None:
            self._held.close()

    def is_serving(self) -> bool:
        return self._serving

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def start_serving(self) -> None:
        """Return immediately, because the server listens from the start."""

    async def serve_forever(self) -> None:
        try:
            await self._loop.create_future()
        finally:
            self.close()

    async def wait_closed(self) -> None:
        """Return immediately, because ``close`` does not wait for connections."""


@final
class MemoryTransport(asyncio.Transport):
    """One end of a connection in memory; its protocol is called in ``context``."""

    _start_tls_compatible: bool = True  # asyncio checks this private attribute

    def __init__(self, loop: asyncio.AbstractEventLoop, peer_address: Address) -> None:
        """Make an end that does not read before ``resume_reading``; called by a network."""
        super().__init__({"peername": peer_address, "sockname": (_LOCAL, 0)})
        self.peer: MemoryTransport
        self.context: contextvars.Context = contextvars.copy_context()
        self._loop = loop
        self._protocol: asyncio.BaseProtocol | None = None
        self._inbox: list[bytes] = []
        self._waiting = 0  # number of bytes in the inbox
        self._ended = self._reset = False  # by the other end
        self._reading = self._scheduled = False
        self._closing = self._sent_eof = False
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._held_back = False

    # -- asyncio.Transport

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        """Hold arriving data, which eventually holds the other end back."""
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._schedule()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the buffer sizes at which the protocol must stop writing, and may continue."""
        if high is None:
            high = _HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high and low must be high >= low >= 0, got {high} and {low}")
        self._high, self._low = high, low
        self._hold_back()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self.peer._waiting  # noqa: SLF001 - both are ends of one connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, or raise RuntimeError after ``write_eof``."""
        if self._sent_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._closing:
            return
        if self.peer._closing:  # noqa: SLF001
            self._close(_reset_by_peer(), reset=False)
            return
        self.peer._arrived(bytes(data))  # noqa: SLF001
        self._hold_back()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not (self._sent_eof or self._closing):
            self._sent_eof = True
            self.peer._end()  # noqa: SLF001

    def close(self) -> None:
        """Close the connection after the written bytes; with unread data here, the other end gets a reset."""
        self._close(None, reset=bool(self._inbox))

    def abort(self) -> None:
        """Close the connection, as ``close``, because there are no buffers to discard."""
        self.close()

    def reset(self) -> None:
        """Reset the connection; the other end gets an error after the written bytes."""
        self._close(None, reset=True)

    def _force_close(self, error: Exception | None) -> None:
        """Close after an error; asyncio's TLS calls this private method."""
        self._close(error, reset=bool(self._inbox))

    # -- called by the other end

    def _arrived(self, data: bytes) -> None:
        self._inbox.append(data)
        self._waiting += len(data)
        self._schedule()

    def _end(self) -> None:
        self._ended = True
        self._schedule()

    def _broken_off(self) -> None:
        self._reset = True
        self._schedule()

    def _taken(self) -> None:
        if self._held_back and self.get_write_buffer_size() <= self._low:
            self._held_back = False
            self.get_protocol().resume_writing()

    # -- how

    def _schedule(self) -> None:
        due = self._inbox or self._ended or self._reset
        if due and self._reading and not (self._scheduled or self._closing):
            self._scheduled = True
            self._loop.call_soon(self._deliver, context=self.context)

    def _deliver(self) -> None:
        self._scheduled = False
        if self._closing or not self._reading:
            return
        if self._inbox:
            self._feed(self._next_slice())
            if self.peer._held_back:  # noqa: SLF001
                self._loop.call_soon(self.peer._taken, context=self.peer.context)  # noqa: SLF001
            self._schedule()
        elif self._reset:
            self._close(_reset_by_peer(), reset=False)
        elif self._ended:
            self._ended = False
            keep_open = cast("asyncio.Protocol", self.get_protocol()).eof_received()
            if not keep_open:
                self.close()

    def _next_slice(self) -> bytes:
        data = self._inbox[0] if len(self._inbox) == 1 else b"".join(self._inbox)
        self._inbox.clear()
        if len(data) > _SLICE:
            self._inbox.append(data[_SLICE:])
            data = data[:_SLICE]
        self._waiting -= len(data)
        return data

    def _feed(self, data: bytes) -> None:
        protocol = self.get_protocol()
        if isinstance(protocol, asyncio.Protocol):
            protocol.data_received(data)
            return
        buffered = cast("asyncio.BufferedProtocol", protocol)
        while data and not self._closing:
            buffer = memoryview(buffered.get_buffer(len(data)))
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            buffered.buffer_updated(size)
            data = data[size:]

    def _hold_back(self) -> None:
        if not self._held_back and self.get_write_buffer_size() > self._high:
            self._held_back = True
            self.get_protocol().pause_writing()

    def _close(self, error: Exception | None, *, reset: bool) -> None:
        if self._closing:
            return
        self._closing = True
        self._inbox.clear()
        self._waiting = 0
        self._loop.call_soon(self._gone, error, context=self.context)
        if reset:
            self.peer._broken_off()  # noqa: SLF001
        else:
            self.peer._end()  # noqa: SLF001

    def _gone(self, error: Exception | None) -> None:
        if self._protocol is not None:
            self._protocol.connection_lost(error)


def _reset_by_peer() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
