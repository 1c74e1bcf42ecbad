"""Secret and ConfigMap: ``stringData``, validation of keys and sizes, and immutability.

Source: Kubernetes pkg/apis/core/v1/conversion.go, defaults.go; pkg/apis/core/validation; apimachinery
pkg/util/validation (``IsConfigMapKey``).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, mapping, text
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required, too_long
from deltaloop.schemas.nesting import decode_json

_DATA: Final = ("data",)
_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_DOCKER: Final = ".dockerconfigjson"


def _default(secret: dict[str, object]) -> None:
    texts = secret.pop("stringData", None)
    if texts:
        written = {key: base64.b64encode(str(value).encode()).decode() for key, value in mapping(texts).items()}
        secret["data"] = {**mapping(secret.get("data")), **written}
    if not secret.get("type"):
        secret["type"] = "Opaque"


def _errors(secret: dict[str, object]) -> Iterator[SchemaError]:
    """Yield the errors in the keys, including those that the Secret's type requires."""
    yield from key_errors(secret, _DATA)
    data, kind = mapping(secret.get("data")), text(secret.get("type"))
    for key in _KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/dockerconfigjson" and _DOCKER in data and not _is_json(text(data[_DOCKER])):
        # The real error would reveal a part of the secret.
        yield invalid_value(f"data[{_DOCKER}]", "<secret contents redacted>", "it is no JSON")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not at(secret, "metadata", "annotations", _ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _is_json(encoded: str) -> bool:
    try:
        decode_json(base64.b64decode(encoded))
    except (msgspec.DecodeError, ValueError):
        return False
    return True


def _warnings(secret: Mapping[str, object]) -> Iterator[str]:
    """Yield a warning if a TLS Secret has no PEM data. Whether key and certificate match is not checked."""
    if secret.get("type") != "kubernetes.io/tls":
        return
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            raw = base64.b64decode(text(at(secret, "data", key)))
        except (binascii.Error, ValueError):
            raw = b""
        if b"-----BEGIN " not in raw:
            yield f"tls: failed to find any PEM data in {what} input"
            return


STRATEGY: Final = Strategy(
    default=_default,
    validate=_errors,
    validate_update=lambda before, after: immutable_errors(before, after, _DATA),
    warn=_warnings,
)


_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_LARGEST: Final = 1024 * 1024


def key_errors(fields: dict[str, object], names: tuple[str, ...]) -> Iterator[SchemaError]:
    for name in names:
        for key in mapping(fields.get(name)):
            for words in _key_texts(key):
                yield invalid_value(f"{name}[{key}]", key, words)
            if name == "data" and key in mapping(fields.get("binaryData")) and "binaryData" in names:
                yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    is_config_map = "binaryData" in names
    size = 0
    for name in names:
        is_plain = is_config_map and name == "data"
        for value in mapping(fields.get(name)).values():
            if isinstance(value, str):
                size += _length(value) if is_plain else len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")
    if size > _LARGEST:
        yield too_long("[]" if is_config_map else "data", _LARGEST)


def _length(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode(errors="replace"))


def _key_texts(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def immutable_errors(
    before: dict[str, object], after: dict[str, object], names: tuple[str, ...]
) -> Iterator[SchemaError]:
    """Yield an error for each changed field of an immutable object."""
    if before.get("immutable") is not True:
        return
    if after.get("immutable") is not True:
        yield forbidden_field("immutable", _IMMUTABLE)
    for name in names:
        if mapping(before.get(name)) != mapping(after.get(name)):
            yield forbidden_field(name, _IMMUTABLE)


_CONFIG_DATA: Final = ("data", "binaryData")

CONFIG_MAP: Final = Strategy(
    validate=lambda config_map: key_errors(config_map, _CONFIG_DATA),
    validate_update=lambda before, after: immutable_errors(before, after, _CONFIG_DATA),
    cells={"Data": lambda config_map: sum(len(mapping(config_map.get(name))) for name in _CONFIG_DATA)},
)
