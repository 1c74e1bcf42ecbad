"""Check of a controller's requests against its declared access, which ``deltaloop generate rbac`` prints.

Source: apiserver pkg/authorization/authorizer ``Attributes``; plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, final

import msgspec

from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.access import READ_VERBS, AccessRule, Permission

_EVERYWHERE: Final = ""
_ANYBODY_MAY: Final = frozenset({
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
})  # fmt: skip


class UndeclaredAccess(Enum):
    """Handling of requests that a controller does not declare.

    Attributes:
        WARN: The request is sent, and the first one of each sort is logged. The account's role can allow more than the
            controller declares.
        REJECT: The request is not sent, and ``UndeclaredAccessError`` names the missing declaration.
    """

    WARN = "warn"
    REJECT = "reject"


@final
class NeededAccess(msgspec.Struct, frozen=True):
    """Access that one request needs; an empty ``namespace`` means all namespaces or a cluster-scoped kind."""

    verb: str
    kind: str
    subresource: str = ""
    namespace: str = ""

    def remedy(self) -> str:
        more = f", subresource={self.subresource!r}" if self.subresource else ""
        exact = f"dl.Permission({self.kind!r}, verbs=({self.verb!r},){more})"
        if self.verb in READ_VERBS and not self.subresource:
            return f"add {exact} to writes=[...], or {self.kind!r} to reads=[...], which caches them"
        if self.subresource or self.verb == "deletecollection":
            return f"add {exact} to writes=[...]"
        return f"add {self.kind!r} to writes=[...], or, only for this verb, {exact}"

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.kind}{part}{where}"


@final
class DeclaredAccess:
    def __init__(self, rules: Iterable[AccessRule], later: Iterable[tuple[Permission, str | None]] = ()) -> None:
        """Index the rules; ``later`` has permissions for kinds that are given by name and not known yet."""
        self._places: dict[tuple[str, str, str], set[str]] = {}
        self.everywhere: set[tuple[str, str, str, str]] = set()  # verbs, groups, plurals and subresources
        for rule in rules:
            self._places.setdefault((rule.group, rule.resource, rule.verb), set()).add(rule.namespace)
            if rule.namespace == _EVERYWHERE:
                resource, _, subresource = rule.resource.partition("/")
                self.everywhere.add((rule.verb, rule.group, resource, subresource))
        self._later: dict[tuple[str, str, str], set[str]] = {}
        for access, namespace in later:
            for verb in access.verbs:
                place = self._later.setdefault((str(access.resource), access.subresource, verb), set())
                place.add(access.namespace or namespace or _EVERYWHERE)

    def undeclared(
        self, verb: str, kind: ResourceType[Any], namespace: str | None, subresource: str
    ) -> NeededAccess | None:
        place = namespace or _EVERYWHERE
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        for asked in (verb, "*"):
            places = self._places.get((kind.group, resource, asked), ())
            if _EVERYWHERE in places or place in places or (places and not kind.namespaced):
                return None
            places = self._later.get((str(kind), subresource, asked), ()) if self._later else ()
            if _EVERYWHERE in places or place in places or (places and not kind.namespaced):
                return None
        if (kind.group, kind.plural) in _ANYBODY_MAY:
            return None
        return NeededAccess(verb, str(kind), subresource, place)
