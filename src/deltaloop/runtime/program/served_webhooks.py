"""Webhook server of a manager, and the caches that the webhooks read.

Source: controller-runtime pkg/manager/internal.go (webhooks start before caches).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import Kind, ResourceType, as_kind
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import Informer
from deltaloop.cache.lister import Lister

if TYPE_CHECKING:
    from deltaloop.runtime.core.readiness import Check
    from deltaloop.webhooks import WebhookMetrics, WebhookServer, WebhookSet
    from deltaloop.webhooks.certificates.sources import CertificateSource
    from deltaloop.webhooks.declaring import Webhook
    from deltaloop.webhooks.server_options import WebhookServerOptions

_logger: Final = logging.getLogger("deltaloop.runtime")


@final
class ServedWebhooks:
    """Webhooks that one manager serves."""

    def __init__(
        self,
        webhooks: Sequence[Webhook],
        options: WebhookServerOptions | None,
        *,
        certificates: CertificateSource | None,
        metrics: WebhookMetrics | None,
    ) -> None:
        """Combine webhooks without starting a server; without options, they are not served."""
        self.reads: tuple[ResourceType[Any], ...] = ()
        self.server: WebhookServer | None = None
        self._set: WebhookSet | None = None
        self._options = options
        self._certificates = certificates
        self._metrics = metrics
        self._informers: dict[str, Informer[Resource]] = {}
        if not webhooks:
            return
        from deltaloop.webhooks.webhook_set import WebhookSet

        self._set = WebhookSet(webhooks)
        if options is None:
            return
        if certificates is None:
            raise InvalidArgumentError(
                "must be set, because webhooks require HTTPS.", argument="Manager(certificates=...)"
            )
        self.reads = self._set.reads

    @property
    def grace(self) -> float:
        """Return the time in seconds for which webhooks are served after the shutdown began."""
        return 0.0 if self._set is None or self._options is None else self._options.grace

    def checks(self) -> tuple[Check, ...]:
        """Return the check of ``/readyz``; empty if no webhooks are served."""
        if self._set is None or self._options is None:
            return ()
        from deltaloop.runtime.core.readiness import Check

        why = "webhooks are not served" if self.server is None else self.server.not_ready()
        return (Check(name="webhooks", ok=not why, message=why),)

    async def start(self, stack: AsyncExitStack) -> None:
        """Serve webhooks until the stack is closed, or raise WebhookServerError."""
        if self._set is None:
            return
        if self._options is None or self._certificates is None:
            _logger.warning("not serving declared webhooks", extra={"paths": sorted(self._set.by_path)})
            return
        from deltaloop.webhooks.server import WebhookServer

        server = WebhookServer(
            self._set,
            self._certificates,
            options=self._options,
            listers=self._lister,
            metrics=self._metrics,
        )
        self.server = await stack.enter_async_context(server)

    def connect(self, factory: InformerFactory) -> list[Informer[Resource]]:
        """Cache the kinds that webhooks read, and return their informers."""
        self._informers = {str(kind): factory.informer(untyped(kind)) for kind in self.reads}
        return [*self._informers.values()]

    def _lister(self, kind: Kind) -> Lister[Any]:
        from deltaloop.webhooks.errors import CachesNotFilledError

        kind = as_kind(kind)
        informer = self._informers.get(str(kind))
        if informer is None or not informer.has_synced:
            raise CachesNotFilledError(f"the cache of {kind} is not filled yet")
        return Lister(informer.indexer, kind) if isinstance(kind, ResourceType) else informer.lister()
