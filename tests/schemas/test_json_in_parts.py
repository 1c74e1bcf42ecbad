"""JSON in several calls is the same as in one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.schemas import json_in_parts
from deltaloop.schemas.decoding import duplicate_field_texts
from deltaloop.schemas.json_in_parts import PART, decode_in_parts, encode_sorted, size_of

_ENCODED_AT_ONCE = msgspec.json.Encoder(order="deterministic").encode
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=6),
    max_leaves=40,
)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_in_parts, "PART", 3)
    monkeypatch.setattr(json_in_parts, "_RUN", 2)
    monkeypatch.setattr(json_in_parts, "_DECODED_AT_ONCE", 8)


@pytest.mark.usefixtures("small_parts")
def test_decoding_in_parts_equals_whole() -> None:
    @given(_VALUES, st.sampled_from([None, 1]), st.booleans())
    def check(value: Any, indent: int | None, escaped: bool) -> None:
        assert encode_sorted(value) == _ENCODED_AT_ONCE(value)
        text = json.dumps(value, indent=indent, ensure_ascii=escaped).encode(errors="surrogatepass")
        assert decode_in_parts(text) == msgspec.json.decode(text)

    check()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "text",
    [
        b'{"a": [1, 2, 3, 4], "b": }',
        b'{"a": [1, 2, 3, 4], "b": "\xff"}',
        b'{"a": [1, 2, 3, 4], "b": "\\u12"}',
        b'[1, 2, 3, 4, 5, {"a": 01}]',
        b'{"a": [1, 2, 3, 4]} x',
        b"[1, 2, 3, 4, 5, 6, 7",
        b"[1, 2, 3, 4, 5, 6, ]",
        b"[1, 2, 3, 4, 5, 6 7]",
        b'[1, 2, 3, 4, 5, "a": 6]',
        b'{"a": 1, "b": 2, "c": 3, }',
        b'{"a": 1, "b": 2, 3}',
        b'{"a": {"b": [1, 2, 3, 4, 5, 6, 7}}',
        b'{"a": {"b": [1, 2, 3, 4, 5, 6, 7]]}',
        b'{"a": 1, "b": "a long text \\ud83d"}',
        b'{"a": 1, "b": "a long text',
        b'"a long text',
    ],
)
def test_malformed_json_error_equals_msgspec_error(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as one:
        msgspec.json.decode(text)
    with pytest.raises(type(one.value)) as parts:
        decode_in_parts(text)
    assert str(parts.value) == str(one.value)


@pytest.mark.usefixtures("small_parts")
def test_last_duplicate_member_wins() -> None:
    assert decode_in_parts(b'{"a": [1, 2, 3, 4, 5, 6], "a": {"b": [1, 2, 3, 4]}, "a": 7}') == {"a": 7}


@pytest.mark.parametrize(
    "value",
    [
        {f"k{number:06}": "v" for number in range(3 * PART)},
        {"spec": [{"name": str(number)} for number in range(3 * PART)]},
        {"data": {"one": "x" * (100 * PART), "two": "y"}},
    ],
    ids=["many members", "many items", "long text"],
)
def test_large_values(value: dict[str, Any]) -> None:
    assert size_of(value) > PART
    assert encode_sorted(value) == _ENCODED_AT_ONCE(value)
    assert decode_in_parts(encode_sorted(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"0," * 150_000 + b"0]",
        b"{" + b",".join(b'"%x":0' % number for number in range(40_000)) + b"}",
        b"[" + b'{"a":{"b":[{"c":[0]}]}},' * 12_000 + b"0]",
        b'["' + b"\\ud83d\\ude00" * 30_000 + b'"]',
        b'{"a":"' + "\u00e4".encode() * 150_000 + b'"}',
        b'{"a":[' + b"0," * 150_000 + b"]}",
    ],
    ids=["items", "members", "containers", "escapes", "characters", "malformed at the end"],
)
def test_decode_calls_are_limited_to_part_size(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def decode(part: bytes) -> Any:
        sizes.append(len(part))
        return msgspec.json.decode(part)

    monkeypatch.setattr(json_in_parts, "_decode", decode)
    with suppress(msgspec.DecodeError):
        decode_in_parts(text)
    assert max(sizes) < 130 * 1024


def test_duplicate_fields_are_found_in_large_bodies() -> None:
    members = ",".join(f'"k{number}": ""' for number in range(20_000))
    body = f'{{"data": {{{members}, "k1": "", "k2": {{"a": [{{"b": 1, "b": 2}}]}}}}}}'.encode()
    assert duplicate_field_texts(body) == [f'duplicate field "data.{path}"' for path in ("k1", "k2", "k2.a[0].b")]
    assert duplicate_field_texts(body[:-1]) == []


def test_text_with_too_many_levels_is_not_decoded() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        with pytest.raises(RecursionError):
            decode_in_parts(opening * 100_000 + "0" + closing * 100_000)
