"""Redact secrets in values, and wrap secrets in a type that does not show them.

``redact`` hides:

- values with secret names (``authorization``, ``token``, ``password``, ``client-key-data``, ...), and strings whose
  name ends with one (``sessionToken``, ``DB_PASSWORD``);
- ``data`` and ``stringData`` of Secrets and of items of a SecretList, and kubectl's annotation with the last applied
  object;
- the ``value`` of an entry with a secret ``name``, all environment values of a kubeconfig's ``exec`` entry, and the
  argument after a flag such as ``--token``;
- inside text: authorization headers, bearer and basic credentials, JSON web tokens, PEM private keys (plain or base64),
  user and password in URLs, and values after secret names in queries, assignments and flags.

It does not hide names of Secrets (``secretName: foo``), fencing and continue tokens, and sentences about secrets.
Redacting a result again does not change it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, cast, final

REDACTED: Final = "<redacted>"

# Names are compared in lower case and without separators: client-key-data, clientKeyData and CLIENT_KEY_DATA are equal.
_SECRET_NAME: Final = (
    r"(proxy)?authorization|(set)?cookie|pass(word|wd|phrase)|credentials?|secret"
    r"|(x?(id|access|refresh|bearer|auth|api|session|security))?token|tokendata"
    r"|(client|shared|webhook|signing)?secret(key|accesskey)?|awssecretaccesskey|clientkey(data)?|privatekey|apikey"
    r"|tls\.key|sshprivatekey|\.?dockercfg|\.?dockerconfigjson|(kubectl\.kubernetes\.io/)?lastappliedconfiguration"
)
_SECRET_ENDING: Final = (
    r"(?s).*(pass(word|wd|phrase)|token|clientsecret|api_?key|secret_?key|private_?key|access_?key|keydata)"
)
# These are not secret, and useful in logs.
_NO_SECRETS: Final = frozenset({"fencingtoken", "continuetoken"})
# Fields of a volume or reference that names a Secret under "secret", which is not secret.
_SECRET_REFERENCE: Final = frozenset({"secretName", "name", "namespace", "items", "optional", "defaultMode"})
_SECRET_DATA_FIELDS: Final = frozenset({"data", "stringData"})
_DEEPEST: Final = 100

# Endings of secret names inside text. The part before the ending is kept.
_NAME_IN_TEXT: Final = (
    r"(?:(?<!continue[ _-])(?<!fencing[ _-])token|pass(?:word|wd|phrase)|client[_-]?secret|client[_-]?key[_-]?data"
    r"|api[_-]?key"
    r"|secret[_-]?(?:access[_-]?)?key|private[_-]?key)"
)
_NAME_WORDS: Final = ("token", "pass", "secret", "key")
# Words that may follow "bearer", "basic", a name with a colon, or a flag in ordinary sentences.
_ORDINARY: Final = (
    r"(?!(?:tokens?|auth|authn|authentication|authori[sz]ation|credentials?|schemes?|headers?|realm|usage|users?"
    r"|example|examples|form|checks?|support|information|idea|is|was|must|may|can|and|or|to|for|in|flag|option|not|no|file|missing|invalid|required|expected|expired|cannot"
    r"|<redacted>)(?![A-Za-z0-9._~+/=-]))"
)
# A pattern is compiled when the text contains one of its words.
_IN_TEXT: Final[tuple[tuple[tuple[str, ...], str, str], ...]] = (
    (
        ("-----begin",),
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
        REDACTED,
    ),
    # "-----BEGIN " in base64, unless "CERT" follows.
    (("ls0tls1",), r"LS0tLS1CRUdJTi(?!BDRVJU)[A-Za-z0-9+/=_-]+", REDACTED),
    (
        ("authorization",),
        r"""(?i)((?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?)(?!<redacted>)[^\s"'\\,;][^"'\\\r\n]*""",
        rf"\1{REDACTED}",
    ),
    (
        ("cookie",),
        r"""(?i)\b((?:set-)?cookie\\?["']?\s*:\s*\\?["']?)(?!<redacted>)[^\s"'\\][^"'\\\r\n]*""",
        rf"\1{REDACTED}",
    ),
    (("bearer",), rf"(?i)\b(bearer\s+){_ORDINARY}[A-Za-z0-9._~+/=-]{{4,}}", rf"\1{REDACTED}"),
    (
        ("basic",),
        rf"(?i)\b(basic\s+){_ORDINARY}(?-i:(?=[a-z]{{0,19}}[A-Z0-9+/=]|[a-z]{{20}}))[A-Za-z0-9+/=_-]{{4,}}",
        rf"\1{REDACTED}",
    ),
    (("eyj",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?", REDACTED),
    (("://",), r"(?<=://)(?!<redacted>@)[^/\s\"'<>?#]+@", f"{REDACTED}@"),
    (
        ("last-applied",),
        r"""(?s)(last-applied-configuration\\*["']?\s*[:=]\s*)(?!"?<redacted>)("(?:[^"\\]|\\.)*"|\S.*)""",
        rf'\1"{REDACTED}"',
    ),
    # name: "value" and name="value", also inside text that was quoted itself
    (
        _NAME_WORDS,
        rf"""(?is)({_NAME_IN_TEXT}\\*["']?\s*[:=]\s*(?P<q>\\*["']))(?!<redacted>)(?:(?!(?P=q))(?:\\.|[^\\]|\\))+""",
        rf"\1{REDACTED}",
    ),
    (
        _NAME_WORDS,
        rf"""(?i)({_NAME_IN_TEXT}\\*["']?\s*[:=]\s*)(?!<redacted>|[\\"'{{\[]){_ORDINARY}[^\s&,;"'}}\]\\]+""",
        rf"\1{REDACTED}",
    ),
    (
        ("token", "password", "secret", "api-key"),
        rf"(?i)(?<![A-Za-z0-9-])(--?(?:[a-z]{{1,20}}-){{0,3}}(?:token|password|secret|api-key)\s+){_ORDINARY}[^\s-]\S*",
        rf"\1{REDACTED}",
    ),
)
_SECRET_FLAG: Final = r"(?i)--?([a-z]+-)*(token|password|secret|api-key)"


@cache
def _secret_names() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_SECRET_NAME), re.compile(_SECRET_ENDING)


@cache
def _secret_flag() -> re.Pattern[str]:
    return re.compile(_SECRET_FLAG)


_compiled: Final = cache(re.compile)


def redact(value: object) -> Any:
    """Return a copy of ``value`` without secrets.

    Args:
        value: String, bytes (only their length is shown), mapping or sequence. Numbers, booleans and None are returned
            unchanged, and other values are replaced by the name of their type. Values nested deeper than 100 levels are
            hidden.
    """
    return _redact(value, 0)


def _redact(value: object, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(cast('bytes', value))} bytes>"
    if depth >= _DEEPEST:
        return "<nested too deep>"
    if isinstance(value, Mapping):
        return _redact_mapping(cast("Mapping[Any, Any]", value), depth)
    if isinstance(value, Sequence):
        return _redact_items(cast("Sequence[object]", value), depth)
    return f"<{type(value).__name__}>"


def _redact_items(items: Sequence[object], depth: int) -> list[Any]:
    shown: list[Any] = []
    flag = False
    for item in items:
        if flag and isinstance(item, str) and item:
            shown.append(REDACTED)
        else:
            shown.append(_redact(item, depth + 1))
        flag = isinstance(item, str) and _secret_flag().fullmatch(item) is not None
    return shown


def _redact_mapping(mapping: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    kind = mapping.get("kind")
    named = mapping.get("name")
    shown: dict[str, Any] = {}
    for key, item in mapping.items():
        name = str(key)
        if kind == "Secret" and name in _SECRET_DATA_FIELDS:
            result = _hide_values(item)
        elif (
            kind == "SecretList"
            and name == "items"
            and isinstance(item, Sequence)
            and not isinstance(item, str | bytes)
        ):
            result = [_redact_listed_secret(each, depth + 1) for each in cast("Sequence[object]", item)]
        elif name == "value" and isinstance(named, str) and _says_secret(named, item):
            result = _hide(item)
        elif name == "exec" and isinstance(item, Mapping):
            result = _redact_exec(cast("Mapping[Any, Any]", item), depth + 1)
        elif _says_secret(name, item):
            result = _hide(item)
        else:
            result = _redact(item, depth + 1)
        shown[_redact_text(name)] = result
    return shown


def _says_secret(name: str, item: object) -> bool:
    plain = re.sub(r"[-_\s]", "", name).lower()
    whole, ending = _secret_names()
    if whole.fullmatch(plain):
        return not (plain == "secret" and isinstance(item, Mapping) and _is_reference(cast("Mapping[Any, Any]", item)))
    if plain in _NO_SECRETS:
        return False
    return isinstance(item, str | bytes | int) and ending.fullmatch(plain) is not None


def _is_reference(fields: Mapping[Any, Any]) -> bool:
    return _SECRET_REFERENCE.issuperset(fields)


def _hide(item: object) -> Any:
    """Redact a value. Empty values and booleans are kept, because they reveal nothing."""
    if item is None or isinstance(item, bool) or item in ("", [], {}):
        return item
    return REDACTED


def _hide_values(item: object) -> Any:
    if isinstance(item, Mapping):
        return {str(name): REDACTED for name in cast("Mapping[Any, Any]", item)}
    return _hide(item)


def _redact_listed_secret(item: object, depth: int) -> Any:
    """Redact an item of a SecretList, which has no ``kind``."""
    if isinstance(item, Mapping):
        shown = _redact_mapping({**cast("Mapping[Any, Any]", item), "kind": "Secret"}, depth)
        return {name: value for name, value in shown.items() if name in item}
    return _redact(item, depth)


def _redact_exec(item: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    shown = _redact_mapping(item, depth)
    env = item.get("env")
    if isinstance(env, Sequence) and not isinstance(env, str | bytes):
        shown["env"] = [
            {
                str(name): part if name == "name" else _hide(part)
                for name, part in cast("Mapping[Any, Any]", each).items()
            }
            if isinstance(each, Mapping)
            else _hide(each)
            for each in cast("Sequence[object]", env)
        ]
    return shown


def _redact_text(text: str) -> str:
    words = text.lower() if text.isascii() else ""  # other letters can match as well, for example a long s
    for hints, pattern, replacement in _IN_TEXT:
        if not words or any(map(words.__contains__, hints)):
            text = _compiled(pattern).sub(replacement, text)
    return text


@final
class SecretText:
    """Secret string whose ``repr`` and ``str`` do not contain the secret.

    Comparison uses the secret. Pickling raises an error, so that secrets are not written to files by accident.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret."""
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
        raise TypeError("a SecretText cannot be pickled, because the pickle would not be encrypted")
