"""The objects that make an API server ask webhooks: configurations, and what a CRD says of conversion.

What stands in them keeps a cluster alive while nobody answers:

    own namespace left out    the program's Pods and Secrets come up although nobody is there yet to be asked about them
    timeoutSeconds            the API server waits for so long; the webhook itself has given up a moment before
    failurePolicy             what becomes of a request then: refused, or let pass
    sideEffects: None         dry runs are asked about, too
    matchPolicy: Equivalent   asked about the same object by another version of its API, converted to the one declared

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, final

import msgspec

_GROUP: Final = "admissionregistration.k8s.io/v1"


@final
class WebhookAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds webhooks: a Service, or a URL.

    Attributes:
        namespace: The Service's namespace.
        service: Its name; empty if there is a URL.
        port: Its port.
        url: Such as ``https://192.0.2.7:9443``; what stands before the path of each webhook.
        ca_bundle: Authorities of the certificate, PEM in base64; empty where somebody else puts them in.
    """

    namespace: str = ""
    service: str = ""
    port: int = 443
    url: str = ""
    ca_bundle: str = ""

    def client_config(self, path: str) -> dict[str, Any]:
        """Return the ``clientConfig`` of a path."""
        if self.url:
            config: dict[str, Any] = {"url": f"{self.url}{path}"}
        else:
            service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
            config = {"service": service}
        return config | ({"caBundle": self.ca_bundle} if self.ca_bundle else {})


@final
class RegisteredWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration says of one webhook; times in seconds."""

    name: str
    path: str
    group: str
    version: str
    resources: tuple[str, ...]
    namespaced: bool
    operations: tuple[str, ...]
    failure_policy: str
    timeout: int


def configuration(
    kind: Literal["Validating", "Mutating"],
    webhooks: Sequence[RegisteredWebhook],
    address: WebhookAddress,
    *,
    name: str,
    own_namespace: str,
) -> dict[str, Any]:
    """Return a ``ValidatingWebhookConfiguration`` or a ``MutatingWebhookConfiguration``.

    Args:
        kind: Which of them.
        webhooks: What it registers.
        address: Where they are.
        name: Its name.
        own_namespace: Objects of this namespace are not asked about; "" leaves none out.
    """
    return {
        "apiVersion": _GROUP,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [_webhook(each, address, own_namespace) for each in webhooks],
    }


def _webhook(webhook: RegisteredWebhook, address: WebhookAddress, own_namespace: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [webhook.group],
        "apiVersions": [webhook.version],
        "operations": [*webhook.operations],
        "resources": [*webhook.resources],
        "scope": "Namespaced" if webhook.namespaced else "Cluster",
    }
    others = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [own_namespace]}
    selector = {"namespaceSelector": {"matchExpressions": [others]}} if own_namespace else {}
    return {
        "name": webhook.name,
        "clientConfig": address.client_config(webhook.path),
        "rules": [rule],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": webhook.timeout,
        **selector,
        "admissionReviewVersions": ["v1"],
    }


def conversion_stanza(group_resource: str, path: str, address: WebhookAddress) -> dict[str, Any]:
    """Return what the definition of a kind has to say of conversion, as an object to apply to it.

    Args:
        group_resource: Name of the definition.
        path: Path of the kind's conversions.
        address: Where they are.
    """
    webhook = {"clientConfig": address.client_config(path), "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": group_resource},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    }
