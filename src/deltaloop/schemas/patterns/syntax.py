"""Parse patterns like Go's regexp/syntax, with its error messages.

Source: Go unicode, regexp/syntax (``unicodeTable``, ``cleanClass``); Go regexp/syntax/parse.go.
"""

from __future__ import annotations

import base64
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.schemas.patterns.unicode_tables import PACKED
from deltaloop.schemas.work import charge

RuneSet: TypeAlias = tuple[tuple[int, int], ...]

LAST: Final = 0x10FFFF
ANY: Final[RuneSet] = ((0, LAST),)
ASCII: Final[RuneSet] = ((0, 0x7F),)
NEWLINE: Final = 0x0A
DIGIT: Final[RuneSet] = ((0x30, 0x39),)
SPACE: Final[RuneSet] = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
WORD: Final[RuneSet] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
POSIX: Final[dict[str, RuneSet]] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ASCII,
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_BASE: Final = 36
# Letters that equal ASCII letters when case is ignored: KELVIN SIGN and LATIN SMALL LETTER LONG S.
_BEYOND_ASCII: Final = {"k": 0x212A, "s": 0x017F}


def joined(ranges: Iterable[tuple[int, int]]) -> RuneSet:
    result: list[tuple[int, int]] = []
    known = sorted(ranges)
    charge(10 * len(known))
    for low, high in known:
        if result and low <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(high, result[-1][1])
        else:
            result.append((low, high))
    return tuple(result)


@lru_cache(maxsize=64)
def negated(runes: RuneSet) -> RuneSet:
    charge(4 * len(runes))
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in runes:
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


@lru_cache(maxsize=64)
def folded(runes: RuneSet) -> RuneSet:
    """Return a set with all case variants of its letters."""
    return joined([*runes, *((other, other) for other in _others(runes))])


def _others(runes: RuneSet) -> Iterable[int]:
    if runes and runes[-1][1] <= ASCII[0][1]:  # true for most sets, and the tables are not needed
        for low, high in runes:
            for rune in range(low, high + 1):
                yield from _ascii_others(rune)
        return
    orbits, known = _tables().orbits, _letters()
    for low, high in runes:
        letters = known[bisect_left(known, low) : bisect_right(known, high)]
        charge(10 * (1 + len(letters)))
        for rune in letters:
            yield from (other for other in orbits[rune] if not low <= other <= high)


@cache
def _letters() -> list[int]:
    return sorted(_tables().orbits)


def _ascii_others(rune: int) -> tuple[int, ...]:
    sign = chr(rune)
    if not sign.isalpha():
        return ()
    other = ord(sign.swapcase())
    beyond = _BEYOND_ASCII.get(sign.lower())
    return (other,) if beyond is None else (other, beyond)


def named(name: str) -> RuneSet | None:
    """Return the set of a Unicode category or script, ignoring case and separators of the name, or None."""
    name = canonical(name)
    if name in ("Any", "Ascii"):
        return ANY if name == "Any" else ASCII
    tables = _tables()
    if name == "Assigned":
        return negated(_set("Cn"))
    name = "LC" if name == "Lc" else name
    if name not in tables.packed and name not in tables.aliases:
        return None
    return _set(tables.aliases.get(name, name))


def canonical(name: str) -> str:
    """Return a name in the form of the tables: the first letter in upper case, the others in lower case."""
    kept = [sign for sign in name if sign not in "_- "]
    return "".join(sign.upper() if place == 0 else _lower(sign) for place, sign in enumerate(kept))


def _lower(sign: str) -> str:
    return sign.lower() if sign.isascii() else sign


class _Tables(msgspec.Struct, frozen=True):
    """Tables of Unicode: packed sets by name, aliases, and the case variants of each letter."""

    packed: dict[str, str]
    aliases: dict[str, str]
    orbits: dict[int, tuple[int, ...]]


