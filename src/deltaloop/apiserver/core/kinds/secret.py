"""Secret: ``stringData`` is written into ``data``, the type is ``Opaque`` unless it is said, and its keys.

Source: Kubernetes pkg/apis/core/v1/conversion.go, defaults.go; pkg/apis/core/validation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, mapping, text
from deltaloop.apiserver.core.kinds.data_keys import immutable_errors, key_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, invalid_value, required
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


def _errors(secret: dict[str, object]) -> Iterator[FieldError]:
    """Yield what is wrong with keys, and which the type of a Secret needs and are not there."""
    yield from key_errors(secret, _DATA)
    data, kind = mapping(secret.get("data")), text(secret.get("type"))
    for key in _KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/dockerconfigjson" and _DOCKER in data and not _is_json(text(data[_DOCKER])):
        # What is wrong with it would show a part of it.
        yield invalid_value(f"data[{_DOCKER}]", '"<secret contents redacted>"', "it is no JSON")
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
    """Yield a warning if there is no PEM where TLS needs it; whether key and certificate fit is not looked at."""
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
