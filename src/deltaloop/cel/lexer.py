"""Lexer of expressions, and the values of its literals.

Source: cel-spec doc/langdef.md, "Syntax"; cel-go parser/gen/CEL.g4; cel-spec doc/langdef.md, "String and Bytes
Values"; cel-go parser/unescape.go.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from deltaloop.cel.values import INT_LEAST, INT_MOST, UINT_MOST, Uint

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = "|".join(
    [
        r"[rR]\"\"\"(?s:.*?)\"\"\"",
        r"[rR]'''(?s:.*?)'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf"\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"",
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*\"",
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_WORDS: Final = re.compile(
    "|".join(
        [
            r"(?P<space>(?:[\t \r\n\f]|//[^\n]*)+)",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            rf"(?P<string>{_STRING})",
            r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        ]
    )
)
# Start of a string without an end or with an invalid escape, up to the invalid character.
_BEGUN: Final = re.compile(rf"(?P<quote>[\"'])(?:{_ESCAPE}|(?!(?P=quote))[^\\\n\r])*(?:\\.?)?")
# Words that cannot be names.
_WORD_SIGNS: Final = frozenset({"in", "true", "false", "null"})


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokens(source: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens of a text, with a token of the kind ``end``, and the unknown tokens."""
    found: list[Token] = []
    unknown: list[Token] = []
    at = 0
    while at < len(source):
        match = _WORDS.match(source, at)
        if match is None:
            unknown.append(Token("unknown", _unknown(source, at), at))
            at += len(unknown[-1].text)
            continue
        kind = match.lastgroup or ""
        if kind != "space":
            text = match.group()
            found.append(Token("sign" if text in _WORD_SIGNS else kind, text, at))
        at = match.end()
    found.append(Token("end", "<EOF>", at))
    return found, unknown


def _unknown(source: str, at: int) -> str:
    """Return the unknown characters. For a string, they end at its first invalid character."""
    match = _BEGUN.match(source, at)
    return match.group() if match is not None else source[at]


_ESCAPED: Final = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7][0-7])|([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))"
)
_SHORT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST: Final = 0x10FFFF


class MalformedLiteralError(ValueError):
    """A literal is invalid. The message is cel-go's."""


def string_value(text: str) -> str:
    body, raw = _body(text)
    return body if raw else _ESCAPED.sub(_character, body)


def bytes_value(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPED.finditer(body):
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
