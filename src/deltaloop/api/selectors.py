"""Label and field selectors.

Source: apimachinery pkg/labels/selector.go, pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final, Literal, final

import msgspec

from deltaloop.api.errors import InvalidSelectorError

Operator = Literal["=", "!=", "in", "notin", "exists", "!", ">", "<"]

_TOKEN: Final = cache(lambda: re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!,()<>])|(?P<word>[^ \t\r\n=!,()<>]+))"))
_NAME: Final = cache(lambda: re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"))
_PREFIX: Final = cache(lambda: re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"))
_MAX_PREFIX: Final = 253
_INTEGER: Final = cache(lambda: re.compile(r"[-+]?[0-9]+"))
_INT64: Final = range(-(2**63), 2**63)


class Requirement(msgspec.Struct, frozen=True):
    """Term of a label selector, with sorted and unique values, so that equivalent terms are equal."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.operator in ("in", "notin"):
            msgspec.structs.force_setattr(self, "values", tuple(sorted(set(self.values))))
            fits = bool(self.values)
        else:
            fits = len(self.values) == (0 if self.operator in ("exists", "!") else 1)
        if not fits:
            raise InvalidSelectorError(f"{self.key}: operator {self.operator!r} does not go with {self.values!r}")

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        if self.operator == "exists":
            return present
        if self.operator == "!":
            return not present
        if self.operator in ("!=", "notin"):
            return not present or labels[self.key] not in self.values
        if not present:
            return False
        if self.operator in (">", "<"):
            return self._compares(labels[self.key])
        return labels[self.key] in self.values

    def _compares(self, label: str) -> bool:
        left, right = label_integer(label), label_integer(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == ">" else left < right

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@final
class LabelSelector(msgspec.Struct, frozen=True):
    """Parsed label selector.

    Without terms, it matches all objects.
    """

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse a selector such as ``app=web,tier in (front,back),!canary``.

        The terms are sorted by key.

        Raises:
            InvalidSelectorError: If the selector is invalid. The message follows upstream.
        """
        return cls(tuple(sorted(_LabelParser(text).parse(), key=lambda requirement: requirement.key)))

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Return the selector that requires these labels (``matchLabels``)."""
        return cls(tuple(Requirement(key, "=", (value,)) for key, value in sorted(labels.items())))

    @property
    def empty(self) -> bool:
        """Whether the selector matches all objects."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether labels satisfy all terms."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


class _LabelParser:
    """Recursive-descent parser. ``in`` and ``notin`` are operators only at the position of an operator."""

    def __init__(self, text: str) -> None:
        self._tokens = [match["symbol"] or match["word"] for match in _TOKEN().finditer(text)]
        self._next = 0

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        if not self._tokens:
            return ()
        if not _is_word(self._peek()) and self._peek() != "!":
            raise InvalidSelectorError(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._requirement())
            except InvalidSelectorError as error:
                raise InvalidSelectorError(f"unable to parse requirement: {error}") from None
            token = self._take()
            if token == "":
                return tuple(requirements)
            if token != ",":
                raise InvalidSelectorError(f"found '{token}', expected: ',' or 'end of string'")
            if not _is_word(self._peek()) and self._peek() != "!":
                raise InvalidSelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        token = self._take()
        if token == "!":
            return Requirement(self._key(self._take()), "!")
        key = self._key(token)
        match self._peek():
            case "" | ",":
                return Requirement(key, "exists")
            case "=" | "==":
                self._take()
                return Requirement(key, "=", (self._value(key),))
            case "!=":
                self._take()
                return Requirement(key, "!=", (self._value(key),))
            case ">" | "<" as comparison:
                self._take()
                return Requirement(key, ">" if comparison == ">" else "<", (self._integer(key),))
            case "in" | "notin" as operator:
                self._take()
                return Requirement(key, "in" if operator == "in" else "notin", self._values(key))
            case other:
                raise InvalidSelectorError(f"found '{other}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self, token: str) -> str:
        if not _is_word(token):
            raise InvalidSelectorError(f"found '{token}', expected: identifier")
        prefix, slash, name = token.rpartition("/")
        if not _NAME().fullmatch(name) or (slash and not _is_prefix(prefix)):
            raise InvalidSelectorError(
                f'key: Invalid value: "{token}": no label has such a name; write app or a.io/app'
            )
        return token

    def _value(self, key: str) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._take()
        if not _is_word(token):
            raise InvalidSelectorError(f"found '{token}', expected: identifier")
        return _label_value(key, token)

    def _integer(self, key: str) -> str:
        value = self._value(key)
        if label_integer(value) is None:
            raise InvalidSelectorError(
                f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        return value

    def _values(self, key: str) -> tuple[str, ...]:
        opening = self._take()
        if opening != "(":
            raise InvalidSelectorError(f"found '{opening}' expected: '('")
        if not _is_word(self._peek()) and self._peek() not in (",", ")"):
            raise InvalidSelectorError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values: list[str] = []
        while True:
            token = self._peek()
            if token in (",", ")"):
                values.append("")
            elif _is_word(token):
                values.append(_label_value(key, self._take()))
            else:
                raise InvalidSelectorError(f"found '{token}', expected: ',', or identifier")
            separator = self._take()
            if separator == ")":
                return tuple(values)
            if separator != ",":
                raise InvalidSelectorError(f"found '{separator}', expected: ',' or ')'")


def _is_word(token: str) -> bool:
    return token != "" and token[0] not in "=!,()<>"


def _is_prefix(prefix: str) -> bool:
    return len(prefix) <= _MAX_PREFIX and _PREFIX().fullmatch(prefix) is not None


def _label_value(key: str, value: str) -> str:
    if not _NAME().fullmatch(value):
        raise InvalidSelectorError(
            f'values[0][{key}]: Invalid value: "{value}": '
            "at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        )
    return value


def label_integer(text: str) -> int | None:
    """Return the 64-bit integer that ``>`` and ``<`` compare, or None if the label is not an integer."""
    if not _INTEGER().fullmatch(text) or len(text) > 64:
        return None
    number = int(text)
    return number if number in _INT64 else None


class FieldRequirement(msgspec.Struct, frozen=True):
    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{_escape(self.value)}"


@final
class FieldSelector(msgspec.Struct, frozen=True):
    """Parsed field selector.

    Without terms, it matches all objects.
    """

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Parse a selector such as ``metadata.name=web,status.phase!=Running``.

        Empty terms are ignored.

        Raises:
            InvalidSelectorError: If a term has no operator, or a value contains an invalid escape.
        """
        return cls(tuple(_field_requirement(term, text) for term in _split_terms(text) if term))

    @property
    def empty(self) -> bool:
        """Whether the selector matches all objects."""
        return not self.requirements

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the terms."""
        return tuple(requirement.field for requirement in self.requirements)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Return whether all terms are satisfied.

        ``value_of`` returns the value of a field, or "" if it is missing.
        """
        return all((value_of(term.field) == term.value) is not term.negated for term in self.requirements)

    def check_supported(self, supported: Iterable[str]) -> None:
        """Reject unsupported fields.

        Raises:
            InvalidSelectorError: If a field is not supported. The message names the field and the supported fields.
        """
        known = tuple(supported)
        for requirement in self.requirements:
            if requirement.field not in known:
                listed = ", ".join(f'"{name}"' for name in known)
                raise InvalidSelectorError(f'"{requirement.field}" is not a known field selector: only {listed}')

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def _split_terms(text: str) -> list[str]:
    terms = [""]
    escaped = False
    for character in text:
        if character == "," and not escaped:
            terms.append("")
        else:
            terms[-1] += character
        escaped = character == "\\" and not escaped
    return terms


def _field_requirement(term: str, selector: str) -> FieldRequirement:
    found = re.search(r"!=|==|=", term)
    if found is None:
        raise InvalidSelectorError(f"invalid selector: '{selector}'; can't understand '{term}'")
    return FieldRequirement(term[: found.start()], _unescape(term[found.end() :]), negated=found[0] == "!=")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape(value: str) -> str:
    def plain(found: re.Match[str]) -> str:
        sequence = found[0]
        if sequence in ",=":
            raise InvalidSelectorError(f"invalid field selector: unescaped character in value: {sequence}")
        if sequence[1:] not in ("\\", ",", "="):
            raise InvalidSelectorError(f"invalid field selector: invalid escape sequence: {sequence}")
        return sequence[1:]

    return re.sub(r"\\.?|[,=]", plain, value, flags=re.DOTALL)
