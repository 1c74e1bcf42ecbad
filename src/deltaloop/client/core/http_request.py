"""Write the head of an HTTP/1.1 request, and reject values that could inject a second request.

Sources: RFC 9112, section 3; RFC 3986, section 3.4 (query).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final
from urllib.parse import quote

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import is_unicode

IN_PATH: Final = bytes(set(range(ord("!"), ord("~") + 1)) - {ord("#")})
"""ASCII characters of a quoted path."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_TOKEN: Final = f"!#$%&'*+.^_`|~-{_LETTERS}"
_VALUE: Final = cache(lambda: re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*"))
_IN_QUERY: Final = "/:@!$'()*,?~-._"
_PLAIN: Final = _IN_QUERY + _LETTERS


def target(path: str, query: Mapping[str, str]) -> str:
    """Return the request target: a quoted path with its query, or raise InvalidArgumentError."""
    if path.encode("utf-8", "surrogatepass").translate(None, IN_PATH):
        raise InvalidArgumentError(f"must be quoted, got {path!r}.", argument="path")
    if not query:
        return path
    pairs: list[str] = []
    for name, value in query.items():
        if (name + value).strip(_PLAIN):  # faster than compiling a pattern
            if not is_unicode(name) or not is_unicode(value):
                # Omitting the parameter could widen a selector, so raise an error instead.
                raise InvalidArgumentError(
                    "must be Unicode, got a lone surrogate. Decode the text correctly.",
                    argument=f"query parameter {name!r}",
                )
            pairs.append(f"{quote(name, _IN_QUERY)}={quote(value, _IN_QUERY)}")
        else:
            pairs.append(f"{name}={value}")
    return f"{path}?{'&'.join(pairs)}"


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the encoded header lines, or raise InvalidArgumentError, for example for a line break."""
    lines: list[str] = []
    for name, value in headers:
        is_text = value.isprintable() or _VALUE().fullmatch(value)
        if not name or name.strip(_TOKEN) or not is_text:
            raise InvalidArgumentError("must not contain a control character.", argument=f"header {name!r}")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("utf-8", "surrogateescape")
