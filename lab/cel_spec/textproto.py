"""Reads text protobufs: what the specification's tests are written in. A message is a dict from field to values."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

Value: TypeAlias = "str | bytes | Message"
Message: TypeAlias = "dict[str, list[Value]]"

WORD = re.compile(
    r"""(?P<space>[\s,;]+|\#[^\n]*)
      |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      |(?P<any>\[[A-Za-z0-9_.\-/]*[./][A-Za-z0-9_.\-/]*\])
      |(?P<sign>[{}:\[\]<>])
      |(?P<word>[-+A-Za-z0-9_.]+)""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(rb"\\(?:([abfnrtv\"'\\?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
SHORT = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class Word(NamedTuple):
    kind: str
    text: str


def read(text: str) -> Message:
    """Return the message that a text is."""
    words = [Word(match.lastgroup or "", match.group()) for match in WORD.finditer(text) if match.lastgroup != "space"]
    words.append(Word("end", ""))
    message, at = _message(words, 0, "")
    assert words[at].kind == "end", words[at : at + 5]
    return message


def _message(words: list[Word], at: int, closing: str) -> tuple[Message, int]:
    message: Message = {}
    while words[at].kind != "end" and words[at].text != closing:
        name = words[at].text
        at += 1
        if words[at].text == ":":
            at += 1
        if words[at] == Word("sign", "["):
            at += 1
            while words[at].text != "]":
                value, at = _value(words, at)
                message.setdefault(name, []).append(value)
            at += 1
        else:
            value, at = _value(words, at)
            message.setdefault(name, []).append(value)
    return message, at


def _value(words: list[Word], at: int) -> tuple[Value, int]:
    word = words[at]
    if word.text in {"{", "<"} and word.kind == "sign":
        message, at = _message(words, at + 1, "}" if word.text == "{" else ">")
        return message, at + 1
    if word.kind != "string":
        return word.text, at + 1
    parts: list[bytes] = []
    while words[at].kind == "string":
        parts.append(ESCAPE.sub(_unescaped, words[at].text[1:-1].encode()))
        at += 1
    return b"".join(parts), at


def _unescaped(match: re.Match[bytes]) -> bytes:
    short, octal, byte, four, eight = match.groups()
    if short is not None:
        return SHORT.get(short, short)
    if octal is not None:
        return bytes([int(octal, 8)])
    return bytes([int(byte, 16)]) if byte is not None else chr(int(four or eight, 16)).encode()
