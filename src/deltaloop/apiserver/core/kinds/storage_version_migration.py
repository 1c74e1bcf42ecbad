"""StorageVersionMigration: what is stored anew, and how far that is.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core.strategy import Strategy


def _resource(migration: Mapping[str, object]) -> str:
    group = text(at(migration, "spec", "resource", "group"))
    return text(at(migration, "spec", "resource", "resource")) + (group and f".{group}")


STRATEGY: Final = Strategy(cells={"Resource": _resource})
