"""Values of string, bytes and number literals.

Source: cel-spec doc/langdef.md, "String and Bytes Values"; cel-go parser/unescape.go.
"""

from __future__ import annotations

import re
from typing import Final

from deltaloop.cel.values import INT_LEAST, INT_MOST, UINT_MOST, Uint

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7][0-7])|([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))"
)
_SHORT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST: Final = 0x10FFFF


class MalformedLiteralError(ValueError):
    """A literal is invalid. The message is cel-go's."""


def string_value(text: str) -> str:
    body, raw = _body(text)
    return body if raw else _ESCAPE.sub(_character, body)


def bytes_value(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(body):
        parts.extend((body[at : match.start()].encode(), _byte(match)))
        at = match.end()
    return b"".join([*parts, body[at:].encode()])


def int_value(text: str) -> int:
    number = int(text.replace("0x", ""), 16) if "0x" in text else _decimal(text)
    if INT_LEAST <= number <= INT_MOST:
        return number
    raise MalformedLiteralError("invalid int literal")


def uint_value(text: str) -> Uint:
    number = int(text[2:-1], 16) if text.startswith("0x") else _decimal(text[:-1])
    if number <= UINT_MOST:
        return Uint(number)
    raise MalformedLiteralError("invalid uint literal")


def double_value(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise MalformedLiteralError("invalid double literal")
    return number


def _decimal(text: str) -> int:
    """Return a decimal number. Too many digits, which Python rejects, return a number that does not fit 64 bits."""
    return int(text) if len(text) < 100 else UINT_MOST + 1  # 20 digits fit


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if text.startswith(('"""', "'''")) and len(text) >= 6 else 1
    return text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(match: re.Match[str]) -> str:
    short, octal, named = match.group(1), match.group(2), match[3]
    if short is not None:
        return _SHORT.get(short, short)
    code = int(octal, 8) if octal is not None else int(named[1:], 16)
    if code > _LAST or 0xD800 <= code <= 0xDFFF:
        raise MalformedLiteralError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    short, octal, named = match.group(1), match.group(2), match[3]
    if short is not None:
        return _SHORT.get(short, short).encode()
    if octal is not None:
        return bytes([int(octal, 8)])
    if named[0] in "uU":
        raise MalformedLiteralError("unable to unescape string")
    return bytes([int(named[1:], 16)])
