"""Count the matches of the rules, and the words and sentences around them."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.prose.texts import Passage

_RULES: Final = Path(__file__).with_name("rules.toml")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE: Final = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z0-9])")
_ABBREVIATION: Final = re.compile(r"\b(e\.g|i\.e|vs|etc)\.$")
_SIGNS: Final = {
    "reader": re.compile(r"\b(you|your|we|let's)\b", re.IGNORECASE),
    "modal": re.compile(r"\b(can|cannot|can't|should|must)\b", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern to avoid, and advice."""

    name: str
    pattern: re.Pattern[str]
    kinds: frozenset[str]
    advice: str


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules of ``rules.toml``."""
    return tuple(_rule(name, entry) for name, entry in tomllib.loads(_RULES.read_text()).items())


def _rule(name: str, entry: dict[str, Any]) -> Rule:
    is_start = entry.get("start", False)
    pattern = rf"\A(?:{entry['pattern']})" if is_start else rf"(?<!\w)(?:{entry['pattern']})(?!\w)"
    flags = 0 if is_start else re.IGNORECASE
    return Rule(name, re.compile(pattern, flags), frozenset(entry.get("kinds", ())), entry["advice"])


@dataclass(slots=True)
class Count:
    """Totals of some passages."""

    words: int = 0
    sentences: int = 0
    marked: int = 0
    matches: Counter[str] = field(default_factory=Counter[str])
    signs: Counter[str] = field(default_factory=Counter[str])

    @property
    def score(self) -> float:
        """Matches per 1 000 words."""
        return self.per_thousand(self.matches.total())

    @property
    def share(self) -> float:
        """Marked sentences in percent."""
        return 100 * self.marked / self.sentences if self.sentences else 0.0

    def per_thousand(self, number: int) -> float:
        """Return a number per 1 000 words."""
        return 1000 * number / self.words if self.words else 0.0


def sentences(text: str) -> list[str]:
    """Split a passage into sentences."""
    found: list[str] = []
    for part in _SENTENCE.split(text):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def marks(sentence: str, kind: str) -> Iterator[Rule]:
    """Yield the rules that match a sentence, once for each match."""
    is_question = sentence.rstrip("\"')").endswith("?")
    for rule in rules():
        if (rule.kinds and kind not in rule.kinds) or (is_question and rule.name in ("what", "who", "empty-start")):
            continue
        for _ in rule.pattern.finditer(sentence):
            yield rule


def count(passages: Iterable[Passage]) -> Count:
    """Count the words, sentences and matches of passages."""
    total = Count()
    for passage in passages:
        for sentence in sentences(passage.text):
            words = len(_WORD.findall(sentence))
            if not words:
                continue
            found = [rule.name for rule in marks(sentence, passage.kind)]
            total.words += words
            total.sentences += 1
            total.marked += bool(found)
            total.matches.update(found)
            total.signs.update({name: len(sign.findall(sentence)) for name, sign in _SIGNS.items()})
    return total
