"""Webhooks of the cluster, which a plan does not call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.embedding import StoredObjects
from deltaloop.planning.core.result import ObjectChange
from deltaloop.webhooks import WebhookAddress, WebhookSet, registrations
from deltaloop.webhooks.declaring import Webhook

_OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "delete": "DELETE", "replace": "CREATE"}


def own_paths(webhooks: Sequence[Webhook]) -> frozenset[str]:
    """Return the paths of the program's own webhooks, which run in the plan."""
    if not webhooks:
        return frozenset()
    made = registrations(WebhookSet(webhooks), WebhookAddress(namespace="plan", service="plan"), name="plan")
    found = [text(at(each, "clientConfig", "service", "path")) for one in made for each in items(one.get("webhooks"))]
    return frozenset(filter(None, found))


def webhooks_not_asked(
    configurations: Iterable[Mapping[str, object]],
    changes: Sequence[ObjectChange],
    stored: StoredObjects,
    own: frozenset[str],
) -> list[str]:
    """Return the webhooks with a rule that matches changes of the program, with the number of changes.

    Selectors and match conditions are ignored, so a webhook that would skip an object can be listed.
    """
    kinds = Counter((change.kind, _OPERATIONS[change.action]) for change in changes if change.controller)
    written = [(*stored.names_of(kind), operation, count) for (kind, operation), count in kinds.items()]
    found: list[str] = []
    for configuration in configurations:
        for webhook in map(mapping, items(configuration.get("webhooks"))):
            if text(at(webhook, "clientConfig", "service", "path")) in own:
                continue
            count = sum(n for group, plural, operation, n in written if _matches(webhook, group, plural, operation))
            if count:
                name = f"{configuration['kind']} {text(at(configuration, 'metadata', 'name'))}"
                found.append(f"{name}: {text(webhook.get('name'))} ({count} changes)")
    return found


def _matches(webhook: Mapping[str, object], group: str, plural: str, operation: str) -> bool:
    def has(rule: object, field: str, *wanted: str) -> bool:
        return bool({*texts(at(rule, field))} & {"*", *wanted})

    return any(
        has(rule, "apiGroups", group)
        and has(rule, "resources", plural, f"{plural}/*", f"{plural}/status", "*/*")
        and has(rule, "operations", operation)
        for rule in items(webhook.get("rules"))
    )
