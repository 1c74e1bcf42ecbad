"""The one redaction function, and a string that never shows itself.

Everything that is logged, shown, diffed or put into an error goes through ``redact`` when it may hold data of an
object, a header, a URL or a configuration. What it hides:

* values under a name that says secret (``authorization``, ``token``, ``password``, ``client-key-data``, ...);
* the ``data`` and ``stringData`` of a Secret, and the annotation in which kubectl keeps a copy of them;
* inside text: bearer and basic credentials, JSON web tokens, private keys in PEM, user and password in a URL, and the
  same secret names in queries and assignments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, final

REDACTED: Final = "<redacted>"

_SECRET_NAMES: Final = re.compile(
    r"^(authorization|proxy-authorization|cookie|set-cookie|password|passwd|secret|client-?secret"
    r"|(id|access|refresh|bearer)?[-_]?token|tokendata|client-?key(-?data)?|private-?key|api-?key|tls\.key|credentials?"
    r"|last-applied-configuration|kubectl\.kubernetes\.io/last-applied-configuration)$",
    re.IGNORECASE,
)
_SECRET_DATA_FIELDS: Final = frozenset({"data", "stringData"})
_IN_TEXT: Final = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        REDACTED,
    ),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)?"), REDACTED),
    (re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"), REDACTED),
    (
        re.compile(
            r"(?i)(\"?(?:[a-z_-]*token|password|passwd|client[_-]?secret|client-key-data|api[_-]?key)\"?\s*[=:]\s*)"
            r"(\"[^\"]*\"|[^\s&,;\"'}]+)"
        ),
        rf"\1{REDACTED}",
    ),
)


def redact(value: object) -> Any:
    """Return a copy of ``value`` that is safe to show.

    Args:
        value: Text, bytes (shown as their length only), a mapping, a sequence, or anything else, which is returned as
            it is when it is a number, a boolean or None, and by its type's name otherwise.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, Mapping):
        return _redact_mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, Sequence):
        return [redact(item) for item in cast("Sequence[object]", value)]
    return f"<{type(value).__name__}>"


def _redact_mapping(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    is_secret = mapping.get("kind") == "Secret"
    shown: dict[str, Any] = {}
    for name, item in mapping.items():
        if is_secret and name in _SECRET_DATA_FIELDS and isinstance(item, Mapping):
            shown[name] = dict.fromkeys(cast("Mapping[str, Any]", item), REDACTED)
        elif _SECRET_NAMES.match(str(name)) and item not in (None, "", [], {}):
            shown[str(name)] = REDACTED
        else:
            shown[str(name)] = redact(item)
    return shown


def _redact_text(text: str) -> str:
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


@final
class SecretText:
    """A secret string: its ``repr`` and ``str`` do not show it, only ``reveal`` does.

    Two are equal if their texts are; pickling is refused, so that none ends up in a file by accident.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Wrap ``text``."""
        self._text = text

    def reveal(self) -> str:
        """Return the secret itself, to be sent to where it belongs and nowhere else."""
        return self._text

    def __repr__(self) -> str:
        return f"SecretText({REDACTED})"

    def __str__(self) -> str:
        return REDACTED

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash((SecretText, self._text))

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a SecretText is not pickled: it would be written out in the clear")
