"""How connections end."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from deltaloop.apiserver import ApiServer


def _opened(port: int, authority: bytes) -> ssl.SSLSocket:
    """Return a connection on which a request has been answered, and more may follow."""
    context = ssl.create_default_context(cadata=authority.decode())
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
    connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert connection.recv(4096).startswith(b"HTTP/1.1 ")
    return connection


def _rest(connection: ssl.SSLSocket) -> int:
    """Return how much comes until the end, which is not answered as TLS wants it to be."""
    connection.settimeout(5)
    count = 0
    while part := socket.socket.recv(connection, 4096):
        count += len(part)
    return count


@pytest.mark.real_time
async def test_close_does_not_wait_for_the_tls_shutdown_of_a_client() -> None:
    async with ApiServer() as server:
        authority = server.ca_pem
        assert authority is not None
        connection = await asyncio.to_thread(_opened, int(server.url.rpartition(":")[2]), authority)
    with connection:
        assert await asyncio.to_thread(_rest, connection) > 0, "TLS has its end"
