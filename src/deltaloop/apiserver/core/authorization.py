"""What somebody wants to do, and whether they may: a question and its answer.

``core/access/rbac.py`` decides; what is asked comes from requests, and from expressions of admission.

Source: apiserver pkg/authorization/authorizer/interfaces.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaloop.apiserver.core.user import User


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
