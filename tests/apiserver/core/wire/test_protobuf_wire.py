from __future__ import annotations

import pytest

from deltaloop.apiserver.core.wire.protobuf import (
    FIXED32,
    FIXED64,
    GROUP,
    LENGTH,
    VARINT,
    MalformedMessageError,
    WireField,
    read_fields,
    read_varints,
    signed,
)


def fields(data: bytes) -> list[WireField]:
    return list(read_fields(data, (0, len(data)), message="M"))


def refused(data: bytes) -> str:
    with pytest.raises(MalformedMessageError) as caught:
        fields(data)
    return str(caught.value)


def test_every_wire_type_is_located() -> None:
    assert fields(b"\x08\x96\x01") == [(1, VARINT, 150, (3, 3))]
    assert fields(b"\x11" + b"x" * 8) == [(2, FIXED64, 0, (1, 9))]
    assert fields(b"\x1a\x02ab") == [(3, LENGTH, 0, (2, 4))]
    assert fields(b"\x25abcd") == [(4, FIXED32, 0, (1, 5))]
    assert fields(b"") == []


def test_group_is_skipped_with_its_content() -> None:
    inner = b"\x08\x01" + b"\x11" + b"x" * 8 + b"\x1a\x01a" + b"\x25abcd"
    nested = b"\x0b" + inner + b"\x13\x14" + b"\x0c"
    assert fields(nested + b"\x08\x05") == [(1, GROUP, 0, (1, len(nested))), (1, VARINT, 5, (len(nested) + 2,) * 2)]


def test_group_nesting_is_limited_only_by_body_length() -> None:
    assert fields(b"\x0b" * 100_000 + b"\x0c" * 100_000) == [(1, GROUP, 0, (1, 200_000))]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "unexpected EOF"),
        (b"\x08\x80", "unexpected EOF"),
        (b"\x0a\x02a", "unexpected EOF"),
        (b"\x11abc", "unexpected EOF"),
        (b"\x0b\x08\x01", "unexpected EOF"),
        (b"\x0b\x1a\x7f", "unexpected EOF"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "proto: integer overflow"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x00\x00", "proto: M: illegal tag 0 (wire type 0)"),
        (b"\x0c", "proto: M: wiretype end group for non-group"),
        (b"\x0e", "proto: illegal wireType 6"),
        (b"\x0b\x0f", "proto: illegal wireType 7"),
    ],
)
def test_malformed_input_gives_the_errors_of_the_real_decoder(data: bytes, message: str) -> None:
    assert refused(data) == message


def test_varint_is_truncated_to_64_bits() -> None:
    assert list(read_varints(b"\xff" * 9 + b"\x7f\x05", (0, 11))) == [2**64 - 1, 5]


def test_numbers_are_truncated_to_their_size_and_sign() -> None:
    assert signed(2**64 - 1, 64) == -1
    assert signed(2**63, 64) == -(2**63)
    assert signed(2**32 + 7, 32) == 7
    assert signed(2**31, 32) == -(2**31)
