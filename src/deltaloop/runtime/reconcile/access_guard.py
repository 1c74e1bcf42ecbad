"""Enforcement of a controller's declared access."""

from __future__ import annotations

import logging
from typing import Any, Final, final

from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.declared_access import DeclaredAccess, NeededAccess, UndeclaredAccess

_logger: Final = logging.getLogger("deltaloop.runtime")


@final
class AccessGuard:
    """Check the requests of one controller's reconciles; a ``deltaloop.client.AccessCheck``."""

    def __init__(self, controller: str, declared: DeclaredAccess, undeclared_access: UndeclaredAccess) -> None:
        self._controller = controller
        self._declared = declared
        self._everywhere = declared.everywhere
        self._refuses = undeclared_access is UndeclaredAccess.REJECT
        self._told: set[tuple[str, str, str]] = set()

    def __call__(self, verb: str, kind: ResourceType[Any], namespace: str | None, subresource: str) -> None:
        """Allow a request, warn about it once, or reject it by UndeclaredAccessError."""
        if (verb, kind.group, kind.plural, subresource) in self._everywhere:
            return
        needed = self._declared.undeclared(verb, kind, namespace, subresource)
        if needed is None:
            return
        if self._refuses:
            from deltaloop.runtime.reconcile.errors import UndeclaredAccessError

            raise UndeclaredAccessError(self._controller, needed)
        self._tell(needed)

    def _tell(self, needed: NeededAccess) -> None:
        sort = (needed.verb, needed.kind, needed.subresource)
        if sort not in self._told:
            self._told.add(sort)
            _logger.warning(
                "controller made an undeclared request",
                extra={"controller": self._controller, "access": str(needed), "remedy": needed.remedy()},
            )
