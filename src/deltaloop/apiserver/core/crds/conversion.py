"""Validation of a CRD's conversion settings.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation; apiserver pkg/util/webhook/validation.go.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Iterator
from typing import Any, Final

from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.json_values import at, integer, is_mapping, mapping, text, texts
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.go_urls import UrlError, parse_url

_STRATEGIES: Final = ("None", "Webhook")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_LAST_PORT: Final = 65_535
_FORM: Final = "; desired format: https://host[/path]"
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s([^-]+)-----END CERTIFICATE-----")
_AT_CLIENT: Final = "spec.conversion.webhookClientConfig"


def conversion_errors(crd: dict[str, Any], *, any_authority: bool) -> Iterator[SchemaError]:
    """Yield the errors in the conversion settings of a defaulted CRD; ``any_authority`` accepts every ``caBundle``.

    It is True for CRDs that are not established, because establishing waits for a valid bundle, and if the old one was
    invalid.
    """
    strategy = text(at(crd, "spec", "conversion", "strategy"))
    webhook = mapping(at(crd, "spec", "conversion", "webhook"))
    client = webhook.get("clientConfig")
    versions = texts(webhook.get("conversionReviewVersions"))
    at_versions = "spec.conversion.conversionReviewVersions"
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in _STRATEGIES:
        yield not_supported("spec.conversion.strategy", strategy, _STRATEGIES)
    if strategy == "Webhook":
        if is_mapping(client):
            yield from client_errors(client, _AT_CLIENT)
            if not (any_authority or has_authority(crd)):
                words = "unable to load root certificates: unable to parse bytes as PEM block"
                yield invalid_value(f"{_AT_CLIENT}.caBundle", client["caBundle"], words)
        else:
            yield required(_AT_CLIENT, "required when strategy is set to Webhook")
        yield from review_version_errors(versions, at_versions)
        return
    if client is not None:
        yield forbidden_field(_AT_CLIENT, "should not be set when strategy is not set to Webhook")
    if versions:
        yield forbidden_field(at_versions, "should not be set when strategy is not set to Webhook")


def has_authority(crd: dict[str, Any]) -> bool:
    """Return whether the CA bundle can be parsed. An empty bundle means the system's CAs (``rootCertPool``)."""
    given = text(at(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"))
    if not given:
        return True
    try:
        return any(_is_certificate(match[1]) for match in _CERTIFICATE.finditer(b64decode(given)))
    except BinasciiError:
        return False


def _is_certificate(encoded: bytes) -> bool:
    try:
        return b64decode(encoded, validate=False)[:1] == b"\x30"
    except BinasciiError:
        return False


def client_errors(client: dict[str, Any], field: str) -> Iterator[SchemaError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_errors(text(url), f"{field}.url")
    else:
        yield from _service_errors(mapping(service), f"{field}.service")


def _url_errors(url: str, field: str) -> Iterator[SchemaError]:
    try:
        parts = parse_url(url)
    except UrlError as error:
        yield required(field, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield invalid_value(field, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.host:
        yield invalid_value(field, "", f"host must be specified{_FORM}")
    if parts.user is not None:
        yield invalid_value(field, parts.user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_value(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.raw_query:
        yield invalid_value(field, parts.raw_query, "query parameters are not permitted in the URL")


def _service_errors(service: dict[str, Any], field: str) -> Iterator[SchemaError]:
    # The real server swaps the two names.
    for name, other in (("name", "namespace"), ("namespace", "name")):
        if not service.get(other):
            yield required(f"{field}.{name}")
    port = integer(service.get("port"))
    if not 0 < port <= _LAST_PORT:
        yield invalid_value(f"{field}.port", port, f"port is not valid: must be between 1 and {_LAST_PORT}, inclusive")
    path, where = text(service.get("path")), f"{field}.path"
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid_value(where, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid_value(where, path, "must start with a '/'")
    for position, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_value(where, path, f"segment[{position}] may not be empty")
        for problem in subdomain_problems(segment) if segment else ():
            yield invalid_value(where, path, f"segment[{position}]: {problem}")


def review_version_errors(
    versions: tuple[str, ...], field: str, *, if_missing: str = "", must_know: bool = True
) -> Iterator[SchemaError]:
    if not versions:
        yield required(field, if_missing)
        return
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield invalid_value(f"{field}[{position}]", version, "duplicate version")
        else:
            for problem in label_problems(version):
                yield invalid_value(f"{field}[{position}]", version, problem)
    if must_know and not set(versions) & set(REVIEW_VERSIONS):
        yield invalid_value(field, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}")
