from __future__ import annotations

import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.schemas.patterns.matching import Pattern, compile_pattern, pattern_error
from deltaloop.schemas.patterns.syntax import ASCII, LAST, PatternSyntaxError, folded, parse_pattern
from deltaloop.schemas.work import Account, WorkLimitError, limited

# Here Go and Python agree. They do not about a "$" before a last newline, nor (before Python 3.14) about a "\\B" in an
# empty text.
PIECES = st.sampled_from(
    [
        "a",
        "b",
        "-",
        ".",
        "[ab]",
        "[^a]",
        "[a-c0-9]",
        r"\d",
        r"\w",
        r"\s",
        r"\b",
        "^",
        r"\A",
        "(?:ab|c)",
        "(a|)",
        "(?:x?)",
    ]
)
REPEATED = st.tuples(PIECES, st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"])).map(
    lambda pair: pair[0] + (pair[1] if pair[0] not in ("^", r"\A", r"\b") else "")
)
PATTERNS = st.recursive(
    st.lists(REPEATED, min_size=1, max_size=4).map("".join),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
    max_leaves=6,
)


@given(PATTERNS, st.text("abc0-_x \n", max_size=12))
def test_matches_agree_with_python_re(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).matches(text) is (re.search(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("^a$", ["a"], ["a\n", "ba", ""]),
        ("(?m)^a$", ["a\n", "b\na"], ["ab"]),
        ("a.b", ["a b"], ["a\nb"]),
        ("(?s)a.b", ["a\nb"], ["ab"]),
        ("^(?i)kelvin$", ["KELVIN", "\u212aelvin"], ["kelvi"]),
        ("(?i:a)b", ["Ab", "ab"], ["aB"]),
        (r"^\pL+$", ["aβ", "Ж"], ["a1"]),
        (r"^\p{Greek}$", ["β"], ["b"]),
        (r"^\P{^Lu}$", ["A"], ["a"]),
        (r"^\w$", ["a", "_"], ["é"]),
        (r"^\s$", [" ", "\t"], ["\v", "\u00a0"]),
        (r"^[[:space:]]$", ["\v"], ["\u00a0"]),
        (r"^\Qa.b\E+$", ["a.b", "a.bb"], ["axb"]),
        (r"^\x{1F600}$", ["😀"], ["a"]),
        (r"\z", ["", "a"], []),
        ("a{2,3}$", ["aa", "xaaa"], ["a"]),
        ("^(?:a{2}){2}$", ["aaaa"], ["aaa", "aaaaa"]),
        ("^(?:a?){3}$", ["", "aaa"], ["aaaa"]),
        ("^(?:(?:a|b)*c)*$", ["", "abc", "cc"], ["ab"]),
        ("^$", [""], ["\n"]),
        ("", ["", "a"], []),
        ("a||b", ["", "x"], []),
        (r"\bfoo\b", ["a foo"], ["foobar", "afoo"]),
        (r"\Boo", ["foo"], ["oo"]),
    ],
)
def test_pattern_matches(pattern: str, right: list[str], wrong: list[str]) -> None:
    compiled = compile_pattern(pattern)
    assert [text for text in right if not compiled.matches(text)] == []
    assert [text for text in wrong if compiled.matches(text)] == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("(" * 1002 + ")" * 1002, f"expression nests too deeply: `{'(' * 1002 + ')' * 1002}`"),
        ("(?:a{1000}){2}", "invalid repeat count: `{2}`"),
        ("ab)", "unexpected ): `ab)`"),
        ("(?P<1a b>x)", "invalid named capture: `(?P<1a b>`"),
    ],
)
def test_invalid_pattern_is_rejected(pattern: str, why: str) -> None:
    assert pattern_error(pattern) == f"error parsing regexp: {why}"
    with pytest.raises(PatternSyntaxError):
        compile_pattern(pattern)


def test_too_large_pattern_is_rejected() -> None:
    pattern = "(?:abcdefgh){1000}" * 420
    assert pattern_error(pattern).startswith("error parsing regexp: expression too large: ")
    assert pattern_error("(?:abcdefgh){1000}" * 400) == ""


