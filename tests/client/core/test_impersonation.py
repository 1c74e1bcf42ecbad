"""Upstream's cases: client-go transport/round_trippers_test.go (``TestImpersonationRoundTripper``)."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.client import Impersonation
from deltaloop.client.core.impersonation import impersonation_headers
from deltaloop.errors import ConfigError
from tests.having import having


def test_all_fields() -> None:
    whom = Impersonation(
        user="user",
        uid="uid-a",
        groups=("one", "two"),
        extra={"first": ("A", "a"), "alpha.example.com/beta": ("B",), "ALPHA": ("%",)},
    )
    assert impersonation_headers(whom) == [
        ("Impersonate-User", "user"),
        ("Impersonate-Uid", "uid-a"),
        ("Impersonate-Group", "one"),
        ("Impersonate-Group", "two"),
        ("Impersonate-Extra-first", "A"),
        ("Impersonate-Extra-first", "a"),
        ("Impersonate-Extra-alpha.example.com%2Fbeta", "B"),
        ("Impersonate-Extra-ALPHA", "%"),
    ]


@pytest.mark.parametrize(
    ("key", "escaped"),
    [
        ("simple", "simple"),
        ("a b", "a%20b"),
        ("a%b", "a%25b"),
        ("iam.example.com/foo:bar", "iam.example.com%2Ffoo%3Abar"),
        ("ᛏ", "%E1%9B%8F"),
        ("\ud800", "%3F"),
        ("a\r\nb", "a%0D%0Ab"),
    ],
)
def test_extra_keys_are_escaped_in_header_names(key: str, escaped: str) -> None:
    headers = impersonation_headers(Impersonation(user="u", extra={key: ("v",)}))
    assert headers[1] == (f"Impersonate-Extra-{escaped}", "v")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"user": "", "groups": ("g",)}, "as"),
        ({"user": "u\r\nX: y"}, "as"),
        ({"user": "u", "uid": "\n"}, "as-uid"),
        ({"user": "u", "groups": ("ok", "a\nb")}, "as-groups"),
        ({"user": "u", "extra": {"k": ("\ud800",)}}, "as-user-extra"),
        ({"user": "u", "extra": {"": ("v",)}}, "as-user-extra"),
    ],
)
def test_invalid_impersonation_raises_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, check=having(argument=message)):
        Impersonation(**fields)
