"""Users, permissions and authorization decisions.

Source: apiserver pkg/authentication/user; apiserver pkg/authorization/authorizer/interfaces.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

ANONYMOUS: Final = "system:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """User of a request; the groups include ``system:authenticated`` or ``system:unauthenticated``."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def anonymous(self) -> bool:
        return self.name == ANONYMOUS


def user_fields(user: User) -> dict[str, object]:
    fields: dict[str, object] = {"username": user.name}
    if user.uid:
        fields["uid"] = user.uid
    if user.groups:
        fields["groups"] = list(user.groups)
    if user.extra:
        fields["extra"] = {name: list(values) for name, values in user.extra.items()}
    return fields


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of a namespace's service accounts, without ``system:authenticated``."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """Permission that a request needs; ``path`` is set only for non-resource paths such as ``/metrics``."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(msgspec.Struct, frozen=True):
    """Authorization decision, with the real server's reason or an empty reason."""

    allowed: bool
    reason: str = ""
