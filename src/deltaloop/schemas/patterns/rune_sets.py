"""Character sets as sorted ranges of code points that neither touch nor overlap, and the sets that Unicode defines.

Source: Go unicode, regexp/syntax (``unicodeTable``, ``cleanClass``).
"""

from __future__ import annotations

import base64
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, TypeAlias

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
