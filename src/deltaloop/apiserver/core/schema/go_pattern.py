r"""Patterns of a schema are Go's regular expressions; Python's differ in a few spellings.

``\z`` is Python's ``\Z``, a POSIX class such as ``[[:alpha:]]`` is written out, and ``$`` means the very end, not
the place before a last newline. Matching is of ASCII classes, as in Go.
"""

from __future__ import annotations

import re
import warnings
from typing import Final

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\t\n\v\f\r ",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
    "punct": r"!-/:-@\[-`{-~",
}
_TOKEN: Final = re.compile(r"\\.|\[:(\w+):\]|[\[\]$]", re.DOTALL)


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return the pattern compiled; None if there is none, or if Python cannot read it."""
    if not pattern:
        return None
    in_class = False

    def rewrite(match: re.Match[str]) -> str:
        nonlocal in_class
        token = match[0]
        if match[1] is not None:
            return _CLASSES.get(match[1], token)
        if token == "[":
            opened, in_class = in_class, True
            return r"\[" if opened else token
        if token == "]":
            in_class = False
        elif token == r"\z" or (token == "$" and not in_class):
            return r"\Z"
        return token

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(_TOKEN.sub(rewrite, pattern), re.ASCII)
    except re.error:
        return None
