"""Unpacking within bounds: what went in comes out, however it is cut; a piece at a time, and not without end."""

from __future__ import annotations

import gzip
import zlib
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.client.core.unpacking import MOST_RATIO, PIECE, TooLargeError, Unpacker, UnpackingError

MIB = 1024 * 1024


def unpacked(encoding: str, slices: list[bytes], *, limit: int | None = None) -> bytes:
    unpacker = Unpacker(encoding, limit=limit)
    found = b"".join(piece for chunk in slices for piece in unpacker.feed(chunk))
    unpacker.finish()
    return found


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


@given(st.binary(max_size=2000), st.lists(st.integers(0, 5000), max_size=8), st.integers(0, 2000))
def test_chunks_of_any_size_unpack_to_the_original(data: bytes, cuts: list[int], border: int) -> None:
    members = gzip.compress(data[:border]) + gzip.compress(data[border:])
    assert unpacked("gzip", cut(members, cuts), limit=len(data)) == data
    assert unpacked("", cut(data, cuts), limit=len(data)) == data
    if data:
        with pytest.raises(TooLargeError, match=f"{len(data) - 1} bytes"):
            unpacked("identity", cut(data, cuts), limit=len(data) - 1)
        with pytest.raises(TooLargeError):
            unpacked("x-gzip", cut(members, cuts), limit=len(data) - 1)


def test_compressed_chunk_is_unpacked_in_pieces_up_to_limit() -> None:
    """A slice of 64 KiB that stands for 64 MiB: no more is unpacked than is asked for."""
    bomb = gzip.compress(bytes(64 * MIB))
    unpacker = Unpacker("gzip", limit=5 * MIB)
    pieces = unpacker.feed(bomb)
    assert [len(piece) for piece in islice(pieces, 5)] == [PIECE] * 5
    with pytest.raises(TooLargeError, match="5242880 bytes"):
        next(pieces)


def test_too_high_compression_ratio_is_rejected() -> None:
    pieces = Unpacker("gzip", limit=None).feed(gzip.compress(bytes(65 * MIB)))
    assert sum(len(piece) for piece in islice(pieces, 64)) == 64 * MIB
    with pytest.raises(TooLargeError, match=f"{MOST_RATIO} times"):
        next(pieces)


def test_all_bytes_are_unpacked_without_further_input() -> None:
    for size in (PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 300):
        packed = gzip.compress(bytes(size))
        assert len(unpacked("gzip", [packed[:1], packed[1:]], limit=size)) == size


def test_too_many_gzip_members_are_rejected() -> None:
    """Each would cost a copy of all that follows."""
    with pytest.raises(UnpackingError, match="16"):
        unpacked("gzip", [gzip.compress(b"") * 100])
    assert unpacked("gzip", [gzip.compress(b"a") * 16]) == b"a" * 16


@pytest.mark.parametrize("encoding", ["deflate", "br", "zstd", "gzip, gzip", "compress"])
def test_unrequested_encoding_is_rejected(encoding: str) -> None:
    with pytest.raises(UnpackingError):
        Unpacker(encoding, limit=None)


def test_truncated_or_invalid_gzip_is_rejected() -> None:
    packed = gzip.compress(b"some data")
    with pytest.raises(UnpackingError):
        unpacked("gzip", [packed[:-1]])
    for wrong in (b"plain text", zlib.compress(b"data"), packed[:-5] + b"\0" + packed[-4:]):
        with pytest.raises(UnpackingError):
            unpacked("gzip", [wrong])
    assert unpacked("gzip", []) == b""
