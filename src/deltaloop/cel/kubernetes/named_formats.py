"""Named formats: ``format.dns1123Label().validate("my-name")`` returns none, or a list of errors.

Source: k8s.io/apiserver pkg/cel/library/format.go; k8s.io/apiserver pkg/cel/library/regex.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final, final

import msgspec

from deltaloop.api.dns_names import (
    label_key_problems,
    label_problems,
    label_value_problems,
    numbered_label_problems,
    subdomain_problems,
)
from deltaloop.cel.errors import EvaluationError, no_such_overload
from deltaloop.cel.library import Library, Overload, function, method
from deltaloop.cel.types import INT, STRING, Type, list_of, object_of, optional_of
from deltaloop.cel.values import NO_VALUE, OptionalValue
from deltaloop.schemas.formats import fits
from deltaloop.schemas.go_urls import UrlError, parse_request_url
from deltaloop.schemas.patterns.matching import Pattern, compile_pattern
from deltaloop.schemas.patterns.syntax import PatternSyntaxError
from deltaloop.schemas.work import charge

FORMAT: Final = object_of("kubernetes.NamedFormat")


@final
class NamedFormat(msgspec.Struct, frozen=True, eq=False):
    """Format of strings, which equals formats of the same name; an equivalent pattern's size determines the cost."""

    cel_type: ClassVar[Type] = FORMAT

    name: str
    problems: Callable[[str], list[str]]
    pattern_size: int

    def __str__(self) -> str:
        return self.name

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, NamedFormat):
            return self.name == other.name
        raise no_such_overload()


def _prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the check for a prefix of a name, which may end with a dash."""

    def of_prefix(text: str) -> list[str]:
        return problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return of_prefix


def _of_schemas(name: str, message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if fits(name, text) else [message]


def _url_problems(text: str) -> list[str]:
    try:
        parse_request_url(text)
    except UrlError as error:
        return [str(error)]
    return []


FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", numbered_label_problems, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", subdomain_problems, 60),
    "dns1035Label": NamedFormat("DNS1035Label", label_problems, 30),
    "qualifiedName": NamedFormat("QualifiedName", label_key_problems, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(numbered_label_problems), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(subdomain_problems), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(label_problems), 30),
    "labelValue": NamedFormat("LabelValue", label_value_problems, 40),
    "uri": NamedFormat("URI", _url_problems, 1103),
    "uuid": NamedFormat("uuid", _of_schemas("uuid", "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", _of_schemas("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _of_schemas("date", "invalid date"), 71),
    "datetime": NamedFormat("datetime", _of_schemas("datetime", "invalid datetime"), 71),
}


def _named(name: str) -> OptionalValue:
    found = FORMATS.get(name)
    return NO_VALUE if found is None else OptionalValue(found)


def _validated(wanted: NamedFormat, text: str) -> OptionalValue:
    charge(10 + 10 * len(text))
    problems = wanted.problems(text)
    return OptionalValue(problems) if problems else NO_VALUE


def _constant(name: str, value: NamedFormat) -> Overload:
    return function(f"format.{name}", (), FORMAT, lambda: value)


NAMED_FORMATS: Final = Library(
    "kubernetes.format",
    {
        "format.named": (function("format-named", (STRING,), optional_of(FORMAT), _named),),
        "validate": (method("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validated),),
        **{f"format.{name}": (_constant(name, value),) for name, value in FORMATS.items()},
    },
)


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternSyntaxError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    match = _pattern(pattern).find(text)
    return "" if match is None else text[slice(*match)]


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return _pattern(pattern).find_all(text, most)


_FIND: Final = (method("string_find_string", (STRING, STRING), STRING, _find),)
_FIND_ALL: Final = (
    method("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
    method("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
)
PATTERNS: Final = Library(
    "kubernetes.regex",
    {
        name: tuple(replace(overload, pattern=1) for overload in overloads)
        for name, overloads in (("find", _FIND), ("findAll", _FIND_ALL))
    },
)
