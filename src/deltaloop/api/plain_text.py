r"""Make untrusted text safe for terminals and logs.

A line feed could forge a log line, an escape sequence could control the terminal, and text direction marks could change
the visible order.

Source: Unicode TR 36 and TR 9; the characters are those of the categories Cc, Zl, Zp and Cs, and of Cf those that
change the look of others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

LONGEST: Final = 4096

# C0, DEL, C1, direction marks, embeddings, overrides, isolates, separators, invisible operators, tags, lone surrogates.
_CONTROLS: Final = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_CONTROLS_IN_LINES: Final = _CONTROLS.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")


@cache  # compiled on use, because it takes longer than importing most modules
def _controls(pattern: str = _CONTROLS) -> re.Pattern[str]:
    return re.compile(pattern)


def one_line(text: str, *, longest: int = LONGEST) -> str:
    """Return a text as one line with escaped control characters, cut to ``longest`` characters with its length."""
    shown = cut(text, longest=longest)
    return shown if shown.isprintable() else _controls().sub(_escaped, shown)


def indented(text: str, *, longest: int = 16 * LONGEST) -> str:
    """Return lines with escaped control characters, indented so that they cannot imitate log lines."""
    return _controls(_CONTROLS_IN_LINES).sub(_escaped, cut(text, longest=longest)).replace("\n", "\n  ")


def in_json(encoded: str) -> str:
    """Return equivalent JSON in which all control characters are escaped."""
    return encoded if encoded.isprintable() else _controls().sub(_escaped_in_json, encoded)


def cut(text: str, *, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _escaped_in_json(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
