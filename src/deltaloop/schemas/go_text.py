"""Text as Go's messages have it."""

from __future__ import annotations

from typing import Final

_SHORT: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """Return a text in quotes, as Go's ``%q`` writes it."""
    return f'"{"".join(_SHORT.get(sign) or (sign if sign.isprintable() else _escaped(ord(sign))) for sign in text)}"'


def _escaped(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
