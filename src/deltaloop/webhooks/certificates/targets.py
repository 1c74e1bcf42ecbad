"""Configurations that reference webhooks, and their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltaloop.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.webhooks.core.certificates.targets import TargetKind, WebhookTarget

TARGET_KINDS: Final[Mapping[TargetKind, ResourceType[Resource]]] = {
    TargetKind.VALIDATING: VALIDATING_WEBHOOK_CONFIGURATION,
    TargetKind.MUTATING: MUTATING_WEBHOOK_CONFIGURATION,
    TargetKind.CONVERSION: CUSTOM_RESOURCE_DEFINITION,
}


def targets_in(documents: Iterable[Mapping[str, Any]]) -> tuple[WebhookTarget, ...]:
    """Return the configurations among the documents of ``registrations``. All their webhooks belong to the program."""
    return tuple(
        WebhookTarget(kind, document["metadata"]["name"], tuple(each["name"] for each in document.get("webhooks", ())))
        for document in documents
        for kind in TargetKind
        if document["kind"] == kind.value
    )
