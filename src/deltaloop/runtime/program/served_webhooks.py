"""The webhooks of a manager: their server, and the caches that they read.

Source: controller-runtime pkg/manager/internal.go (webhooks start before caches).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import ResourceType, as_kind
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import Informer
from deltaloop.cache.lister import Lister
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.runtime.core.readiness import Check

if TYPE_CHECKING:
    from deltaloop.webhooks import WebhookMetrics, WebhookServer, WebhookSet
    from deltaloop.webhooks.certificates.sources import CertificateSource
    from deltaloop.webhooks.declaring import Webhook
    from deltaloop.webhooks.server_options import WebhookServerOptions

_logger: Final = logging.getLogger("deltaloop.runtime")


@final
class ServedWebhooks:
    """What one manager serves; nothing at all without webhooks.

    Attributes:
        reads: Kinds whose caches they read.
        server: Their server while it runs.
    """

    def __init__(
        self,
        webhooks: Sequence[Webhook],
        options: WebhookServerOptions | None,
        *,
        certificates: CertificateSource | None,
        metrics: WebhookMetrics | None,
    ) -> None:
        """Put webhooks together; nothing runs yet.

        Args:
            webhooks: As they were declared.
            options: Where they are served; None nowhere.
            certificates: Where the server has its certificate from.
            metrics: Hooks.

        Raises:
            InvalidWebhookError: If they do not fit together.
            InvalidArgumentError: If they are to be served, and there is no certificate.
        """
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
            raise InvalidArgumentError("API servers call webhooks by HTTPS only: give Manager(certificates=...)")
        self.reads = self._set.reads

    @property
    def grace(self) -> float:
        """Seconds for which webhooks are served after the program began to end."""
        return 0.0 if self._set is None or self._options is None else self._options.grace

    def checks(self) -> tuple[Check, ...]:
        """Return the check of ``/readyz``; none if nothing is served."""
        if self._set is None or self._options is None:
            return ()
        why = "webhooks are not served" if self.server is None else self.server.not_ready()
        return (Check(name="webhooks", ok=not why, message=why),)

    async def start(self, stack: AsyncExitStack) -> None:
        """Serve, until the stack is closed.

        Raises:
            WebhookServerError: If the address cannot be used.
        """
        if self._set is None:
            return
        if self._options is None or self._certificates is None:
            _logger.warning("webhooks are declared and not served", extra={"paths": sorted(self._set.by_path)})
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
        """Have a factory cache what webhooks read; return the informers."""
        self._informers = {str(kind): factory.informer(untyped(kind)) for kind in self.reads}
        return [*self._informers.values()]

    def _lister(self, kind: Kind) -> Lister[Any]:
        from deltaloop.webhooks.errors import CachesNotFilledError

        kind = as_kind(kind)
        informer = self._informers.get(str(kind))
        if informer is None or not informer.has_synced:
            raise CachesNotFilledError(f"the cache of {kind} is not filled yet")
        return Lister(informer.indexer, kind) if isinstance(kind, ResourceType) else informer.lister()
