from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.client.core.http_request import header_lines, target
from tests.having import having

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=90)


@given(st.dictionaries(UNICODE, UNICODE, max_size=4))
def test_query_is_encoded_losslessly(query: dict[str, str]) -> None:
    line = target("/api", query)
    assert line.isascii()
    assert not set(line) & set(" \r\n\t#")
    assert dict(parse_qsl(line.partition("?")[2], keep_blank_values=True)) == query


def test_safe_characters_are_not_quoted() -> None:
    assert target("/api/a%3Ab%7E", {"x": "a/b", "y": "a=b,c in (d)"}) == "/api/a%3Ab%7E?x=a/b&y=a%3Db,c%20in%20(d)"
    assert target("/x", {}) == "/x"


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a#b", "/ä", "/a\x00", "/a\x7f", "/\udcff"])
def test_unquoted_path_is_rejected(path: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="path")):
        target(path, {})


def test_query_with_lone_surrogate_is_rejected() -> None:
    for query in ({"x": "app=\ud800"}, {"\udfff": "app"}):
        with pytest.raises(InvalidArgumentError, check=having(argument=f"query parameter {next(iter(query))!r}")):
            target("/x", query)


def test_headers_are_lines() -> None:
    assert header_lines([("A", "b"), ("C", "ä\t")]) == "A: b\r\nC: ä\t\r\n".encode()
    assert header_lines([]) == b""


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", "b\r\nC: d"), ("A", "b\nC"), ("A", "\x00"), ("A:", "b"), ("A b", "c"), ("", "b"), ("Ä", "b")],
)
def test_header_with_line_break_is_rejected_without_its_value(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=f"header {name!r}")) as caught:
        header_lines([("Ok", "ok"), (name, value)])
    assert len(value) < 2 or value not in str(caught.value)