def steps(run: Callable[[], object]) -> int:
    """Count the lines that are run."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_globals.get("__name__", "").startswith("deltaloop."):
            count += event == "line"
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a"),
        ("^(a|a)*$", "a"),
        ("(.*)(.*)(.*)(.*)(.*)x$", "ab"),
        (r"^(\w+\s?)*$", "ab "),
        ("(a?){40}a{40}b", "a"),
        ("(?:a|b)*c(?:a|b|c){12}$", "abcabbcaacbc"),
        ("^([a-z0-9]([-a-z0-9]*[a-z0-9])?\\.)+$", "a-b."),
    ],
)
def test_matching_time_is_linear(pattern: str, text: str) -> None:
    def needed(size: int) -> int:
        compiled = Pattern(parse_pattern(pattern))
        whole = (text * size)[:size] + "!"
        return steps(lambda: compiled.matches(whole))

    short, long = needed(1500), needed(3000)
    assert long < 2.2 * short


def test_repeated_matching_reuses_states() -> None:
    compiled = Pattern(parse_pattern("^([a-z0-9]([-a-z0-9]*[a-z0-9])?\\.)+$"))
    text = "a-b." * 500
    compiled.matches(text)
    assert steps(lambda: compiled.matches(text)) < 12 * len(text)


def test_evicted_states_are_rebuilt() -> None:
    # Each of the last 12 letters is remembered: 4096 sets of places, twice as many as are kept.
    compiled = Pattern(parse_pattern("(?:a|b)*a(?:a|b){11}c"))
    text = "".join("ab"[number.bit_count() % 2] for number in range(20_000))
    assert not compiled.matches(text)
    assert compiled.matches(text + "a" + "b" * 11 + "c")


def test_ascii_case_folding_matches_table() -> None:
    for rune in range(0x80):
        by_table = folded(((rune, rune), (LAST, LAST)))
        assert (*folded(((rune, rune),)), (LAST, LAST)) == by_table, chr(rune)
    assert folded(ASCII) == ((0, 0x7F), (0x17F, 0x17F), (0x212A, 0x212A))


def test_repeated_text_creates_no_states() -> None:
    pattern = compile_pattern("(x?){900}y")
    assert not pattern.matches("abcdef")
    with limited(Account(0)):
        assert not pattern.matches("abcdef")
        assert not pattern.matches("fedcba")


@pytest.mark.parametrize(
    "text",
    [
        "(x?){900}y",
        "((a?){0,30}){0,33}b",
        "(a{1,30}){1,33}b",
        "(?:(?:a?){30}){33}b",
        "(a|b)*a(a|b){200}c",
        "|".join(f"w{number}" for number in range(500)),
        "".join(f"[a{chr(0x4E00 + number)}]?" for number in range(500)),
    ],
)
def test_new_states_are_charged_to_account(text: str) -> None:
    pattern = Pattern(parse_pattern(text))
    sample = "abba" * 100
    with limited(Account(1000)), pytest.raises(WorkLimitError):
        pattern.matches(sample)
    with limited(Account(1000)), pytest.raises(WorkLimitError):
        pattern.find(sample)
    assert pattern.matches(sample) is (pattern.find(sample) is not None)


def test_large_automata_are_evicted_and_rebuilt() -> None:
    patterns = [Pattern(parse_pattern(f"(a|b)*a(a|b){{{300 + number}}}c")) for number in range(3)]
    text = "".join("ab"[number * number % 7 % 2] for number in range(600))
    for _ in range(2):
        for pattern in patterns:
            assert pattern.find(text) is None
            assert not pattern.matches(text)
            pattern.forget()


def test_long_text_is_matched_in_chunks() -> None:
    text = "x" * 10_000 + "ab" + "y" * 10_000
    assert compile_pattern("a.").find(text) == (10_000, 10_002)
    assert compile_pattern(r"\bx+a").find(text) == (0, 10_001)
    assert compile_pattern("y$").find(text, 15_000) == (len(text) - 1, len(text))
    assert compile_pattern("xab?y").matches(text)
    assert compile_pattern("[^x]{2}").find_all(text, 2) == ["ab", "yy"]


def test_pattern_is_used_by_several_threads_at_once() -> None:
    pattern = Pattern(parse_pattern("(a|b)*a(a|b){8}c"))
    texts = ["".join("ab"[number >> place & 1] for place in range(12)) + "c" for number in range(400)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(pattern.matches, texts))
    assert found == [text[3] == "a" for text in texts]
