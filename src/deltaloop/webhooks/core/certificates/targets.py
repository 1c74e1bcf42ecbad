"""Read and patch the ``caBundle`` of the program's webhooks in a configuration, and no other webhook.

Source: k8s.io/api admissionregistration/v1 ``WebhookClientConfig``, apiextensions/v1 ``WebhookConversion``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, items, mapping, text

CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
"""Annotation that makes cert-manager's ca-injector write ``caBundle``."""

_ELSEWHERE: Final = (CERT_MANAGER, "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca")
_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@final
class TargetKind(Enum):
    """Kinds of configurations that reference webhooks."""

    VALIDATING = "ValidatingWebhookConfiguration"
    MUTATING = "MutatingWebhookConfiguration"
    CONVERSION = "CustomResourceDefinition"


@final
@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Configuration that references webhooks of the program.

    Attributes:
        kind: Kind of the configuration.
        name: Name of the configuration.
        webhooks: Names of the program's webhooks. Empty for a definition, which has one conversion.

    Raises:
        InvalidArgumentError: If the name or the webhooks are missing, or a definition has webhooks.
    """

    kind: TargetKind
    name: str
    webhooks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidArgumentError("must not be empty.", argument="WebhookTarget.name")
        if (self.kind is TargetKind.CONVERSION) == bool(self.webhooks):
            raise InvalidArgumentError(
                f"must be your webhooks of a configuration, or empty for a definition, got {self.webhooks!r}.",
                argument="WebhookTarget.webhooks",
            )

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


def is_managed_elsewhere(obj: Mapping[str, Any]) -> bool:
    annotations = mapping(at(obj, "metadata", "annotations"))
    return any(name in annotations for name in _ELSEWHERE)


def bundles_of(target: WebhookTarget, obj: Mapping[str, Any]) -> dict[str, tuple[str, ...] | None]:
    """Return the ``caBundle`` of each webhook of the program as PEM certificates, or None if it is not readable."""
    if target.kind is TargetKind.CONVERSION:
        conversion = mapping(at(obj, "spec", "conversion"))
        if conversion.get("strategy") != "Webhook":
            return {}
        return {"": _certificates(at(conversion, "webhook", "clientConfig", "caBundle"))}
    found: dict[str, tuple[str, ...] | None] = {}
    for webhook in items(obj.get("webhooks")):
        if (name := text(at(webhook, "name"))) in target.webhooks:
            found[name] = _certificates(at(webhook, "clientConfig", "caBundle"))
    return found


def bundle_patch(target: WebhookTarget, obj: Mapping[str, Any], certificates: Sequence[str]) -> list[dict[str, Any]]:
    """Return the JSON patch that writes PEM certificates into ``caBundle`` of an unchanged configuration."""
    pem = "".join(f"{each.strip()}\n" for each in certificates)
    bundle = base64.b64encode(pem.encode()).decode()
    version = at(obj, "metadata", "resourceVersion")
    patch: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    if target.kind is TargetKind.CONVERSION:
        return [*patch, {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}]
    for index, webhook in enumerate(items(obj.get("webhooks"))):
        if (name := at(webhook, "name")) in target.webhooks:
            patch.append({"op": "test", "path": f"/webhooks/{index}/name", "value": name})
            patch.append({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle})
    return patch


def split_pem(text: str) -> tuple[str, ...]:
    """Return the certificates in a text. Text between them is a comment."""
    return tuple(f"{found}\n" for found in _CERTIFICATE.findall(text))


def _certificates(bundle: object) -> tuple[str, ...] | None:
    if not isinstance(bundle, str):
        return ()
    try:
        return split_pem(base64.b64decode(bundle, validate=True).decode())
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
