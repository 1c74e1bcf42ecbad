"""Read YAML like Go's reader, so that manifests have the same meaning as in kubectl.

This module only uses PyYAML's parser events, and builds the values itself, without recursion:

- Plain text that looks like a number, a boolean (including YAML 1.1: ``yes``, ``no``, ``on``, ``off``, ``y``, ``n``) or
  null is converted. Other text and quoted text are strings.
- Whole numbers (``1e0``, ``08``, ``1.0``) are integers, because Go writes them as integers in JSON.
- Keys become strings. A duplicate key is an error, as in kubectl's strict validation.
- ``<<`` merges. Tags that Go does not know are ignored.
- Values that are multiplied by aliases are counted, so that small documents cannot grow without limit.
- A text that is one JSON object is read as JSON, as in kubectl. An API server does not do this for YAML requests
  (``read_yaml_body``).
- ``%TAG`` lines are counted before parsing, because libyaml needs quadratic time for them and blocks other threads (a
  minute for 3 MB).

Source: sigs.k8s.io/yaml v1.6.0 (``yaml.go``), go.yaml.in/yaml v2.4.2 (``resolve.go``).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, TypeVar, cast

import msgspec
import yaml

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_documents import MAX_DEPTH, as_go_writes, json_documents

T = TypeVar("T")

# PyYAML may be built without libyaml. Its Python parser is slower but equivalent.
_PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_parse_events = cast("Callable[..., Iterator[Any]]", yaml.parse)

_MAX_VALUES_BY_ALIAS: Final = 100_000
_MAX_TAG_DIRECTIVES: Final = 100

# Lines that begin with %TAG, in all encodings and after all line breaks of YAML.
_TAG_DIRECTIVE: Final = re.compile("(?:\\A|[\n\r\x85\u2028\u2029\ufeff])%TAG")
_TAG_DIRECTIVE_IN_BYTES: Final = re.compile(
    rb"(?:\A|[\n\r\0\x85\xa8\xa9\xbf\xff\xfe]|[\x28\x29]\x20(?=%\0))%\0?T\0?A\0?G"
)

_INT: Final = re.compile(r"[-+]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_TAG: Final = "tag:yaml.org,2002:"
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**63 - 1
_MAX_UNSIGNED: Final = 2**64 - 1


def read_yaml(text: str | bytes, *, source: str = "YAML") -> Any:
    """Read one YAML or JSON document.

    Args:
        text: YAML document.
        source: Name of the document in error messages, such as a file name.

    Raises:
        InvalidArgumentError: If the text is not valid YAML, or contains more than one document.
    """
    documents = list(read_yaml_documents(text, source=source))
    if len(documents) > 1:
        raise InvalidArgumentError(f"must contain one document, got {len(documents)}.", argument=source)
    return documents[0] if documents else None


def looks_like_text(text: str) -> bool:
    """Return whether plain text is read as a string, and not as a number, boolean or null."""
    return isinstance(_resolve(text), str)


def read_yaml_documents(text: str | bytes, *, source: str = "YAML") -> Iterator[Any]:
    """Read the documents of a YAML stream without empty documents.

    The results share no objects, because aliases are copied.

    Args:
        text: YAML documents, separated by ``---``, or one JSON object.
        source: Name of the stream in error messages, such as a file name.

    Raises:
        InvalidArgumentError: If the text is not valid YAML, has duplicate keys, contains a value that JSON cannot
            represent, is nested deeper than 500 levels, has more than 100 000 values from aliases, or has more than 100
            lines that begin with ``%TAG``. The message contains line and column, but no text.
    """
    documents = json_documents(text) or _read(text, source, lambda events: [*_documents(events, None)])
    yield from (document for document in documents if document is not None)


def read_yaml_body(body: bytes, *, source: str, repeated: list[str]) -> Any:
    """Read the first document of a YAML request like an API server, which also parses JSON objects as YAML."""
    return _read(body, source, lambda events: next(_documents(events, repeated), None))


def _read(text: str | bytes, source: str, build: Callable[[Iterator[Any]], T]) -> T:
    # Search for the text first, because the pattern blocks all threads for tens of milliseconds per megabyte.
    if isinstance(text, str):
        directives: int = len(_TAG_DIRECTIVE.findall(text)) if "%TAG" in text else 0
    else:
        directives = len(_TAG_DIRECTIVE_IN_BYTES.findall(text)) if b"%" in text else 0
    if directives > _MAX_TAG_DIRECTIVES:
        raise InvalidArgumentError(f"must have at most {_MAX_TAG_DIRECTIVES} %TAG lines.", argument=source)
    try:
        return build(_parse_events(text, Loader=_PARSER))
    except _RefusedError as error:
        raise InvalidArgumentError(f"{source} cannot be used{_place(error)}") from None
    except UnicodeEncodeError:
        raise InvalidArgumentError("must be Unicode, got a lone surrogate.", argument=source) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{source} is not valid YAML{_place(error)}") from None


class _RefusedError(Exception):
    """Error for valid YAML that is not supported, with the attributes of PyYAML's errors."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.problem_mark = mark


