"""ServiceAccount: a token can be asked of one, which the driver signs."""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.strategy import Strategy, Subresource

STRATEGY: Final = Strategy(
    subresources=(Subresource("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",)),)
)
