"""What is aiohttp's own: its errors, its limits, what it does unasked."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from deltaloop.client import AiohttpTransport, ClientConfig, Pool
from deltaloop.client.core.broken_tries import Reuse
from deltaloop.client.transport.aiohttp_transport import _PersistentConnector, _socket, failure_of
from tests.client.loopback import free_port

pytestmark = pytest.mark.real_time


KEY = ConnectionKey("h", 1, True, True, None, None, None)


def of_connecting(error: OSError, kind: type[aiohttp.ClientConnectorError] = aiohttp.ClientConnectorError) -> Any:
    return kind(KEY, error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            aiohttp.ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError(1, "certificate has expired")),
            "the certificate of h:1 is not accepted: .*certificate has expired.*; check the CA, and tls-server-name",
        ),
        (
            of_connecting(OSError(-2, "no such name"), aiohttp.ClientConnectorDNSError),
            "the host name of h:1 cannot be resolved",
        ),
        (of_connecting(ssl.SSLError(1, "odd")), "no TLS connection to h:1: SSLError"),
        (of_connecting(ConnectionRefusedError(111, "refused")), r"nothing listens at h:1 \(connection refused\)"),
        (of_connecting(OSError(113, "No route to host")), "no connection to h:1: No route to host"),
        (of_connecting(OSError("without a number")), "no connection to h:1: without a number"),
        (
            aiohttp.ClientHttpProxyError(None, (), status=407),  # type: ignore[arg-type]  # it has no request here
            "the proxy refused to connect to h:1: 407",
        ),
        (aiohttp.ServerDisconnectedError(), "h:1 closed the connection without an answer"),
        (ConnectionResetError(104, "Connection reset by peer"), "the connection to h:1 broke: Connection reset by pe"),
        (aiohttp.ClientPayloadError("planted"), "the connection to h:1 broke: ClientPayloadError"),
    ],
)
async def test_each_failure_has_its_words(error: Exception, words: str) -> None:
    assert re.match(words, failure_of(error).describe("h:1"))


async def test_what_openssl_finds_wrong_is_named_by_its_reason() -> None:
    received = ssl.MemoryBIO()
    received.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLError) as caught:
        context.wrap_bio(received, ssl.MemoryBIO(), server_hostname="h").do_handshake()
    assert caught.value.reason
    assert failure_of(of_connecting(caught.value)).describe("h:1") == f"no TLS connection to h:1: {caught.value.reason}"


@pytest.mark.parametrize(
    ("error", "cut"),
    [
        (of_connecting(ConnectionResetError()), True),
        (of_connecting(BrokenPipeError()), True),
        (of_connecting(ConnectionAbortedError()), True),
        (of_connecting(ConnectionRefusedError()), False),
        (of_connecting(OSError(113, "No route to host")), False),
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ClientOSError(), True),
        (ConnectionResetError(), True),
        (BrokenPipeError(), True),
        (ConnectionAbortedError(), True),
        (OSError(), False),
        (aiohttp.ClientPayloadError(), False),
    ],
)
async def test_what_is_cut(error: Exception, cut: bool) -> None:
    assert failure_of(error).cut is cut


async def test_its_own_limits_are_off_and_each_pool_has_a_session() -> None:
    transport = AiohttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    connectors = {pool: transport._session(pool).connector for pool in ("requests", Pool.LEADER_ELECTION, "watches")}
    assert len({id(connector) for connector in connectors.values()}) == 3
    assert {pool for pool, each in connectors.items() if isinstance(each, _PersistentConnector)} == {"leader-election"}
    for connector in connectors.values():
        assert isinstance(connector, aiohttp.TCPConnector)
        assert vars(connector)["_socket_factory"] is _socket
        assert (connector.limit, connector.limit_per_host, connector._keepalive_timeout) == (0, 0, 30.0)
    limits = transport._session("requests").timeout
    assert (limits.total, limits.connect, limits.sock_connect, limits.sock_read) == (None, None, None, None)
    await transport.close()


async def test_a_connection_of_leader_election_is_begun_four_times() -> None:
    made = 0

    def count(address: Any) -> socket.socket:
        nonlocal made
        made += 1
        return _socket(address)

    async with aiohttp.ClientSession(connector=_PersistentConnector(reuse=Reuse(), socket_factory=count)) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"http://127.0.0.1:{free_port()}")
    assert made == 4


async def test_the_hidden_retry_of_aiohttp_can_be_switched_off() -> None:
    # A private name: this test fails when aiohttp drops it.
    async with aiohttp.ClientSession() as session:
        assert session._retry_connection is True
