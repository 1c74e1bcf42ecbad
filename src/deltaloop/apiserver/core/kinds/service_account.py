"""ServiceAccount: a token can be asked of one, which the driver signs; what it may mount is a matter of namespaces.

Source: Kubernetes pkg/registry/core/serviceaccount/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at
from deltaloop.apiserver.core.strategy import Strategy, Subresource

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def _warnings(account: Mapping[str, object]) -> Iterator[str]:
    if at(account, "metadata", "annotations", _MOUNTABLE) is not None:
        yield (
            f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
            "to mounted secrets"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "metadata", "annotations", _MOUNTABLE) is None:
        yield from _warnings(after)


STRATEGY: Final = Strategy(
    warn_new=_warnings,
    warn_update=_update_warnings,
    subresources=(Subresource("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",)),),
)
