"""Search strings with RE2 patterns: ``"abc 123".find("[0-9]+")``.

Source: k8s.io/apiserver pkg/cel/library/regex.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltaloop.cel.faults import EvaluationError
from deltaloop.cel.library import Library, method
from deltaloop.cel.types import INT, STRING, list_of
from deltaloop.schemas.patterns.matching import Pattern, compile_pattern
from deltaloop.schemas.patterns.syntax import PatternSyntaxError


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternSyntaxError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    match = _pattern(pattern).find(text)
    return "" if match is None else text[slice(*match)]


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return _pattern(pattern).find_all(text, most)


_FIND: Final = (method("string_find_string", (STRING, STRING), STRING, _find),)
_FIND_ALL: Final = (
    method("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
    method("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
)
PATTERNS: Final = Library(
    "kubernetes.regex",
    {
        name: tuple(replace(overload, pattern=1) for overload in overloads)
        for name, overloads in (("find", _FIND), ("findAll", _FIND_ALL))
    },
)
