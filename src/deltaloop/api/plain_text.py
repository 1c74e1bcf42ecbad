r"""Text from outside, made fit for a terminal or a log: no control characters, and not without end.

The name in a Lease, the message of a Status, a header: others write them than those who read them. A line feed in them
would forge a log line, an escape sequence would drive the terminal, and marks of text direction would show another
order than is there. Such characters are written as Python writes them: ``\n``, ``\x1b``, ``\u202e``.

Source: Unicode TR 36 and TR 9; the characters are those of the categories Cc, Zl, Zp and Cs, and of Cf those that
change what others look like.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

LONGEST: Final = 4096

# C0, DEL, C1; direction marks, embeddings, overrides, isolates; separators; invisible operators, tags; halves of pairs.
_CONTROLS: Final = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_CONTROLS_IN_LINES: Final = _CONTROLS.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")


@cache  # compiling them takes longer than importing most modules, and few programs ever need them
def _controls(pattern: str = _CONTROLS) -> re.Pattern[str]:
    return re.compile(pattern)


def one_line(text: str, *, longest: int = LONGEST) -> str:
    """Return a text as one line that can be shown: control characters are escaped, the end is cut.

    Args:
        text: Any text.
        longest: Most characters that are kept of it; how many there were is added where some are missing.
    """
    shown = cut(text, longest=longest)
    return shown if shown.isprintable() else _controls().sub(_escaped, shown)


def indented(text: str, *, longest: int = 16 * LONGEST) -> str:
    """Return a text of several lines that can be shown; from the second on they are indented.

    So none of them can pass for a line of the log's own.
    """
    return _controls(_CONTROLS_IN_LINES).sub(_escaped, cut(text, longest=longest)).replace("\n", "\n  ")


def in_json(encoded: str) -> str:
    """Return JSON with the same value in which control characters are escaped; what JSON must escape is so already."""
    return encoded if encoded.isprintable() else _controls().sub(_escaped_in_json, encoded)


def cut(text: str, *, longest: int) -> str:
    """Return the beginning of a text, and how long it was if that is not all."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _escaped_in_json(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
