"""Patterns and texts made by chance, for comparing with other engines, and Go's own to ask."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GO = os.environ.get("DELTALOOP_GO") or shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""
PROGRAM = Path(__file__).parents[1] / "interop" / "go_patterns"
_PIECES = (
    *"abcksé01_- \n.^$|()*+?[]αΣσς{}\\#",
    *("ß", "ſ", "\u212a", "(?:", "(?i)", "(?i:", "(?m)", "(?s)", "(?U)", "(?m:", "(?P<n>", "(?<m>", "*?", "+?", "??"),
    *("{2}", "{0,1}", "{1,3}", "{2,}", "{0}", "{,2}", "{1", "[^", "a-c", "[a-z]", "[^a-c]", "[[:alpha:]]"),
    *("[[:^digit:]]", "[[:word:]]", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "\\A", "\\z", "\\pL"),
    *("\\PL", "\\p{Lu}", "\\p{^Lu}", "\\p{Greek}", "\\p{letter}", "\\P{ll}", "\\Q", "\\E", "\\.", "\\n", "\\x41"),
    *("\\x{e9}", "\\07", "\\-", "{1000}", "{3}", "(|", "()", "[\\d-", "[]a]", "(?i)[k-t]", "[^\\W]", "[\\PN]"),
    *("(?-i)", "(?i-s)", "(?x)", "\\Z", "(?=", "\\p{Any}", "\\p{LC}", "\\p{L", "[[:foo:]]", "[z-a]"),
)  # fmt: skip
TEXTS = (
    *("", "a", "b", "ab", "abc", "aab", "k", "K", "\u212a", "ſ", "s", "S", "é", "É", "ß", "ẞ", "0", "1 a", "a_b-c"),
    *("\n", "a\n", "\na", "a\nb", "AB", "Σς", "σ", "αβ", "aaa", "aaaaaa", "  ", "x.y", "(a)", "[a]", "{1", "a{,2}"),
    *("\\", "#", "abcabcabc", "İ", "ı", "I", "i", "ǅ", "Ǆ"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    pattern: str
    error: str
    matches: tuple[bool, ...]


def some_patterns(number: int, *, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(_PIECES, k=chance.randint(1, chance.choice((3, 6, 10, 16))))) for _ in range(number)]


def build(folder: Path) -> Path:
    program = folder / "go_patterns"
    subprocess.run([GO, "build", "-o", str(program), "."], cwd=PROGRAM, check=True, timeout=120)
    return program


def ask_go(program: Path, patterns: Sequence[str], texts: Sequence[str]) -> list[Asked]:
    lines = "\n".join(json.dumps({"Pattern": pattern, "Texts": texts}) for pattern in patterns)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        Asked(pattern, answer["error"], tuple(answer["matches"]))
        for pattern, answer in zip(patterns, answers, strict=True)
    ]