@cache
def _tables() -> _Tables:
    tables = _Tables({}, {}, {})
    for line in zlib.decompress(base64.b85decode(PACKED)).decode().splitlines():
        kind, _, rest = line.partition(" ")
        name, _, numbers = rest.partition(" ")
        if kind == "set":
            tables.packed[name] = numbers
        elif kind == "alias":
            tables.aliases[canonical(name)] = numbers
        elif kind == "fold":
            orbit: list[int] = []
            for number in numbers.split():
                orbit.append(int(number, _BASE) + (orbit[-1] if orbit else 0))
            tables.orbits.update({rune: tuple(orbit) for rune in orbit})
    return tables


@cache
def _set(name: str) -> RuneSet:
    result: list[tuple[int, int]] = []
    end = 0
    numbers = iter(int(number, _BASE) for number in _tables().packed[name].split())
    for distance, length in zip(numbers, numbers, strict=True):
        end += distance + length
        result.append((end - length, end))
    return tuple(result)


Operation: TypeAlias = Literal["runes", "assert", "sequence", "choice", "repeat", "group"]
Assertion: TypeAlias = Literal["text start", "text end", "line start", "line end", "boundary", "no boundary"]

MOST: Final = 1000  # limit for repetitions (multiplied when nested) and for levels
_LARGEST: Final = 3_355_443  # steps of Go's program: 128 MB at 40 bytes each
_HUGE: Final = 10**8
_NOT_NEWLINE: Final = negated(((NEWLINE, NEWLINE),))
_ESCAPES: Final = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_PERL: Final[dict[str, RuneSet]] = {"d": DIGIT, "s": SPACE, "w": WORD}
_ASSERTIONS: Final[dict[str, Assertion]] = {"A": "text start", "b": "boundary", "B": "no boundary", "z": "text end"}
_OCTAL: Final = "01234567"
_HEX: Final = "0123456789abcdefABCDEF"


