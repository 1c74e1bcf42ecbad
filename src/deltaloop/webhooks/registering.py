"""Register webhooks with an API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import CUSTOM_RESOURCE_DEFINITION
from deltaloop.api.status import NotFoundError
from deltaloop.client import Client
from deltaloop.webhooks.core.registrations import WebhookAddress, configuration, conversion_stanza
from deltaloop.webhooks.webhook_set import WebhookSet

_MANAGER: Final = "deltaloop-webhooks"


def registrations(
    webhooks: WebhookSet, address: WebhookAddress, *, name: str, own_namespace: str = ""
) -> list[dict[str, Any]]:
    """Return the configurations that register webhooks with an API server.

    Args:
        webhooks: Webhooks to register.
        address: Address of the webhook server.
        name: Name of the configurations.
        own_namespace: Namespace of the program, whose objects are not reviewed. Empty reviews all namespaces.
    """
    documents: list[dict[str, Any]] = []
    mutating = [each for each in webhooks.admission if each.mutates]
    if mutating:
        documents.append(configuration("Mutating", mutating, address, name=name, own_namespace=own_namespace))
    validating = [each for each in webhooks.admission if not each.mutates]
    if validating:
        documents.append(configuration("Validating", validating, address, name=name, own_namespace=own_namespace))
    documents += [conversion_stanza(each.type.group_resource, each.path, address) for each in webhooks.conversions]
    return documents


async def register(client: Client, documents: Iterable[Mapping[str, Any]]) -> None:
    """Apply the result of ``registrations`` to a test or development server; of definitions only the conversion."""
    manager = client.with_field_manager(_MANAGER)
    for document in documents:
        kind, name = str(document["kind"]), str(document["metadata"]["name"])
        if kind != CUSTOM_RESOURCE_DEFINITION.kind:
            await manager.apply(f"{document['apiVersion']}/{kind}", document, force=True)
            continue
        try:
            await manager.patch(CUSTOM_RESOURCE_DEFINITION, name, {"spec": document["spec"]})
        except NotFoundError:
            raise InvalidArgumentError(
                f"must be registered after the CustomResourceDefinition {name}.", argument="webhooks"
            ) from None
