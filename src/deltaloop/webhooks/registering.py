"""What a program's webhooks need in a cluster, as documents. Core: ``core/registrations.py``."""

from __future__ import annotations

from typing import Any

from deltaloop.webhooks.core.registrations import (
    RegisteredWebhook,
    WebhookAddress,
    configuration,
    conversion_stanza,
)
from deltaloop.webhooks.declaring import AdmissionWebhook
from deltaloop.webhooks.webhook_set import WebhookSet


def registrations(
    webhooks: WebhookSet, address: WebhookAddress, *, name: str, own_namespace: str = ""
) -> list[dict[str, Any]]:
    """Return the objects that make an API server ask webhooks: what mutates, what validates, what converts.

    Args:
        webhooks: What is served.
        address: Where.
        name: Of the configurations.
        own_namespace: Where the program runs; objects of that namespace are not asked about.
    """
    documents: list[dict[str, Any]] = []
    mutating = [_registered(each) for each in webhooks.admission if each.mutates]
    if mutating:
        documents.append(configuration("Mutating", mutating, address, name=name, own_namespace=own_namespace))
    validating = [_registered(each) for each in webhooks.admission if not each.mutates]
    if validating:
        documents.append(configuration("Validating", validating, address, name=name, own_namespace=own_namespace))
    documents += [conversion_stanza(each.type.group_resource, each.path, address) for each in webhooks.conversions]
    return documents


def _registered(webhook: AdmissionWebhook) -> RegisteredWebhook:
    kind = webhook.type
    return RegisteredWebhook(
        name=webhook.name,
        path=webhook.path,
        group=kind.group,
        version=kind.version,
        resources=tuple(f"{kind.plural}/{each}" for each in webhook.subresources) or (kind.plural,),
        namespaced=kind.namespaced,
        operations=tuple(webhook.operations),
        failure_policy=webhook.failure_policy,
        timeout=webhook.timeout,
    )
