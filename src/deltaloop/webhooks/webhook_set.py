"""Webhooks of one program by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.webhooks.admitting import admit
from deltaloop.webhooks.answer import Answer
from deltaloop.webhooks.converting import KindConversion, answer_conversion
from deltaloop.webhooks.declaring import AdmissionWebhook, ConversionFunction, Webhook, known_kind
from deltaloop.webhooks.errors import InvalidWebhookError
from deltaloop.webhooks.request import Listers, no_listers


@final
class WebhookSet:
    """Webhooks that are served together.

    Attributes:
        admission: Webhooks that validate or mutate, in declaration order.
        conversions: Conversions of each kind.
        reads: Kinds whose caches the webhooks read.

    Raises:
        InvalidWebhookError: If two webhooks have the same name, or the conversions of a kind do not form a hub and
            spokes.
        InvalidArgumentError: If an item is not a webhook.
    """

    def __init__(self, webhooks: Iterable[Webhook]) -> None:
        self._by_path: dict[str, AdmissionWebhook | KindConversion] = {}
        functions: dict[str, list[ConversionFunction]] = {}
        admission: list[AdmissionWebhook] = []
        for each in _required(webhooks):
            if isinstance(each, ConversionFunction):
                functions.setdefault(each.path, []).append(each)
                continue
            if any(each.name == other.name for other in admission):
                raise InvalidWebhookError(each.name, "name must be unique. Set name=...", option="name")
            admission.append(each)
            self._by_path[each.path] = each
        self.admission: tuple[AdmissionWebhook, ...] = tuple(admission)
        self.conversions: tuple[KindConversion, ...] = tuple(map(KindConversion, functions.values()))
        self._by_path |= {each.path: each for each in self.conversions}
        read = {str(kind): kind for each in admission for kind in each.reads}
        self.reads: tuple[ResourceType[Any], ...] = tuple(known_kind("reads", kind) for kind in read.values())

    @property
    def by_path(self) -> Mapping[str, AdmissionWebhook | KindConversion]:
        """Admission webhook or conversions at each path."""
        return MappingProxyType(self._by_path)

    def name_at(self, path: str) -> str:
        """Return the name of the webhook at a path for logs and metrics, or "" for an unknown path."""
        found = self._by_path.get(path)
        if found is None:
            return ""
        return found.name if isinstance(found, AdmissionWebhook) else f"convert.{found.type.group_resource}"

    def answer(self, path: str, body: bytes, listers: Listers = no_listers) -> Answer:
        """Respond to a review.

        Args:
            path: Path of a webhook.
            body: Review as received.
            listers: Function that returns the lister of a kind.
        """
        found = self._by_path[path]
        return answer_conversion(found, body) if isinstance(found, KindConversion) else admit(found, body, listers)

    def __bool__(self) -> bool:
        return bool(self._by_path)

    def __repr__(self) -> str:
        return f"<WebhookSet of {', '.join(self._by_path) or 'nothing'}>"


def _required(given: object) -> list[Webhook]:
    if isinstance(given, AdmissionWebhook | ConversionFunction) or not isinstance(given, Iterable):
        got = f"a {type(given).__name__}"
        raise InvalidArgumentError(f"must be a list, got {got}. Use webhooks=[...].", argument="webhooks")
    found: list[Webhook] = []
    for each in cast("Iterable[object]", given):
        if not isinstance(each, AdmissionWebhook | ConversionFunction):
            got = f"{type(each).__name__} {getattr(each, '__name__', '')}".rstrip()
            raise InvalidArgumentError(
                f"must be functions with @dl.validate, @dl.mutate or @dl.convert, got {got}.", argument="webhooks"
            )
        found.append(each)
    return found
