"""CSIDriver: what provides volumes of a kind of its own.

Source: Kubernetes pkg/registry/storage/csidriver/strategy.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import UNSET
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, integer, items, mapping, text


def _warnings(driver: Mapping[str, object]) -> Iterator[str]:
    if items(at(driver, "spec", "tokenRequests")) and at(driver, "spec", "serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
            "possible logging of tokens in volume attributes"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "spec", "tokenRequests") != at(after, "spec", "tokenRequests"):
        yield from _warnings(after)


def _prepare_update(before: dict[str, object], after: dict[str, object]) -> None:
    # A new driver has no generation.
    if before.get("spec") != after.get("spec"):
        metadata = mapping(after["metadata"])
        metadata["generation"] = integer(metadata.get("generation")) + 1


def _token_requests(driver: Mapping[str, object]) -> str:
    requests = at(driver, "spec", "tokenRequests")
    return UNSET if requests is None else ",".join(text(at(item, "audience")) for item in items(requests))


STRATEGY: Final = Strategy(
    prepare_update=_prepare_update,
    warn_new=_warnings,
    warn_update=_update_warnings,
    cells={
        "AttachRequired": lambda driver: at(driver, "spec", "attachRequired") is not False,
        "TokenRequests": _token_requests,
    },
)