class _Open:
    """Map or list that is being built."""

    __slots__ = ("anchor", "event", "is_map", "key", "merged", "size", "value")

    def __init__(self, event: Any) -> None:
        self.event = event
        self.anchor: str | None = event.anchor
        self.is_map = isinstance(event, yaml.MappingStartEvent)
        self.value: Any = {} if self.is_map else []
        self.key: str | None = None
        self.merged: list[dict[str, Any]] = []
        self.size = 1

    def accept(self, value: Any, event: Any, *, size: int) -> None:
        self.size += size
        if not self.is_map:
            self.value.append(value)
        elif self.key is None:
            self.key = _key(value, event)
        elif self.key == _MERGE:
            self._merge(value, event)
            self.key = None
        else:
            self.value[self.key] = value
            self.key = None

    def expect_new(self, event: Any) -> None:
        if self.is_map and self.key is not None and self.key in self.value:
            raise _RefusedError("a map contains a key twice", event.start_mark)

    def note_repeated(self, event: Any, repeated: list[str]) -> None:
        if self.is_map and self.key is not None and self.key in self.value:
            shown = msgspec.json.encode(self.key).decode()
            repeated.append(f"line {event.start_mark.line + 1}: key {shown} already set in map")

    def finished(self) -> Any:
        """Return the value. Its own keys take precedence over merged keys, and earlier merges over later merges."""
        for fields in self.merged:
            for key, value in fields.items():
                self.value.setdefault(key, value)
        return self.value

    def _merge(self, value: Any, event: Any) -> None:
        sources = cast("list[Any]", value) if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                raise _RefusedError("only a map, or a list of maps, can be merged", event.start_mark)
            self.merged.append(cast("dict[str, Any]", source))


# Marks an unquoted <<, and cannot be equal to a key in the text.
_MERGE: Final = "\0<<"


