from __future__ import annotations

import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from deltaloop.client.core.framing import LineFramer

# Bytes that are dense in line feeds, so that empty lines and feeds at the edges of slices happen.
_STREAMS = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"{}", b"\r", b"\x00", b"\xff"]), max_size=40).map(b"".join)


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def _lines(chunks: list[bytes]) -> list[bytes]:
    framer = LineFramer()
    lines = [line for chunk in chunks for line in framer.feed(chunk)]
    pending = framer.pending
    rest = framer.finish()
    assert pending == len(rest)
    return [*lines, rest]


def _lines_one_by_one(chunks: list[bytes], taken_at_once: int) -> list[bytes]:
    """Take a few lines after each push, and all at the end: slices may be pushed while lines wait."""
    framer = LineFramer()
    lines = list[bytes]()
    for place, chunk in enumerate(chunks):
        framer.push(chunk)
        assert framer.pending == len(b"".join(chunks[: place + 1]).rpartition(b"\n")[2])
        lines += itertools.islice(iter(framer.take, None), taken_at_once)
    lines += iter(framer.take, None)
    return [*lines, framer.finish()]


@given(_STREAMS, st.lists(st.integers(0, 200), max_size=20), st.integers(0, 3))
def test_lines_are_independent_of_reading_time(data: bytes, cuts: list[int], taken_at_once: int) -> None:
    assert _lines_one_by_one(_cut(data, cuts), taken_at_once) == data.split(b"\n")


@given(_STREAMS, st.lists(st.integers(0, 200), max_size=20))
def test_lines_are_independent_of_chunk_borders(data: bytes, cuts: list[int]) -> None:
    assert _lines(_cut(data, cuts)) == data.split(b"\n")


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20))
def test_any_bytes(data: bytes, cuts: list[int]) -> None:
    assert _lines(_cut(data, cuts)) == data.split(b"\n")


def test_a_partial_line_at_the_end_is_reported() -> None:
    framer = LineFramer()
    assert framer.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert framer.pending == 4
    assert framer.finish() == b'{"b"'
    assert framer.pending == 0
    assert framer.finish() == b""


def test_lines_are_bytes_of_their_own() -> None:
    framer = LineFramer()
    lines = [*framer.feed(b"one\ntw"), *framer.feed(b"o\n")]
    assert lines == [b"one", b"two"]
    assert all(type(line) is bytes for line in lines)


def _seconds_for(size: int, slice_size: int) -> float:
    line = b"x" * size
    framer = LineFramer()
    started = time.process_time()
    for start in range(0, size, slice_size):
        assert framer.feed(line[start : start + slice_size]) == []
    assert framer.feed(b"\n") == [line]
    return time.process_time() - started


def test_long_line_is_framed_in_linear_time() -> None:
    # Quadratic cost would make 16 times the bytes cost 256 times the time. CPU time is counted, and there is room.
    small = min(_seconds_for(1_310_720, 4096) for _ in range(3))
    large = min(_seconds_for(20_971_520, 4096) for _ in range(2))
    assert large < 64 * max(small, 0.001)
