"""Patterns mean what they mean to Go: the same ones are right, the same sentence is said of the others, and the same
texts match.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.schemas.patterns.matching import compile_pattern, pattern_error
from deltaloop.schemas.patterns.syntax import folded
from lab.patterns.asking_go import GO, TEXTS, ask_go, build, some_patterns

pytestmark = [pytest.mark.skipif(not GO, reason="no Go"), pytest.mark.real_time]
# Go's Unicode is that of our tables as long as nobody raises it.
LETTERS = [chr(rune) for rune in (*range(0x250), *range(0x370, 0x530), 0x1E9E, 0x2126, 0x212A, 0x10400, 0x1E943)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("go"))


@pytest.mark.nightly
def test_random_patterns_match_go(program: Path) -> None:
    wrong: list[object] = []
    valid = 0
    for asked in ask_go(program, some_patterns(1500, seed=1), TEXTS):
        error = pattern_error(asked.pattern)
        matches = () if error else tuple(compile_pattern(asked.pattern).matches(text) for text in TEXTS)
        valid += not error
        if (error, matches) != (asked.error, asked.matches):
            wrong.append((asked, error, matches))
    assert wrong == []
    assert 300 < valid < 1200


@pytest.mark.nightly
def test_case_folding_matches_go(program: Path) -> None:
    patterns = [f"(?i)^\\x{{{ord(letter):x}}}$" for letter in LETTERS]
    wrong: list[object] = []
    for letter, asked in zip(LETTERS, ask_go(program, patterns, LETTERS), strict=True):
        same = {rune for low, high in folded(((ord(letter), ord(letter)),)) for rune in range(low, high + 1)}
        if {other for other, yes in zip(LETTERS, asked.matches, strict=True) if yes} != {
            other for other in LETTERS if ord(other) in same
        }:
            wrong.append(letter)
    assert wrong == []


@pytest.mark.nightly
def test_unicode_classes_match_go(program: Path) -> None:
    names = (
        "L",
        "Lu",
        "Nd",
        "N",
        "P",
        "Sc",
        "Z",
        "C",
        "Cn",
        "Greek",
        "Latin",
        "Han",
        "Any",
        "Assigned",
        "letter",
        "LC",
    )
    patterns = [f"\\{sign}{{{name}}}" for name in names for sign in "pP"]
    texts = [chr(rune) for rune in range(0, 0x3100, 7) if not 0xD800 <= rune < 0xE000]
    wrong = [
        asked.pattern
        for asked in ask_go(program, patterns, texts)
        if asked.error or asked.matches != tuple(compile_pattern(asked.pattern).matches(text) for text in texts)
    ]
    assert wrong == []