class _Builder:
    def __init__(self, repeated: list[str] | None = None) -> None:
        self._repeated = repeated
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._by_alias = 0
        self.document: Any = None

    def feed(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._stack) >= MAX_DEPTH:
                raise _RefusedError(
                    f"the content is nested deeper than {MAX_DEPTH} levels", cast("Any", event).start_mark
                )
            opened = _Open(event)
            if opened.anchor:
                self._anchors[opened.anchor] = None
            self._stack.append(opened)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self._stack.pop()
            self._place_value(closed.finished(), closed.event, size=closed.size, anchor=closed.anchor)

    def _scalar(self, event: Any) -> None:
        top = self._stack[-1] if self._stack else None
        is_key = top is not None and top.is_map and top.key is None
        if is_key and event.value == "<<" and event.implicit[0]:
            value: Any = _MERGE
        else:
            value = _scalar_value(event)
        if isinstance(value, float) and not is_key:
            if not math.isfinite(value):
                raise _RefusedError("JSON has no number that is not finite", event.start_mark)
            value = as_go_writes(value)
        self._place_value(value, event, size=1, anchor=event.anchor)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _RefusedError("an alias has no anchor", event.start_mark)
        known = self._anchors[event.anchor]
        if known is None:
            raise _RefusedError("an anchor contains itself", event.start_mark)
        value, size = known
        self._by_alias += size
        if self._by_alias > _MAX_VALUES_BY_ALIAS:
            raise _RefusedError("the aliases multiply the content beyond the limit", event.start_mark)
        self._place_value(_copy(value), event, size=size, anchor=None)

    def _place_value(self, value: Any, event: Any, *, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self.document = value
            return
        top = self._stack[-1]
        was_key = top.is_map and top.key is None
        top.accept(value, event, size=size)
        if was_key and self._repeated is None:
            top.expect_new(event)
        elif was_key and self._repeated is not None:
            top.note_repeated(event, self._repeated)


def _documents(events: Iterator[Any], repeated: list[str] | None) -> Iterator[Any]:
    builder = _Builder()
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder(repeated)
        elif isinstance(event, yaml.DocumentEndEvent):
            yield builder.document
        else:
            builder.feed(event)


def _scalar_value(event: Any) -> Any:
    tag, text = str(event.tag or ""), str(event.value)
    if tag in ("", "!"):
        return _resolve(text) if event.implicit[0] and not event.style and not tag else text
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        raise _RefusedError("JSON has no !!binary. Write the value as base64 text", event.start_mark)
    if kind not in ("int", "float", "bool", "null"):
        return text
    value = _resolve(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool) and value <= _MAX_INT:
        value = float(value)
    if {"int": int, "float": float, "bool": bool, "null": type(None)}[kind] is not type(value):
        raise _RefusedError(f"a value does not match its tag !!{kind}", event.start_mark)
    return value


def _resolve(text: str) -> Any:
    """Convert plain text like Go: to a number, boolean or null if it looks like one."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        plain = re.sub(r"(?<=[0-9])_(?=[0-9])", "", text)
    elif text[0] in "-+0123456789":
        plain = text.replace("_", "")
        # Python limits the conversion of long digit strings, and no API has such numbers.
        if len(plain) <= 400 and _INT.fullmatch(plain):
            number = _int(plain)
            if _MIN_INT <= number <= (_MAX_INT if plain[0] == "+" else _MAX_UNSIGNED):
                return number
    else:
        return text
    if _FLOAT.fullmatch(plain):
        real = float(plain)
        if math.isfinite(real):
            return real
    return text


def _int(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _key(value: Any, event: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value <= _MAX_INT:
        return str(value)
    if isinstance(value, float):
        return _float_key(value)
    what = (
        "null"
        if value is None
        else "an integer above 64 bits"
        if isinstance(value, int)
        else "a list"
        if isinstance(value, list)
        else "a map"
    )
    raise _RefusedError(f"{what} cannot be the key of a map", event.start_mark)


def _float_key(value: float) -> str:
    """Return a key as Go writes it, with 32-bit precision."""
    if math.isnan(value):
        return ".nan"
    try:
        single = struct.pack("f", value)
    except OverflowError:
        single = struct.pack("f", math.copysign(math.inf, value))
    rounded: float = struct.unpack("f", single)[0]
    if math.isinf(rounded):
        return ".inf" if rounded > 0 else "-.inf"
    texts = (f"{rounded:.{digits}e}" for digits in range(9))
    shortest = next(text for text in texts if struct.pack("f", float(text)) == single)
    return format(Decimal(shortest), "f") if -4 <= int(shortest.partition("e")[2]) < 6 else shortest


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[Any]", value)]
    return value


def _place(error: Exception) -> str:
    if isinstance(error, yaml.reader.ReaderError):  # the reader fails before lines are counted
        return f": position {error.position}: {error.reason}"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return where + (f": {_without_text(str(problem))}" if problem else "")


def _without_text(problem: str) -> str:
    """Remove the parts of the document that PyYAML quotes, such as anchors and tags."""
    return re.sub(r"""(['"]).{2,}\1""", "...", problem)
