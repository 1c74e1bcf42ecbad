"""Continue tokens."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.apiserver.core.storage.listing import Continuation, InvalidTokenError, decode_continue, encode_continue


def test_token_format_matches_the_real_server() -> None:
    token = encode_continue(209, "c1\0")
    assert base64.urlsafe_b64decode(token + "==") == b'{"v":"meta.k8s.io/v1","rv":209,"start":"/c1\\u0000"}'
    assert "=" not in token


@given(st.integers(1, 2**62), st.from_regex(r"[a-z.-]{0,20}[a-z](/[a-z]{1,9})?\x00", fullmatch=True))
def test_tokens_round_trip(revision: int, start: str) -> None:
    if ".." not in start.split("/"):
        assert decode_continue(encode_continue(revision, start)) == Continuation(revision, start)


def test_start_without_a_slash_is_decoded() -> None:
    assert decode_continue(_token(v="meta.k8s.io/v1", rv=7, start="c1\0")) == Continuation(7, "c1\0")


def _token(**fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "%%%%",
        "ü",
        _token(v="v2", rv=1, start="a"),
        _token(v="meta.k8s.io/v1", rv=0, start="a"),
        _token(v="meta.k8s.io/v1", rv=-2, start="a"),
        _token(v="meta.k8s.io/v1", rv=1, start=""),
        _token(v="meta.k8s.io/v1", rv=1, start="../x"),
        _token(v="meta.k8s.io/v1", rv=1, start="//x"),
        _token(v="meta.k8s.io/v1", rv="1", start="a"),
    ],
)
def test_invalid_tokens_are_rejected(token: str) -> None:
    with pytest.raises(InvalidTokenError, match=r"^continue key is not valid: "):
        decode_continue(token)
