"""Names from ``generateName``."""

from __future__ import annotations

from typing import Final

GENERATED_TRIES: Final = 8
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 58
_SUFFIXES: Final = len(_LETTERS) ** _SUFFIX_LENGTH
_NEXT_SUFFIX: Final = 8_867_117  # shares no factor with _SUFFIXES, so that attempts do not repeat


def generated_name(base: str, *, random: float, attempt: int) -> str:
    """Return the base with five more characters (``pkg/storage/names/generate.go``); ``random`` is in [0, 1)."""
    number = (int(random * _SUFFIXES) + attempt * _NEXT_SUFFIX) % _SUFFIXES
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        number, position = divmod(number, len(_LETTERS))
        suffix += _LETTERS[position]
    return base[:_LONGEST_BASE] + suffix
