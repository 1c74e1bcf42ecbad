"""What an error on the way to the server means, and the words for it."""

from __future__ import annotations

import re
import ssl

import pytest

from deltaloop.client.core.connection_failures import ConnectionFailure, of_breaking, of_connecting


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            of_connecting(ssl.SSLCertVerificationError(1, "certificate has expired")),
            "certificate of h:1: .*certificate has expired.*tls-server-name",
        ),
        (ConnectionFailure("name"), "host name of h:1"),
        (of_connecting(ssl.SSLError(1, "odd")), "cannot establish TLS with h:1: SSLError"),
        (of_connecting(ConnectionRefusedError(111, "refused")), "connection refused at h:1"),
        (of_connecting(OSError(113, "No route to host")), "h:1: No route to host"),
        (of_connecting(OSError("without a number")), "h:1: without a number"),
        (ConnectionFailure("proxy", "407"), "the proxy did not connect to h:1: 407"),
        (ConnectionFailure("no_answer", cut=True), "h:1 closed the connection"),
        (of_breaking(ConnectionResetError(104, "Connection reset by peer")), "the connection to h:1 broke: Connection"),
        (of_breaking(ValueError("planted")), "the connection to h:1 broke: ValueError"),
    ],
)
def test_each_failure_has_its_words(failure: ConnectionFailure, words: str) -> None:
    assert re.search(words, failure.describe("h:1"))


def test_tls_error_names_openssl_reason() -> None:
    received = ssl.MemoryBIO()
    received.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLError) as caught:
        context.wrap_bio(received, ssl.MemoryBIO(), server_hostname="h").do_handshake()
    assert caught.value.reason
    assert of_connecting(caught.value).describe("h:1") == f"cannot establish TLS with h:1: {caught.value.reason}"


@pytest.mark.parametrize(
    ("error", "cut"),
    [
        (ConnectionResetError(), True),
        (BrokenPipeError(), True),
        (ConnectionAbortedError(), True),
        (ConnectionRefusedError(), False),
        (OSError(113, "No route to host"), False),
    ],
)
def test_cut_connections_are_recognized_while_connecting(error: OSError, cut: bool) -> None:
    assert of_connecting(error).cut is cut
    assert of_breaking(error).cut
