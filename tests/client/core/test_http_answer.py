"""One answer, however its bytes are cut; and everything refused that two readers could take for two things."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.client.core.http_answer import MOST_HEAD, AnswerReader, MalformedAnswerError
from deltaloop.client.transport.protocol import Headers

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

# What comes, and what it is: method, status, body, whether the connection can be kept.
ANSWERS: dict[str, tuple[bytes, str, int, bytes, bool]] = {
    "length": (OK + b"Content-Length: 5\r\n\r\nhello", "GET", 200, b"hello", True),
    "empty": (OK + b"content-length:0\r\n\r\n", "GET", 200, b"", True),
    "no reason": (b"HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", "GET", 404, b"no", True),
    "no blank after the status": (b"HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno", "GET", 404, b"no", True),
    "head": (OK + b"Content-Length: 5\r\n\r\n", "HEAD", 200, b"", False),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE", 204, b"", True),
    "304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "GET", 304, b"", True),
    "chunks": (CHUNKED + b"5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", "GET", 200, b"hello world", True),
    "chunks with zeros": (CHUNKED + b"0005\r\nhello\r\n000\r\n\r\n", "GET", 200, b"hello", True),
    "chunks with extensions": (CHUNKED + b'5;a="b;c"\r\nhello\r\n0;x\r\n\r\n', "GET", 200, b"hello", True),
    "chunks with many zeros": (CHUNKED + b"0" * 40 + b"5\r\nhello\r\n0\r\n\r\n", "GET", 200, b"hello", True),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\nX: 99\r\nA: b\r\n\r\n", "GET", 200, b"x", True),
    "a blank line first": (b"\r\n" + OK + b"Content-Length: 0\r\n\r\n", "GET", 200, b"", True),
    "a big length": (CHUNKED + b"aF\r\n" + b"x" * 0xAF + b"\r\n0\r\n\r\n", "GET", 200, b"x" * 0xAF, True),
    "until the end": (OK + b"\r\nall of it", "GET", 200, b"all of it", False),
    "until the end, nothing": (OK + b"\r\n", "GET", 200, b"", False),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "GET", 200, b"ok", False),
    "old and kept": (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
        "GET",
        200,
        b"ok",
        True,
    ),
    "closed after it": (OK + b"Connection: x, Close\r\nContent-Length: 2\r\n\r\nok", "GET", 200, b"ok", False),
    "closed, said on a second line": (
        OK + b"Connection: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "GET",
        200,
        b"ok",
        False,
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 2\r\n\r\nok",
        "PUT",
        200,
        b"ok",
        True,
    ),
    "tunnel": (b"HTTP/1.0 200 Connection established\r\n\r\n", "CONNECT", 200, b"", True),
    "no tunnel": (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "CONNECT", 403, b"no", True),
    "more than was asked for": (OK + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", "GET", 200, b"ok", False),
    "a name with signs": (OK + b"x-a!#$%&'*+.^_`|~: b\r\nContent-Length: 0\r\n\r\n", "GET", 200, b"", True),
    "values that are no ASCII": (
        OK + 'Warning: 299 - "ä"\r\nX: \udcff\r\nContent-Length: 0\r\n\r\n'.encode("utf-8", "surrogateescape"),
        "GET",
        200,
        b"",
        True,
    ),
}

MALFORMED: dict[str, bytes] = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "another protocol that waits": b"220 mail\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a long status": b"HTTP/1.1 2000 OK\r\n\r\n",
    "status 0": b"HTTP/1.1 000 OK\r\n\r\n",
    "a status of other digits": "HTTP/1.1 ２００ OK\r\n\r\n".encode(),
    "a line feed in the reason": b"HTTP/1.1 200 O\nK: x\r\nContent-Length: 0\r\n\r\n",
    "switched protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "interim without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK + b"Content-Length: 0\r\n\r\n",
    "length and chunks": OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "two equal lengths": OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": OK + b"Content-Length: 3, 3\r\n\r\nabc",
    "a negative length": OK + b"Content-Length: -3\r\n\r\nabc",
    "a length with a sign": OK + b"Content-Length: +3\r\n\r\nabc",
    "a length with an underscore": OK + b"Content-Length: 1_0\r\n\r\nabcdefghij",
    "a length of other digits": OK + "Content-Length: ３\r\n\r\nabc".encode(),
    "an empty length": OK + b"Content-Length:\r\n\r\n",
    "a length in hexadecimal": OK + b"Content-Length: 0x3\r\n\r\nabc",
    "a length beyond all bounds": OK + b"Content-Length: 100000000000000000000\r\n\r\n",
    "packed chunks": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "identity": OK + b"Transfer-Encoding: identity\r\n\r\nx",
    "chunked twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked with a tab inside": OK + b"Transfer-Encoding: chun\tked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": OK + b"Content-Length : 3\r\n\r\nabc",
    "a folded line": OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a folded first line": OK + b" X: a\r\nContent-Length: 0\r\n\r\n",
    "a line without a colon": OK + b"nonsense\r\n\r\n",
    "no name": OK + b": x\r\n\r\n",
    "a null in a value": OK + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
    "a bare line feed": OK + b"X: a\nContent-Length: 3\r\n\r\nabc",
    "a bare carriage return": OK + b"X: a\rContent-Length: 3\r\n\r\nabc",
    "chunk: no number": CHUNKED + b"g\r\n",
    "chunk: empty": CHUNKED + b"\r\n",
    "chunk: 0x": CHUNKED + b"0x5\r\nhello\r\n",
    "chunk: a sign": CHUNKED + b"+5\r\nhello\r\n",
    "chunk: an underscore": CHUNKED + b"1_0\r\n" + b"x" * 16 + b"\r\n",
    "chunk: a blank before": CHUNKED + b" 5\r\nhello\r\n",
    "chunk: a blank after": CHUNKED + b"5 \r\nhello\r\n",
    "chunk: too large a number": CHUNKED + b"1" + b"0" * 16 + b"\r\n\r\n",
    "chunk: a line feed in its extension": CHUNKED + b"5;a\nb\r\nhello\r\n",
    "chunk: longer than it says": CHUNKED + b"5\r\nhello!\r\n0\r\n\r\n",
    "chunk: shorter than it says": CHUNKED + b"5\r\nhell\r\n0\r\n\r\n",
    "chunk: ended by a line feed": CHUNKED + b"5\r\nhello\n0\r\n\r\n",
    "chunk: a line without end": CHUNKED + b"5;" + b"x" * MOST_HEAD,
    "trailer: a length": CHUNKED + b"1\r\nx\r\n0\r\nContent-Length: 99\r\n\r\n",
    "trailer: no field": CHUNKED + b"0\r\nnonsense\r\n\r\n",
    "trailer: no end": CHUNKED + b"0\r\n" + b"A: b\r\n" * 20_000,
    "head: no end": OK + b"A: b\r\n" * 12_000,
    "head: too long": OK + b"A: " + b"b" * MOST_HEAD + b"\r\n\r\n",
}


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


def read(slices: list[bytes], method: str, reader: type[AnswerReader] = AnswerReader) -> AnswerReader:
    """Read a response, as a connection does: what comes after it ends the connection."""
    answer = reader()
    answer.begin(method)
    for data in slices:
        if answer.complete:
            answer.end()
            break
        answer.feed(data)
    return answer


@pytest.mark.parametrize("name", ANSWERS)
def test_http_responses_are_parsed(name: str) -> None:
    data, method, status, body, kept = ANSWERS[name]
    for slices in ([data], [data[at : at + 1] for at in range(len(data))]):
        answer = read(slices, method)
        assert answer.complete is not name.startswith("until")
        if name.startswith("until"):
            assert answer.end()
        assert (answer.status, b"".join(answer.pieces), answer.keeps_alive) == (status, body, kept)


@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(0, 500), max_size=6))
def test_http_response_is_independent_of_chunk_borders(name: str, cuts: list[int]) -> None:
    data, method, status, body, _ = ANSWERS[name]
    answer = read(cut(data, cuts), method)
    assert (answer.status, b"".join(answer.pieces)) == (status, body)
    assert answer.headers == read([data], method).headers


@pytest.mark.parametrize("name", MALFORMED)
def test_ambiguous_http_responses_are_rejected(name: str) -> None:
    with pytest.raises(MalformedAnswerError):
        read([MALFORMED[name]], "GET")
    if len(MALFORMED[name]) < 1000:
        with pytest.raises(MalformedAnswerError):
            read([MALFORMED[name][at : at + 1] for at in range(len(MALFORMED[name]))], "GET")


@given(st.sampled_from(sorted(MALFORMED)), st.lists(st.integers(0, 5000), max_size=4))
def test_ambiguous_http_response_is_rejected_with_any_chunk_borders(name: str, cuts: list[int]) -> None:
    with pytest.raises(MalformedAnswerError):
        read(cut(MALFORMED[name], cuts), "GET")


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_random_bytes_are_parsed_or_rejected(data: bytes, cuts: list[int]) -> None:
    for before in (b"", OK, CHUNKED):
        with suppress(MalformedAnswerError):
            answer = read(cut(before + data, cuts), "GET")
            assert sum(map(len, answer.pieces)) <= len(data)


def test_headers_keep_their_order_and_their_case() -> None:
    answer = read([OK + b"A:  b \t\r\na: c\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n"], "GET")
    headers = Headers(answer.headers)
    assert headers.get_all("A") == ["b", "c"]
    assert (headers.get("x-empty", "none"), headers.get("none", "none")) == ("", "none")


def test_responses_follow_each_other() -> None:
    answer = AnswerReader()
    for number in range(3):
        answer.begin("GET")
        assert (answer.status, answer.headers, answer.pieces) == (0, [], [])
        answer.feed(OK + b"Warning: x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n%d" % number)
        assert (answer.warns, answer.encoding, answer.taken()) == (True, "gzip", b"%d" % number)
        answer.begin("GET")
        answer.feed(CHUNKED + b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
        assert (answer.warns, answer.encoding, answer.taken(), answer.keeps_alive) == (False, "", b"ab", True)


def test_bytes_after_response_close_connection() -> None:
    answer = AnswerReader()
    answer.begin("GET")
    answer.feed(OK + b"Content-Length: 2\r\n\r\nok" + OK + b"Content-Length: 7\r\n\r\nplanted")
    assert (answer.taken(), answer.keeps_alive) == (b"ok", False)


def test_end_of_connection_ends_only_responses_without_length() -> None:
    for data in (b"", b"HTTP/1.1 2", OK + b"Content-Length: 3\r\n\r\nab", CHUNKED, CHUNKED + b"1\r\nx\r\n0\r\n"):
        assert not read([data] if data else [], "GET").end()
    whole = read([OK + b"Content-Length: 2\r\n\r\nok"], "GET")
    assert whole.keeps_alive
    assert whole.end()
    assert not whole.keeps_alive
    assert AnswerReader().end()  # before the first request


# Seeded bugs: each is seen by one of the tables above.


def differences(reader: type[AnswerReader]) -> list[str]:
    found: list[str] = []
    for name, (data, method, status, body, kept) in ANSWERS.items():
        try:
            answer = read([data], method, reader)
            ended = answer.end() if name.startswith("until") else answer.complete
            if not ended or (answer.status, b"".join(answer.pieces), answer.keeps_alive) != (status, body, kept):
                found.append(name)
        except (MalformedAnswerError, ValueError):
            found.append(name)
    for name, data in MALFORMED.items():
        try:
            read([data], "GET", reader)
        except (MalformedAnswerError, ValueError) as error:
            found += [name] * isinstance(error, ValueError)
        else:
            found.append(name)
    return found


def test_parser_agrees_with_reference_parser() -> None:
    assert differences(AnswerReader) == []
