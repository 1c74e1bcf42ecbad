"""Format of the Secret that stores the authorities.

| key | content |
| --- | --- |
| ``tls.crt``, ``tls.key`` | certificate and key of the signer, under the names that other tools use |
| ``next.crt``, ``next.key`` | certificate and key of the successor, from its creation to its promotion |
| ``ca.crt`` | content of ``caBundle``, for other tools that verify a certificate |
| ``rotation.json`` | times of publication, and times until which former authorities are trusted |
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import mapping
from deltaloop.api.times import format_time, from_epoch, parse_time
from deltaloop.webhooks.certificates.signing import read_authority, read_certificate
from deltaloop.webhooks.core.certificates.authorities import Authorities, Authority, FormerAuthority

TYPE: Final = "kubernetes.io/tls"
EMPTY: Final[Mapping[str, str]] = {"tls.crt": "", "tls.key": ""}
"""Keys that a Secret of this type needs, without content."""

MARK: Final = "webhooks.deltaloop.dev/authorities"

_DEFAULT_LIFETIME: Final = 7 * 86400.0  # for authorities that another tool has stored


class _AuthorityForm(msgspec.Struct, rename="camel", omit_defaults=True):
    serving_lifetime_seconds: float
    published_at: str = ""


class _FormerForm(msgspec.Struct, rename="camel", omit_defaults=True):
    certificate: str
    trusted_until: str
    dropped: bool = False


class _RotationForm(msgspec.Struct, rename="camel", omit_defaults=True):
    """Details by fingerprint, so that they do not apply to a different authority that replaced one."""

    authorities: dict[str, _AuthorityForm]
    former: list[_FormerForm] = []


def empty_secret(name: str, *, namespace: str) -> dict[str, Any]:
    """Return an empty Secret for installations; without ``data``, applying it again preserves the content."""
    metadata = {"name": name, "namespace": namespace, "annotations": {MARK: "v1"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def to_data(held: Authorities) -> dict[str, str]:
    signer, successor = held.signer, held.successor
    form = _RotationForm(
        authorities={
            each.certificate.fingerprint: _AuthorityForm(
                serving_lifetime_seconds=each.serving_lifetime, published_at=_written(each.published_at)
            )
            for each in (signer, successor)
            if each is not None
        },
        former=[_FormerForm(each.certificate.pem, _written(each.trusted_until), each.dropped) for each in held.former],
    )
    texts = {
        "tls.crt": signer.certificate.pem,
        "tls.key": signer.key.reveal(),
        "ca.crt": "".join(each.pem for each in held.trusted()),
        "rotation.json": msgspec.json.encode(form).decode(),
    }
    if successor is not None:
        texts |= {"next.crt": successor.certificate.pem, "next.key": successor.key.reveal()}
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


def is_ours(secret: Mapping[str, Any]) -> bool:
    """Return whether the program may write the Secret: it is marked or empty."""
    annotations = mapping(mapping(secret.get("metadata")).get("annotations"))
    return MARK in annotations or not any(mapping(secret.get("data")).values())


def read_secret(secret: Mapping[str, Any]) -> Authorities | None:
    """Return the authorities in a Secret, or None without a usable signer. Other unreadable parts are ignored."""
    texts = _texts(secret.get("data"))
    form = _rotation(texts.get("rotation.json", ""))
    signer = _authority(texts.get("tls.crt", ""), texts.get("tls.key", ""), form)
    if signer is None:
        return None
    successor = _authority(texts.get("next.crt", ""), texts.get("next.key", ""), form)
    if successor is not None and successor.certificate == signer.certificate:
        successor = None
    return Authorities(signer, successor, _former(form))


def _authority(certificate: str, key: str, form: _RotationForm) -> Authority | None:
    try:
        found, private = read_authority(certificate, key)
    except ValueError:
        return None
    known = form.authorities.get(found.fingerprint, _AuthorityForm(serving_lifetime_seconds=_DEFAULT_LIFETIME))
    return Authority(
        certificate=found,
        key=private,
        serving_lifetime=max(0.0, known.serving_lifetime_seconds),
        published_at=_read(known.published_at),
    )


def _former(form: _RotationForm) -> tuple[FormerAuthority, ...]:
    found: list[FormerAuthority] = []
    for each in form.former:
        until = _read(each.trusted_until)
        try:
            certificate = read_certificate(each.certificate)
        except ValueError:
            continue
        if until is not None:
            found.append(FormerAuthority(certificate, until, each.dropped))
    return tuple(found)


def _rotation(text: str) -> _RotationForm:
    try:
        return msgspec.json.decode(text, type=_RotationForm)
    except (msgspec.MsgspecError, UnicodeError):
        return _RotationForm(authorities={})


def _texts(data: object) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in mapping(data).items():
        with suppress(binascii.Error, UnicodeDecodeError, ValueError):
            texts[name] = base64.b64decode(str(value), validate=True).decode()
    return texts


def _written(instant: float | None) -> str:
    return "" if instant is None else format_time(from_epoch(instant))


def _read(text: str) -> float | None:
    try:
        return parse_time(text).timestamp() if text else None
    except InvalidArgumentError:
        return None
