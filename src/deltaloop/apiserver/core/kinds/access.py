"""Strategies of secrets, config maps, roles, service accounts, and certificates.

Source: Kubernetes pkg/apis/core/v1/conversion.go, defaults.go; pkg/apis/core/validation; apimachinery
pkg/util/validation (``IsConfigMapKey``); Kubernetes pkg/apis/rbac/validation;
pkg/printers/internalversion/printers.go; pkg/registry/core/serviceaccount/strategy.go; Kubernetes
pkg/registry/certificates/certificates/strategy.go; pkg/apis/certificates/validation/validation.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.cells import NONE, human_duration
from deltaloop.apiserver.core.kinds.field_checks import config_key_problems, one_of, selector_errors
from deltaloop.apiserver.core.metadata.rules import invalid_values, subdomain_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy, Subresource, with_clients_metadata
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
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


SECRET: Final = Strategy(
    default=_default,
    validate=_errors,
    validate_update=lambda before, after: immutable_errors(before, after, _DATA),
    warn=_warnings,
)


_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_LARGEST: Final = 1024 * 1024


def key_errors(fields: dict[str, object], names: tuple[str, ...]) -> Iterator[SchemaError]:
    for name in names:
        for key in mapping(fields.get(name)):
            yield from invalid_values(f"{name}[{key}]", key, config_key_problems(key))
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


def immutable_errors(
    before: dict[str, object], after: dict[str, object], names: tuple[str, ...]
) -> Iterator[SchemaError]:
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


_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _rule_errors(place: Place) -> Iterator[SchemaError]:
    rule, path = place.fields, place.below("nonResourceURLs")
    urls = texts(rule.get("nonResourceURLs"))
    if urls:
        if at(place.whole, "metadata", "namespace"):
            yield invalid_value(path, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(texts(rule.get(name)) for name in ("apiGroups", "resources", "resourceNames")):
            yield invalid_value(path, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    for name, what in (("apiGroups", "api group"), ("resources", "resource")):
        if not texts(rule.get(name)):
            yield required(place.below(name), f"resource rules must supply at least one {what}")


def _kind_errors(place: Place) -> Iterator[SchemaError]:
    namespaced = at(place.whole, "metadata", "namespace")
    yield from one_of(place.value, place.path, ("Role", "ClusterRole") if namespaced else ("ClusterRole",))


def _subject_defaults(subject: dict[str, object]) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _GROUP


def _subject_errors(place: Place) -> Iterator[SchemaError]:
    kind, path = text(place.fields.get("kind")), place.below("apiGroup")
    group = text(place.fields.get("apiGroup"))
    if kind == "ServiceAccount" and place.fields.get("name"):
        yield from subdomain_errors(text(place.fields["name"]), place.below("name"))
    if kind not in _SUBJECTS:
        yield not_supported(place.below("kind"), kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        yield from one_of(group, path, ("",))
        if not (place.fields.get("namespace") or at(place.whole, "metadata", "namespace")):
            yield required(place.below("namespace"))
    else:
        yield from one_of(group, path, (_GROUP,))


def _binding_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("roleRef")), mapping(after.get("roleRef"))
    if old != new:
        in_go = {"APIGroup": new.get("apiGroup"), "Kind": new.get("kind"), "Name": new.get("name")}
        yield invalid_value("roleRef", in_go, IMMUTABLE)


def _role(binding: Mapping[str, object]) -> str:
    return f"{text(at(binding, 'roleRef', 'kind'))}/{text(at(binding, 'roleRef', 'name'))}"


def _name(subject: object) -> str:
    return text(at(subject, "name"))


def _name_and_namespace(subject: object) -> str:
    return f"{text(at(subject, 'namespace'))}/{_name(subject)}"


def _subjects(kind: str, shown_subject: Callable[[object], str] = _name) -> Cell:
    def cell(binding: Mapping[str, object]) -> str:
        subjects = items(binding.get("subjects"))
        return ", ".join(shown_subject(subject) for subject in subjects if at(subject, "kind") == kind)

    return cell


def _selectors_errors(place: Place) -> Iterator[SchemaError]:
    for number, selector in enumerate(items(place.value)):
        if any(selector_errors(selector, "")):
            yield invalid_value(f"{place.path}[{number}]", selector, "invalid label selector.")


ROLE: Final = Strategy(checks={"aggregated": _selectors_errors, "ruled_resources": _rule_errors})
BINDING: Final = Strategy(
    defaults={"rbac.v1.Subject": _subject_defaults},
    checks={"kind_of_role": _kind_errors, "subject": _subject_errors},
    validate_update=_binding_update_errors,
    cells={
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount", _name_and_namespace),
    },
)


_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def _role_warnings(account: Mapping[str, object]) -> Iterator[str]:
    if at(account, "metadata", "annotations", _MOUNTABLE) is not None:
        yield (
            f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
            "to mounted secrets"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "metadata", "annotations", _MOUNTABLE) is None:
        yield from _role_warnings(after)


ACCOUNT: Final = Strategy(
    warn_new=_role_warnings,
    warn_update=_update_warnings,
    subresources=(Subresource("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",)),),
)


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
    metadata = with_clients_metadata(mapping(current["metadata"]), mapping(sent.get("metadata")))
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
CERTIFICATE_SIGNING_REQUEST: Final = Strategy(
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
