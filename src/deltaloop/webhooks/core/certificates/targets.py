"""Configurations whose ``caBundle`` is ours to write: which webhooks in them, what is there, and the patch of it.

Nothing else of a configuration is read or written: a patch names the webhooks that were asked for and the version that
was seen, and of a webhook that was not asked for, nothing.

Source: k8s.io/api admissionregistration/v1 ``WebhookClientConfig``, apiextensions/v1 ``WebhookConversion``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast, final

from deltaloop.api.errors import InvalidArgumentError

CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager's ca-injector is asked to write ``caBundle``."""

_ELSEWHERE: Final = (CERT_MANAGER, "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca")
_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@final
class TargetKind(Enum):
    """Kinds of configurations that name webhooks."""

    VALIDATING = "ValidatingWebhookConfiguration"
    MUTATING = "MutatingWebhookConfiguration"
    CONVERSION = "CustomResourceDefinition"


@final
@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """One configuration.

    Attributes:
        kind: What kind of configuration.
        name: Its name.
        webhooks: Names of the webhooks in it that are ours; empty for a definition, which has one conversion.
    """

    kind: TargetKind
    name: str
    webhooks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what names no webhook.

        Raises:
            InvalidArgumentError: If the name is empty, or webhooks are missing, or are given for a definition.
        """
        if not self.name:
            raise InvalidArgumentError(f"WebhookTarget: the name of the {self.kind.value} is empty")
        if (self.kind is TargetKind.CONVERSION) == bool(self.webhooks):
            raise InvalidArgumentError(
                f"WebhookTarget: {self.kind.value} {self.name} has webhooks={self.webhooks!r}; a configuration needs"
                " the names of those that are yours, a definition has none"
            )

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


def is_managed_elsewhere(obj: Mapping[str, Any]) -> bool:
    """Tell whether a configuration asks another tool for its ``caBundle``."""
    annotations = _mapping(_mapping(obj.get("metadata")).get("annotations"))
    return any(name in annotations for name in _ELSEWHERE)


def bundles_of(target: WebhookTarget, obj: Mapping[str, Any]) -> dict[str, tuple[str, ...] | None]:
    """Return the certificates in ``caBundle`` of each webhook that is ours, in PEM; None if that is not readable."""
    if target.kind is TargetKind.CONVERSION:
        conversion = _mapping(_mapping(obj.get("spec")).get("conversion"))
        if conversion.get("strategy") != "Webhook":
            return {}
        return {"": _certificates(_mapping(_mapping(conversion.get("webhook")).get("clientConfig")))}
    found: dict[str, tuple[str, ...] | None] = {}
    for webhook in _sequence(obj.get("webhooks")):
        fields = _mapping(webhook)
        if (name := str(fields.get("name", ""))) in target.webhooks:
            found[name] = _certificates(_mapping(fields.get("clientConfig")))
    return found


def bundle_patch(target: WebhookTarget, obj: Mapping[str, Any], certificates: Sequence[str]) -> list[dict[str, Any]]:
    """Return the JSON patch that writes certificates into the ``caBundle`` of the webhooks that are ours.

    Args:
        target: Which webhooks.
        obj: The configuration as it was seen; the patch is refused if it has changed since.
        certificates: In PEM.
    """
    text = "".join(f"{each.strip()}\n" for each in certificates)
    bundle = base64.b64encode(text.encode()).decode()
    version = _mapping(obj.get("metadata")).get("resourceVersion")
    patch: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    if target.kind is TargetKind.CONVERSION:
        return [*patch, {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}]
    for index, webhook in enumerate(_sequence(obj.get("webhooks"))):
        if (name := _mapping(webhook).get("name")) in target.webhooks:
            patch.append({"op": "test", "path": f"/webhooks/{index}/name", "value": name})
            patch.append({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle})
    return patch


def split_pem(text: str) -> tuple[str, ...]:
    """Return the certificates in a text, each with its lines; what stands between is comment."""
    return tuple(f"{found}\n" for found in _CERTIFICATE.findall(text))


def _certificates(client_config: Mapping[str, Any]) -> tuple[str, ...] | None:
    bundle = client_config.get("caBundle")
    if not isinstance(bundle, str):
        return ()
    try:
        return split_pem(base64.b64decode(bundle, validate=True).decode())
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