class PatternSyntaxError(ValueError):
    """A text is not a pattern. The message is Go's."""

    def __init__(self, why: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{part}`")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Part of a pattern."""

    operation: Operation
    runes: RuneSet = ()
    assertion: Assertion = "text start"
    parts: tuple[Node, ...] = ()
    least: int = 0
    most: int | None = None
    greedy: bool = True
    height: int = 1
    size: int = 1


EMPTY: Final = Node("sequence")


class _Flags(msgspec.Struct, frozen=True):
    fold: bool = False
    lines: bool = False
    dot_newline: bool = False
    lazy: bool = False


class _Open(msgspec.Struct):
    """Open group: its choices so far, the current choice, and the flags to restore."""

    flags: _Flags
    choices: list[Node] = msgspec.field(default_factory=list[Node])
    last: list[Node] = msgspec.field(default_factory=list[Node])
    captures: bool = False


def parse_pattern(text: str) -> Node:
    return _Parser(text).parse()


@final
class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = _Flags()
        self._open = [_Open(self._flags)]
        # Start of a repetition that ends here, which must not be followed by another.
        self._repeated: int | None = None
        self._readers: dict[str, Callable[[], None]] = {
            "(": self._open_group,
            ")": self._close_group,
            "|": self._end_choice,
            "[": self._class,
            "\\": self._backslash,
        }

    def parse(self) -> Node:
        while self._at < len(self._text):
            repeated, self._repeated = self._repeated, None
            sign = self._text[self._at]
            if sign in "*+?{":
                self._repetition(sign, repeated)
            elif sign in "^$.":
                self._any_or_place(sign)
            elif sign in self._readers:
                self._readers[sign]()
            else:
                self._push_rune(ord(sign))
                self._at += 1
        if len(self._open) > 1:
            raise PatternSyntaxError("missing closing )", self._text)
        return self._ended(self._open[0])

    def _any_or_place(self, sign: str) -> None:
        self._at += 1
        if sign == ".":
            self._push(ANY if self._flags.dot_newline else _NOT_NEWLINE)
        elif sign == "^":
            self._push_assertion("line start" if self._flags.lines else "text start")
        else:
            self._push_assertion("line end" if self._flags.lines else "text end")

    def _repetition(self, sign: str, repeated: int | None) -> None:
        if sign == "{":
            self._counted(repeated)
        else:
            self._repeat(int(sign == "+"), 1 if sign == "?" else None, self._at + 1, repeated)

    def _error(self, why: str, start: int, end: int | None = None) -> PatternSyntaxError:
        return PatternSyntaxError(why, self._text[start:end])

    def _add(self, node: Node) -> None:
        self._open[-1].last.append(self._checked(node))

    def _checked(self, node: Node) -> Node:
        if node.size > _LARGEST:
            raise self._error("expression too large", 0)
        if node.height > MOST:
            raise self._error("expression nests too deeply", 0)
        return node

    def _push(self, runes: RuneSet) -> None:
        self._add(Node("runes", runes))

    def _push_rune(self, rune: int) -> None:
        single: RuneSet = ((rune, rune),)
        self._push(folded(single) if self._flags.fold else single)

    def _push_assertion(self, assertion: Assertion) -> None:
        self._add(Node("assert", assertion=assertion))

    # Groups

    def _open_group(self) -> None:
        if self._text.startswith("(?", self._at):
            self._open_special()
            return
        self._open.append(_Open(self._flags, captures=True))
        self._at += 1

    def _open_special(self) -> None:
        text, start = self._text, self._at
        left = len(text) - start
        if (left > 4 and text.startswith("(?P<", start)) or (left > 3 and text.startswith("(?<", start)):
            end = text.find(">", start)
            if end < 0:
                raise self._error("invalid named capture", start)
            name = text[text.index("<", start) + 1 : end]
            if not name or not all(sign == "_" or (sign.isascii() and sign.isalnum()) for sign in name):
                raise self._error("invalid named capture", start, end + 1)
            self._open.append(_Open(self._flags, captures=True))
            self._at = end + 1
            return
        self._read_flags(start)

    def _read_flags(self, start: int) -> None:
        text, at = self._text, start + 2
        flags = {"i": self._flags.fold, "m": self._flags.lines, "s": self._flags.dot_newline, "U": self._flags.lazy}
        value, said = True, False
        while at < len(text):
            sign = text[at]
            at += 1
            if sign in flags:
                flags[sign], said = value, True
            elif sign == "-" and value:
                value, said = False, False
            elif sign in ":)" and (value or said):
                after = _Flags(flags["i"], flags["m"], flags["s"], flags["U"])
                if sign == ":":
                    self._open.append(_Open(self._flags))
                self._flags, self._at = after, at
                return
            else:
                break
        raise self._error("invalid or unsupported Perl syntax", start, at)

    def _end_choice(self) -> None:
        group = self._open[-1]
        group.choices.append(self._sequence(group.last))
        group.last = []
        self._at += 1

    def _close_group(self) -> None:
        if len(self._open) < 2:
            raise self._error("unexpected )", 0)
        group = self._open.pop()
        node = self._ended(group)
        self._flags = group.flags
        if group.captures:
            node = Node("group", parts=(node,), height=node.height + 1, size=node.size + 2)
        self._add(node)
        self._at += 1

    def _sequence(self, parts: list[Node]) -> Node:
        if len(parts) == 1:
            return parts[0]
        height = 1 + max((part.height for part in parts), default=0)
        size = max(1, sum(part.size for part in parts))
        return self._checked(Node("sequence", parts=tuple(parts), height=height, size=size)) if parts else EMPTY

    def _ended(self, group: _Open) -> Node:
        choices = [*group.choices, self._sequence(group.last)]
        if len(choices) == 1:
            return choices[0]
        height = 1 + max(choice.height for choice in choices)
        size = sum(choice.size for choice in choices) + len(choices) - 1
        return self._checked(Node("choice", parts=tuple(choices), height=height, size=size))

    # Repetitions

    def _repeat(self, least: int, most: int | None, end: int, repeated: int | None, *, counted: bool = False) -> None:
        start = self._at
        greedy = not self._flags.lazy
        if self._text.startswith("?", end):
            end, greedy = end + 1, not greedy
        if repeated is not None:
            raise self._error("invalid nested repetition operator", repeated, end)
        last = self._open[-1].last
        if not last:
            raise self._error("missing argument to repetition operator", start, end)
        sub = last.pop()
        size = _repeated_size(sub.size, least, most)
        node = Node("repeat", parts=(sub,), least=least, most=most, greedy=greedy, height=sub.height + 1, size=size)
        self._add(node)
        if counted and (least > 1 or (most or 0) > 1) and not _may_repeat(node):
            raise self._error("invalid repeat count", start, end)
        self._at, self._repeated = end, start

    def _counted(self, repeated: int | None) -> None:
        found = self._bounds(self._at)
        if found is None:
            self._push_rune(ord("{"))
            self._at += 1
            return
        least, most, end = found
        if least > MOST or (most is not None and (most > MOST or most < least)):
            raise self._error("invalid repeat count", self._at, end)
        self._repeat(least, most, end, repeated, counted=True)

    def _bounds(self, start: int) -> tuple[int, int | None, int] | None:
        """Return both numbers in braces and the position after them, or None if it is not a repetition."""
        least, at = self._number(start + 1)
        if least is None or at >= len(self._text):
            return None
        most: int | None = least
        if self._text[at] == ",":
            at += 1
            if self._text.startswith("}", at):
                most = None
            else:
                most, at = self._number(at)
                if most is None:
                    return None
        return (least, most, at + 1) if self._text.startswith("}", at) else None

    def _number(self, start: int) -> tuple[int | None, int]:
        at = start
        while at < len(self._text) and self._text[at] in "0123456789":
            at += 1
        digits = self._text[start:at]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None, at
        return int(digits) if len(digits) < len(str(_HUGE)) else _HUGE, at

    # Classes and escapes

    def _class(self) -> None:
        text, start = self._text, self._at
        at = start + 1
        negative = text.startswith("^", at)
        at += negative
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not text.startswith("]", at):
            first = False
            found = self._named_class(at) or self._unicode_class(at) or self._perl_class(at)
            if found is not None:
                ranges.extend(found[0])
                at = found[1]
                continue
            low, end = self._class_rune(at, start)
            high = low
            if text.startswith("-", end) and end + 1 < len(text) and text[end + 1] != "]":
                high, end = self._class_rune(end + 1, start)
                if high < low:
                    raise self._error("invalid character class range", at, end)
            ranges.extend(folded(((low, high),)) if self._flags.fold else ((low, high),))
            at = end
        runes = joined(ranges)
        self._push(negated(runes) if negative else runes)
        self._at = at + 1

    def _class_rune(self, at: int, start: int) -> tuple[int, int]:
        if at >= len(self._text):
            raise self._error("missing closing ]", start)
        return self._escape(at) if self._text[at] == "\\" else (ord(self._text[at]), at + 1)

    def _named_class(self, at: int) -> tuple[RuneSet, int] | None:
        if not self._text.startswith("[:", at) or at + 2 >= len(self._text):
            return None
        end = self._text.find(":]", at + 2)
        if end < 0:
            return None
        name = self._text[at + 2 : end]
        runes = POSIX.get(name.removeprefix("^"))
        if runes is None:
            raise self._error("invalid character class range", at, end + 2)
        return self._grouped(runes, negative=name.startswith("^")), end + 2

    def _unicode_class(self, at: int) -> tuple[RuneSet, int] | None:
        text = self._text
        if not text.startswith(("\\p", "\\P"), at):
            return None
        end = at + 3
        name = text[at + 2 : end]
        if name == "{":
            end = text.find("}", at) + 1
            if not end:
                raise self._error("invalid character class range", at)
            name = text[at + 3 : end - 1]
        runes = named(name.removeprefix("^"))
        if runes is None:
            raise self._error("invalid character class range", at, end)
        return self._grouped(runes, negative=text.startswith("\\P", at) is not name.startswith("^")), end

    def _perl_class(self, at: int) -> tuple[RuneSet, int] | None:
        text = self._text
        if not text.startswith("\\", at) or at + 1 >= len(text) or text[at + 1].lower() not in _PERL:
            return None
        letter = text[at + 1]
        return self._grouped(_PERL[letter.lower()], negative=letter.isupper()), at + 2

    def _grouped(self, runes: RuneSet, *, negative: bool) -> RuneSet:
        runes = folded(runes) if self._flags.fold else runes
        return negated(runes) if negative else runes

    def _backslash(self) -> None:
        text, at = self._text, self._at
        letter = text[at + 1 : at + 2]
        if letter == "C":
            raise self._error("invalid escape sequence", at, at + 2)
        if letter == "Q":
            end = text.find("\\E", at + 2)
            for sign in text[at + 2 : end if end >= 0 else None]:
                self._push_rune(ord(sign))
            self._at = end + 2 if end >= 0 else len(text)
        elif letter in _ASSERTIONS:
            self._push_assertion(_ASSERTIONS[letter])
            self._at += 2
        elif found := self._unicode_class(at) or self._perl_class(at):
            self._push(found[0])
            self._at = found[1]
        else:
            rune, self._at = self._escape(at)
            self._push_rune(rune)

    def _escape(self, start: int) -> tuple[int, int]:
        text, at = self._text, start + 1
        if at >= len(text):
            raise PatternSyntaxError("trailing backslash at end of expression", "")
        letter = text[at]
        at += 1
        if letter in _OCTAL and (letter == "0" or text[at : at + 1] in tuple(_OCTAL)):
            end = at
            while end < at + 2 and end < len(text) and text[end] in _OCTAL:
                end += 1
            return int(text[at - 1 : end], 8), end
        if letter in _ESCAPES:
            return _ESCAPES[letter], at
        if letter == "x":
            return self._hexadecimal(start, at)
        if letter.isascii() and not letter.isalnum():
            return ord(letter), at
        raise self._error("invalid escape sequence", start, at)

    def _hexadecimal(self, start: int, at: int) -> tuple[int, int]:
        text = self._text
        if text[at : at + 1] != "{":
            digits = text[at : at + 2]
            if len(digits) == 2 and all(sign in _HEX for sign in digits):
                return int(digits, 16), at + 2
            raise self._error("invalid escape sequence", start, at + 2)
        rune, place = 0, at + 1
        while place < len(text) and text[place] in _HEX and rune <= LAST:
            rune = rune * 16 + int(text[place], 16)
            place += 1
        if rune > LAST:
            raise self._error("invalid escape sequence", start, place)
        if text[place : place + 1] != "}" or place == at + 1:
            raise self._error("invalid escape sequence", start, place + 1)
        return rune, place + 1


def _repeated_size(size: int, least: int, most: int | None) -> int:
    """Return the length of Go's program for a repetition."""
    if most is None:
        return 2 + size if least == 0 else 1 + least * size
    return max(1, most * size + most - least)


def _may_repeat(node: Node) -> bool:
    waiting = [(node, MOST)]
    while waiting:
        node, most = waiting.pop()
        if node.operation == "repeat" and (node.least, node.most) not in _SIGNS:
            if node.most == 0:
                continue
            times = node.least if node.most is None else node.most
            if times > most:
                return False
            most = most // times if times else most
        waiting.extend((part, most) for part in node.parts)
    return True


# The bounds of *, + and ?, which Go does not count. It counts {0,}, {1,} and {0,1}, but without an effect.
_SIGNS: Final = ((0, None), (1, None), (0, 1))
