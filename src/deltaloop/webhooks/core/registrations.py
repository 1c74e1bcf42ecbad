"""Build the configurations that register webhooks, and the conversion part of a CRD.

The program's own namespace is excluded, so that its Pods and Secrets can be created before the webhook responds. Dry
runs are reviewed as well (``sideEffects: None``), and requests for other versions are converted (``matchPolicy:
Equivalent``).

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, final

import msgspec

if TYPE_CHECKING:
    from deltaloop.webhooks.declaring import AdmissionWebhook

_GROUP: Final = "admissionregistration.k8s.io/v1"


@final
class WebhookAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Address of webhooks for the API server: a Service or a URL.

    Attributes:
        namespace: Namespace of the Service.
        service: Name of the Service. Empty if ``url`` is set.
        port: Port of the Service.
        url: Base URL without the path of a webhook, for example ``https://192.0.2.7:9443``.
        ca_bundle: Authorities of the certificate, as PEM in base64. Empty if another component adds them.
    """

    namespace: str = ""
    service: str = ""
    port: int = 443
    url: str = ""
    ca_bundle: str = ""

    def client_config(self, path: str) -> dict[str, Any]:
        """Return the ``clientConfig`` for a path."""
        if self.url:
            config: dict[str, Any] = {"url": f"{self.url}{path}"}
        else:
            service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
            config = {"service": service}
        return config | ({"caBundle": self.ca_bundle} if self.ca_bundle else {})


def configuration(
    kind: Literal["Validating", "Mutating"],
    webhooks: Sequence[AdmissionWebhook],
    address: WebhookAddress,
    *,
    name: str,
    own_namespace: str,
) -> dict[str, Any]:
    """Return a webhook configuration that excludes ``own_namespace`` unless it is empty."""
    return {
        "apiVersion": _GROUP,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [_webhook(each, address, own_namespace) for each in webhooks],
    }


def _webhook(webhook: AdmissionWebhook, address: WebhookAddress, own_namespace: str) -> dict[str, Any]:
    kind = webhook.type
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": [*webhook.operations],
        "resources": [f"{kind.plural}/{each}" for each in webhook.subresources] or [kind.plural],
        "scope": "Namespaced" if kind.namespaced else "Cluster",
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
    """Return the conversion part of a definition, as an object to apply."""
    webhook = {"clientConfig": address.client_config(path), "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": group_resource},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    }
