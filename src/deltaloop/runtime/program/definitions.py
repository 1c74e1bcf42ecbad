"""Definitions of a program's own kinds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource_type import ResourceType
from deltaloop.crds import generate_crd
from deltaloop.crds.declaring import by_kind, declared_kind, is_kind
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.program.access import guess
from deltaloop.webhooks.declaring import AdmissionWebhook, Webhook


def kinds_in(module: ModuleType) -> list[list[type]]:
    """Return the classes of a module that declare kinds, grouped by kind, with the versions in order."""
    return by_kind(value for value in vars(module).values() if is_kind(value))


def program_definitions(
    modules: Iterable[ModuleType], controllers: Sequence[Controller], webhooks: Sequence[Webhook] = ()
) -> list[dict[str, Any]]:
    """Return the CRDs of a program's kinds. Classes of other API groups are skipped because others define them."""
    reconciled = [*map(kind_reconciled, controllers)]
    sides = [each for hook in webhooks for each in kinds_of(hook) if is_kind(each.model)]
    groups = {kind.group for kind in (*reconciled, *sides)}
    models = [kind.model for kind in (*reconciled, *sides) if kind.model is not None]
    searched = [*modules, *(sys.modules[model.__module__] for model in models if model.__module__ in sys.modules)]
    found: dict[str, list[type]] = {}
    for classes in (classes for each in dict.fromkeys(searched) for classes in kinds_in(each)):
        kind = declared_kind(classes[0]).type
        if kind.group in groups:
            found.setdefault(kind.group_resource, []).extend(classes)
    for model in filter(is_kind, models):  # include classes that are not module attributes
        found.setdefault(declared_kind(model).type.group_resource, []).append(model)
    return [generate_crd(*dict.fromkeys(classes)) for classes in found.values()]


def kinds_of(webhook: Webhook) -> tuple[ResourceType[Any], ...]:
    """Return the kinds of a webhook. A conversion has two, and optionally the class that it names."""
    if isinstance(webhook, AdmissionWebhook):
        return (webhook.type,)
    named = () if webhook.kind is None else (webhook.kind,)
    return (webhook.source, webhook.target, *named)


def kind_reconciled(controller: Controller) -> ResourceType[Any]:
    """Return the kind that a controller reconciles. The plural of an unknown kind is guessed."""
    try:
        return parse_resource_type(controller.resource)
    except UnknownResourceError:
        return guess(str(controller.resource))
