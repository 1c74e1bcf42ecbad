"""Who a request comes from.

What somebody wants to do, and whether they may: a question and its answer.

``core/access/rbac.py`` decides; what is asked comes from requests, and from expressions of admission.

Source: apiserver pkg/authentication/user; apiserver pkg/authorization/authorizer/interfaces.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ANONYMOUS: Final = "system:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who a request comes from.

    Attributes:
        name: Such as ``bob`` or ``system:serviceaccount:default:builder``.
        uid: What tells two users of one name apart; may be empty.
        groups: Groups, ``system:authenticated`` or ``system:unauthenticated`` among them.
        extra: What the authenticator knows besides.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def anonymous(self) -> bool:
        """Whether nobody in particular asks."""
        return self.name == ANONYMOUS


def user_fields(user: User) -> dict[str, object]:
    """Return a user as a ``UserInfo``."""
    fields: dict[str, object] = {"username": user.name}
    if user.uid:
        fields["uid"] = user.uid
    if user.groups:
        fields["groups"] = list(user.groups)
    if user.extra:
        fields["extra"] = {name: list(values) for name, values in user.extra.items()}
    return fields


def account_name(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of a namespace's service accounts, but for that of those who have shown credentials."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What somebody wants to do; ``path`` only where it belongs to no resource.

    Attributes:
        user: The user whose request it is.
        verb: What the user wants to do, such as ``get``.
        group: API group.
        version: API version.
        resource: Plural name; empty for other paths.
        subresource: Such as ``status``.
        namespace: Where; empty at the cluster scope.
        name: Of the object; empty for all of them.
        path: A path such as ``/metrics``.
    """

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether somebody may do something, and why, in the real server's words; the reason may be empty."""

    allowed: bool
    reason: str = ""
