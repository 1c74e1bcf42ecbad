"""Label and field selectors: parse, match, write.

Label selectors have equality (``a=b``, ``a==b``, ``a!=b``), set (``a in (b,c)``, ``a notin (b,c)``) and existence terms
(``a``, ``!a``), joined by commas. A missing label satisfies ``!=``, ``notin`` and ``!a``. Field selectors have ``=``,
``==`` and ``!=`` only; commas, equals signs and backslashes in a value are written with a backslash before them.

Source: apimachinery pkg/labels/selector.go, pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, final

from deltaloop.api.errors import InvalidSelectorError

Operator = Literal["=", "!=", "in", "notin", "exists", "!", ">", "<"]

_TOKEN: Final = re.compile(r"\s*(?:(?P<symbol>==|!=|=|!|,|\(|\)|<|>)|(?P<word>[^\s=!,()<>]+))")
_NAME: Final = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_PREFIX: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a set of labels satisfies this term."""
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
        try:
            left, right = int(label), int(self.values[0])
        except ValueError:
            return False
        return left > right if self.operator == ">" else left < right

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@final
@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A parsed label selector; without terms it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse a selector such as ``app=web,tier in (front,back),!canary``.

        Raises:
            InvalidSelectorError: If it cannot be parsed; the message has upstream's words.
        """
        return cls(_LabelParser(text).parse())

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Make the selector that asks for exactly these labels (``matchLabels``)."""
        return cls(tuple(Requirement(key, "=", (value,)) for key, value in sorted(labels.items())))

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Tell whether a set of labels satisfies all terms."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


class _LabelParser:
    """A recursive-descent parser over the few tokens that there are."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokenize(text)
        self._next = 0

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        if not self._tokens:
            return ()
        while True:
            requirements.append(self._requirement())
            token = self._take()
            if token == "":
                return tuple(requirements)
            if token != ",":
                raise InvalidSelectorError(f"found '{token}', expected: ',' or 'end of string'")
            if self._peek() == "":
                raise InvalidSelectorError("found '', expected: identifier after ','")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        token = self._take()
        if token == "!":
            return Requirement(_label_key(self._take()), "!")
        key = _label_key(token)
        match self._peek():
            case "" | ",":
                return Requirement(key, "exists")
            case "=" | "==":
                self._take()
                return Requirement(key, "=", (self._value(),))
            case "!=":
                self._take()
                return Requirement(key, "!=", (self._value(),))
            case ">" | "<" as comparison:
                self._take()
                return Requirement(key, ">" if comparison == ">" else "<", (self._integer(key),))
            case "in" | "notin" as operator:
                self._take()
                return Requirement(key, "in" if operator == "in" else "notin", self._values())
            case other:
                raise InvalidSelectorError(f"found '{other}', expected: in, notin, =, ==, !=, gt, lt")

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        return _label_value(self._take())

    def _integer(self, key: str) -> str:
        value = self._take()
        try:
            int(value)
        except ValueError:
            raise InvalidSelectorError(f"{key}: for 'Gt', 'Lt' operators, the value must be an integer") from None
        return value

    def _values(self) -> tuple[str, ...]:
        opening = self._take()
        if opening != "(":
            raise InvalidSelectorError(f"found '{opening}', expected: '('")
        values: set[str] = set()
        while True:
            token = self._peek()
            if token in (",", ")"):
                values.add("")
            else:
                values.add(_label_value(self._take()))
            separator = self._take()
            if separator == ")":
                return tuple(sorted(values))
            if separator != ",":
                raise InvalidSelectorError(f"found '{separator}', expected: ',' or ')'")


def _tokenize(text: str) -> list[str]:
    return [match["symbol"] or match["word"] for match in _TOKEN.finditer(text)]


def _label_key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if not key or key in ("=", "==", "!=", ",", "(", ")", "<", ">"):
        raise InvalidSelectorError(f"found '{key}', expected: !, identifier, or 'end of string'")
    if not _NAME.match(name) or (slash and not _PREFIX.match(prefix)):
        raise InvalidSelectorError(
            f"key: Invalid value: \"{key}\": it is not a label's name such as 'app' or 'a.io/app'"
        )
    return key


def _label_value(value: str) -> str:
    if not _NAME.match(value):
        raise InvalidSelectorError(
            f'values: Invalid value: "{value}": a label value has at most 63 letters, digits, "-", "_" and "."'
        )
    return value


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One term of a field selector."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{_escape(self.value)}"


@final
@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A parsed field selector; without terms it matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Parse a selector such as ``metadata.name=web,status.phase!=Running``.

        Raises:
            InvalidSelectorError: If a term has no operator, or a backslash escapes something else.
        """
        return cls(tuple(_field_requirement(term) for term in _split_terms(text) if term))

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are asked about."""
        return tuple(requirement.field for requirement in self.requirements)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Tell whether all terms hold; ``value_of`` gives a field's value, the empty string where there is none."""
        return all((value_of(term.field) == term.value) is not term.negated for term in self.requirements)

    def check_supported(self, supported: Iterable[str]) -> None:
        """Refuse fields that cannot be selected by.

        Raises:
            InvalidSelectorError: Naming the field and what is supported, in upstream's words.
        """
        known = tuple(supported)
        for requirement in self.requirements:
            if requirement.field not in known:
                listed = ", ".join(f'"{name}"' for name in known)
                raise InvalidSelectorError(f'"{requirement.field}" is not a known field selector: only {listed}')

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def _split_terms(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def _field_requirement(term: str) -> FieldRequirement:
    position = 0
    while position < len(term):
        if term[position] == "\\":
            position += 2
            continue
        for operator in ("!=", "==", "="):
            if term.startswith(operator, position):
                value = _unescape(term[position + len(operator) :])
                return FieldRequirement(term[:position], value, negated=operator == "!=")
        position += 1
    raise InvalidSelectorError(f"invalid selector: '{term}'; can't understand '{term}'")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape(value: str) -> str:
    result: list[str] = []
    position = 0
    while position < len(value):
        character = value[position]
        if character == "\\":
            position += 1
            if position >= len(value) or value[position] not in "\\,=":
                raise InvalidSelectorError(f"invalid field selector: invalid escape sequence in value: {value}")
            character = value[position]
        elif character in ",=":
            raise InvalidSelectorError(f"invalid field selector: unescaped character in value: {value}")
        result.append(character)
        position += 1
    return "".join(result)
