"""CertificateSigningRequest and ClusterTrustBundle, whose content is checked as far as its encoding shows.

Source: Kubernetes pkg/registry/certificates/certificates/strategy.go; pkg/apis/certificates/validation/validation.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.kinds.cells import NONE, human_duration
from deltaloop.apiserver.core.strategy import CLIENTS_METADATA, Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----[ \t]*\r?\n(.*?)-----END \1-----[ \t]*(?:\r?\n|$)", re.DOTALL)
_SEQUENCE: Final = 0x30
_SHORT: Final = 0x80


def _blocks(encoded: str) -> list[tuple[str, bytes]]:
    """Return type and content of the PEM blocks in a text. Invalid blocks have no content."""
    found: list[tuple[str, bytes]] = []
    for kind, body in _BLOCK.findall(encoded):
        try:
            found.append((kind, base64.b64decode("".join(body.split()), validate=True)))
        except (binascii.Error, ValueError):
            found.append((kind, b""))
    return found


def _is_whole_sequence(content: bytes) -> bool:
    """Return whether the content is a single DER sequence."""
    if len(content) < 2 or content[0] != _SEQUENCE:
        return False
    if content[1] < _SHORT:
        return len(content) == 2 + content[1]
    digits = content[1] - _SHORT
    return len(content) == 2 + digits + int.from_bytes(content[2 : 2 + digits], "big")


def request_errors(place: Place) -> Iterator[SchemaError]:
    """Yield an error unless the value is a certificate request. Its signature is not verified."""
    try:
        blocks = _blocks(base64.b64decode(place.text).decode())
    except (binascii.Error, UnicodeDecodeError):
        blocks = []
    if not blocks or blocks[0][0] != "CERTIFICATE REQUEST" or not _is_whole_sequence(blocks[0][1]):
        yield invalid_value(place.path, place.value, "PEM block type must be CERTIFICATE REQUEST")


def legacy_signer_errors(place: Place) -> Iterator[SchemaError]:
    if place.value == "kubernetes.io/legacy-unknown":
        yield invalid_value(place.path, place.value, "the legacy signerName is not allowed via this API version")


def bundle_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in a bundle's certificates and in its name, which must start with the signer."""
    signer, name = text(place.fields.get("signerName")), text(at(place.whole, "metadata", "name"))
    start = f"{signer.replace('/', ':')}:"
    if signer and not name.startswith(start):
        text_ = f"ClusterTrustBundle for signerName {signer} must be named with prefix {start}"
        yield invalid_value("metadata.name", name, text_)
    if not signer and ":" in name:
        text_ = 'ClusterTrustBundle without signer name must not have ":" in its name'
        yield invalid_value("metadata.name", name, text_)
    path, blocks = place.below("trustBundle"), _blocks(text(place.fields.get("trustBundle")))
    if not blocks:
        yield invalid_value(path, "<value omitted>", "at least one trust anchor must be provided")
    for number, (kind, content) in enumerate(blocks):
        if kind != "CERTIFICATE" or not _is_whole_sequence(content):
            yield invalid_value(path, "<value omitted>", f"entry {number} does not parse as X.509")


def _approved(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    old, new = mapping(current["metadata"]), mapping(sent.get("metadata"))
    metadata = {name: value for name, value in old.items() if name not in CLIENTS_METADATA}
    metadata |= {name: value for name, value in new.items() if name in CLIENTS_METADATA}
    status = {**mapping(current.get("status")), "conditions": at(sent, "status", "conditions")}
    return {**current, "metadata": metadata, "status": status}


def _keep_spec(before: dict[str, object], after: dict[str, object]) -> None:
    after["spec"] = before.get("spec")


def _duration(request: Mapping[str, object]) -> str:
    seconds = at(request, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(integer(seconds))


def _condition(request: Mapping[str, object]) -> str:
    found = {text(at(item, "type")) for item in items(at(request, "status", "conditions"))}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    state += ",Failed" if "Failed" in found else ""
    return state + (",Issued" if at(request, "status", "certificate") else "")


BUNDLE: Final = Strategy(checks={"trust_bundle": bundle_errors})
STRATEGY: Final = Strategy(
    checks={"certificate_request": request_errors, "no_legacy_signer": legacy_signer_errors},
    prepare_update=_keep_spec,
    parts={"approval": _approved},
    reset_fields={
        "": {"f:spec": {}},
        "status": {"f:status": {"f:conditions": {}}},
        "approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
    },
    cells={
        "RequestedDuration": _duration,
        "Condition": _condition,
    },
)
