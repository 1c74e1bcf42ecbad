"""Upstream's cases: apimachinery pkg/util/net/http_test.go, ``TestParseWarningHeader``."""

from __future__ import annotations

import pytest

from deltaloop.client.core.warning_headers import WarningMemory, all_warnings, parse_warning


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ('299 - "old"', ["old"]),
        ('299 agent "with \\"quotes\\" and \\\\"', ['with "quotes" and \\']),
        ('299 - "one", 299 - "two"', ["one", "two"]),
        ('299 - "dated" "Tue, 15 Nov 1994 08:12:31 GMT", 299 - "two"', ["dated", "two"]),
        ('199 - "miscellaneous"', []),
        ('299 - ""', []),
        ("299 - unquoted", []),
        ('299 - "open', []),
        ("", []),
        ('299 - "good", rubbish', ["good"]),
    ],
)
def test_parsing(header: str, texts: list[str]) -> None:
    assert parse_warning(header) == texts


def test_each_warning_is_new_once() -> None:
    memory = WarningMemory()
    assert memory.new_warnings(['299 - "a"', '299 - "b"']) == ["a", "b"]
    assert memory.new_warnings(['299 - "a"', '299 - "c"']) == ["c"]
    assert memory.new_warnings([]) == []


def test_memory_is_bounded() -> None:
    memory = WarningMemory(size=2)
    assert memory.new_warnings(['299 - "a"', '299 - "b"']) == ["a", "b"]
    assert memory.new_warnings(['299 - "a"']) == []
    assert memory.new_warnings(['299 - "c"']) == ["c"]
    assert memory.new_warnings(['299 - "a"']) == []
    assert memory.new_warnings(['299 - "b"']) == ["b"]


def test_texts_are_redacted() -> None:
    assert memory_text('299 - "token=s3cret-value"') == "token=<redacted>"


def memory_text(header: str) -> str:
    return WarningMemory().new_warnings([header])[0]


def test_warnings_of_response_are_unique_and_redacted() -> None:
    headers = ['299 - "b", 299 - "a"', '299 - "b"', '199 - "other"', '299 - "Bearer s3cret-token-value"']
    found = all_warnings(headers)
    assert found[:2] == ["b", "a"]
    assert len(found) == 3
    assert "s3cret" not in found[2]


def test_how_many_are_remembered() -> None:
    memory = WarningMemory()
    headers = [f'299 - "{number}"' for number in range(512)]
    assert len(memory.new_warnings(headers)) == 512
    assert memory.new_warnings(headers) == []
    assert memory.new_warnings(['299 - "another"']) == ["another"]
    assert memory.new_warnings(headers[:1]) == ["0"], "the one of the longest time ago was forgotten"
