"""Read and write the ``caBundle`` of the program's webhooks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from deltaloop.client import Client, PatchType
from deltaloop.webhooks.certificates import signing
from deltaloop.webhooks.certificates.targets import TARGET_KINDS
from deltaloop.webhooks.core.certificates.authorities import Certificate
from deltaloop.webhooks.core.certificates.rotation import TargetSeen, WriteBundle
from deltaloop.webhooks.core.certificates.targets import (
    WebhookTarget,
    bundle_patch,
    bundles_of,
    is_managed_elsewhere,
)

_log: Final = logging.getLogger("deltaloop.webhooks")


@final
class WebhookBundles:
    """Reader and writer of ``caBundle`` in the given configurations."""

    def __init__(self, client: Client, targets: Sequence[WebhookTarget]) -> None:
        self._client = client
        self._targets = tuple(targets)
        self._read: dict[WebhookTarget, Mapping[str, Any]] = {}

    async def read(self) -> list[TargetSeen]:
        found: list[TargetSeen] = []
        for target in self._targets:
            obj = await self._client.find(TARGET_KINDS[target.kind], target.name)
            fields = obj.to_dict() if obj is not None else {}
            self._read[target] = fields
            bundles = {name: _certificates(pems) for name, pems in bundles_of(target, fields).items()}
            found.append(TargetSeen(target, bundles, managed_elsewhere=is_managed_elsewhere(fields)))
        return found

    async def write(self, write: WriteBundle) -> None:
        """Write certificates into an unchanged configuration, or raise InvalidError from the patch's test operation."""
        patch = bundle_patch(write.target, self._read[write.target], [each.pem for each in write.certificates])
        await self._client.patch(TARGET_KINDS[write.target.kind], write.target.name, patch, type=PatchType.JSON)
        _log.info("wrote caBundle", extra={"target": str(write.target), "certificates": len(write.certificates)})


def _certificates(pems: Sequence[str] | None) -> tuple[Certificate, ...] | None:
    if pems is None:
        return None
    try:
        return tuple(signing.read_certificate(pem) for pem in pems)
    except ValueError:
        return None
