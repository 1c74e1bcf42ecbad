"""Lexer of expressions.

Source: cel-spec doc/langdef.md, "Syntax"; cel-go parser/gen/CEL.g4.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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
