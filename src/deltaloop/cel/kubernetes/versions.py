"""Semantic versions: ``semver("1.2.3").isLessThan(semver("2.0.0"))``.

Source: k8s.io/apiserver pkg/cel/library/semverlib.go; github.com/blang/semver v4.
"""

from __future__ import annotations

import re
from functools import partial
from typing import ClassVar, Final, TypeAlias, final

import msgspec

from deltaloop.cel.errors import EvaluationError, no_such_overload, succeeds
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.types import BOOL, INT, STRING, Type, object_of
from deltaloop.cel.values import UINT_MOST
from deltaloop.schemas.go_numbers import quoted
from deltaloop.schemas.work import charge

SEMVER: Final = object_of("kubernetes.Semver")
_DIGITS: Final = re.compile("[0-9]*")
_WORD: Final = re.compile("[0-9A-Za-z-]*")
# Part of a pre-release version. Numbers come before words.
_Part: TypeAlias = tuple[int, int, str]


@final
class SemanticVersion(msgspec.Struct, frozen=True, eq=False):
    """Semantic version. Comparisons ignore ``build``."""

    cel_type: ClassVar[Type] = SEMVER

    numbers: tuple[int, int, int]
    before_release: tuple[_Part, ...] = ()
    build: str = ""

    def __str__(self) -> str:
        before = ".".join(word or str(number) for _, number, word in self.before_release)
        numbers = ".".join(map(str, self.numbers))
        return numbers + (f"-{before}" if before else "") + (f"+{self.build}" if self.build else "")

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, SemanticVersion):
            return _compared(self, other) == 0
        raise no_such_overload()


def _parsed(text: str) -> SemanticVersion:
    charge(20 + 15 * len(text))
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, minus, before = rest.partition("-")
    number = _number("patch", patch)
    found = tuple(_before_release(part) for part in before.split(".")) if minus else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quoted(part)}")
    return SemanticVersion((major, minor, number), found, build)


def _number(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    why = "invalid syntax" if not text else "value out of range" if len(text) > 20 or int(text) > UINT_MOST else ""
    if why:
        raise EvaluationError(f"strconv.ParseUint: parsing {quoted(text)}: {why}")
    return int(text)


def _before_release(text: str) -> _Part:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return 0, _unsigned(text), ""
    if _WORD.fullmatch(text):
        return 1, 0, text
    raise EvaluationError(f"Invalid character(s) found in prerelease {quoted(text)}")


def _tolerant(text: str, normalize: bool) -> SemanticVersion:
    """Parse a version. ``normalize`` removes a ``v`` and leading zeros, and adds missing parts."""
    if not normalize:
        return _parsed(text)
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[place] = rest if rest and rest[0] in "0123456789" else f"0{rest}"
    if len(parts) < 3 and any(sign in parts[-1] for sign in "+-"):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return _parsed(".".join([*parts, "0", "0"][: max(3, len(parts))]))


def _compared(one: SemanticVersion, other: SemanticVersion) -> int:
    charge(len(one.before_release))
    left = (one.numbers, not one.before_release, one.before_release)
    right = (other.numbers, not other.before_release, other.before_release)
    return (left > right) - (left < right)


def _signed(number: int) -> int:
    """Convert an unsigned 64-bit number to a signed number like Go."""
    return (number + 2**63) % 2**64 - 2**63


SEMVERS: Final = Library(
    "kubernetes.Semver",
    {
        "semver": (
            function("string_to_semver", (STRING,), SEMVER, _parsed),
            function("string_bool_to_semver", (STRING, BOOL), SEMVER, _tolerant),
        ),
        "isSemver": (
            function("is_semver_string", (STRING,), BOOL, partial(succeeds, _parsed)),
            function("is_semver_string_bool", (STRING, BOOL), BOOL, partial(succeeds, _tolerant)),
        ),
        "isGreaterThan": (method("semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda a, b: _compared(a, b) > 0),),
        "isLessThan": (method("semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda a, b: _compared(a, b) < 0),),
        "compareTo": (method("semver_compare_to", (SEMVER, SEMVER), INT, _compared),),
        "major": (method("semver_major", (SEMVER,), INT, lambda version: _signed(version.numbers[0])),),
        "minor": (method("semver_minor", (SEMVER,), INT, lambda version: _signed(version.numbers[1])),),
        "patch": (method("semver_patch", (SEMVER,), INT, lambda version: _signed(version.numbers[2])),),
    },
)
