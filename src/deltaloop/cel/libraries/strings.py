"""String functions of cel-go's extension, in the version that Kubernetes enables (2).

Source: cel-go ext/strings.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from deltaloop.cel.errors import EvaluationError, FailedValue
from deltaloop.cel.libraries.formatting import format_text
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.operators import in_parts
from deltaloop.cel.types import DYN, INT, STRING, list_of
from deltaloop.cel.values import kind_of
from deltaloop.schemas.go_numbers import SHORT_ESCAPES
from deltaloop.schemas.work import WorkLimitError, build, charge

# Strings up to this length cost no more than the call.
_SHORT: Final = 256
# Characters that one step can search or write.
_SEARCHED_IN_A_STEP: Final = 256
_WRITTEN_IN_A_STEP: Final = 4
_AT_ONCE: Final = 1 << 16
# Largest result in characters, because Python builds it in one call that blocks other threads.
_LARGEST: Final = 1 << 24
# Bytes of a part of a split string, and of a character that Python does not cache.
_PART_BYTES: Final = 24
_WIDE_BYTES: Final = 40
_TEXTS: Final = list_of(STRING)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in _LOWER}
# Characters that Go's strings.TrimSpace removes. Python's strip also removes four separators.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def _outside(place: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {place}")


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise _outside(place)
    return text[place : place + 1]


def _searched(text: str, part: str) -> None:
    """Charge for a search. Python compares short strings at each position, and searches long strings in linear time."""
    if len(text) > _SHORT:
        charge(len(text) * min(len(part) + 1, _SHORT) // _SEARCHED_IN_A_STEP)


def _built(size: int, *texts: str) -> None:
    if size > _LARGEST:
        raise WorkLimitError
    if size > _SHORT:
        build(size if all(text.isascii() for text in texts) else 4 * size)


def _index_of(text: str, part: str, start: int = 0) -> int:
    _searched(text, part)
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last(text: str, part: str) -> int:
    """Return the last position of a part. Python's search from the right is not linear."""
    _searched(text, part)
    if len(text) <= _SHORT:
        return text.rfind(part)
    place = text[::-1].find(part[::-1])
    return place if place < 0 else len(text) - place - len(part)


def _last_index_from(text: str, part: str, start: int) -> int:
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return _last(text[: start + len(part)], part)


def _replaced(text: str, old: str, new: str, most: int = -1) -> str:
    most = max(most, -1)
    _searched(text, old)
    if len(text) * (len(new) + 1) > _SHORT:
        count = text.count(old)
        count = count if most < 0 else min(count, most)
        _built(len(text) + max(count * (len(new) - len(old)), 0), text, new)
    return text.replace(old, new, most)


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    _searched(text, separator)
    if len(text) > _SHORT:
        count = 1 + (text.count(separator) if separator else len(text))
        wide = not separator and not text.isascii()
        build((count if most < 0 else min(count, most)) * (_WIDE_BYTES if wide else _PART_BYTES) + len(text))
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    if most < 0 or most >= len(text):
        return in_parts(text)
    return [*text[: most - 1], text[most - 1 :]]


def _tail(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _outside(start)
    return text[start:]


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _outside(start)
    if not 0 <= end <= len(text):
        raise _outside(end)
    return text[start:end]


def _joined(parts: list[Any], *separator: str) -> str:
    if parts and kind_of(parts[0]) is not str:  # the first item decides whether it is a list of strings
        raise EvaluationError(f"no such overload: join(list{', string' * len(separator)})", wrong_types=True)
    for part in parts:
        if kind_of(part) is not str:
            why = part.error if isinstance(part, FailedValue) else part
            raise EvaluationError(f"join: invalid input: {why}")
    between = "".join(separator)
    _built(sum(map(len, parts)) + len(between) * len(parts), between, *parts)
    return between.join(parts)


def _translated(table: dict[int, Any]) -> Callable[[str], str]:
    """Return a function that replaces single characters, and processes long strings in parts."""

    def translated(text: str) -> str:
        if len(text) <= _SHORT:
            return text.translate(table)
        _built(2 * len(text), text)
        parts: list[str] = []
        for start in range(0, len(text), _AT_ONCE):
            part = text[start : start + _AT_ONCE]
            charge(len(part) // _WRITTEN_IN_A_STEP)
            parts.append(part.translate(table))
        return "".join(parts)

    return translated


_quoted: Final = _translated(str.maketrans(SHORT_ESCAPES))


STRINGS: Final = Library(
    "strings",
    {
        "charAt": (method("string_char_at_int", (STRING, INT), STRING, _char_at),),
        "indexOf": (
            method("string_index_of_string", (STRING, STRING), INT, _index_of),
            method("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        "lastIndexOf": (
            method("string_last_index_of_string", (STRING, STRING), INT, _last),
            method("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_from),
        ),
        "lowerAscii": (method("string_lower_ascii", (STRING,), STRING, _translated(_LOWER)),),
        "upperAscii": (method("string_upper_ascii", (STRING,), STRING, _translated(_UPPER)),),
        "replace": (
            method("string_replace_string_string", (STRING, STRING, STRING), STRING, _replaced),
            method("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replaced),
        ),
        "split": (
            method("string_split_string", (STRING, STRING), _TEXTS, _split),
            method("string_split_string_int", (STRING, STRING, INT), _TEXTS, _split),
        ),
        "substring": (
            method("string_substring_int", (STRING, INT), STRING, _tail),
            method("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
        ),
        "trim": (method("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE)),),
        "format": (method("string_format", (STRING, list_of(DYN)), STRING, format_text),),
        "strings.quote": (function("strings_quote", (STRING,), STRING, lambda text: f'"{_quoted(text)}"'),),
        "join": (
            method("list_join", (_TEXTS,), STRING, _joined),
            method("list_join_string", (_TEXTS, STRING), STRING, _joined),
        ),
    },
)
