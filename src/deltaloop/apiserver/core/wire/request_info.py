"""Facts about a request for authorization, fault injection and the audit log.

    GET a collection   list, or watch          POST    create
    GET an object      get                     PUT     update          PATCH   patch
    DELETE an object   delete                  DELETE a collection     deletecollection
    any other path     the method in lower case

Source: apiserver pkg/endpoints/request/requestinfo.go; pkg/authentication/user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from deltaloop.apiserver.core.user import ANONYMOUS, Attributes, User
from deltaloop.apiserver.core.wire.requests import ResourcePath, parse_path
from deltaloop.apiserver.core.write_options import parse_boolean

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_NAME_SELECTOR: Final = re.compile(r"(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)")


NOBODY: Final = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))


def authenticated(name: str, *groups: str, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None) -> User:
    """Return an authenticated user; the group ``system:authenticated`` is added."""
    listed = (*groups, AUTHENTICATED) if AUTHENTICATED not in groups else groups
    return User(name=name, uid=uid, groups=tuple(dict.fromkeys(listed)), extra=extra or {})


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Parsed request; ``path`` is as sent, without the query, and ``resource`` is None for non-resource paths."""

    verb: str
    path: str
    resource: ResourcePath | None = None

    @property
    def group_resource(self) -> str:
        if self.resource is None:
            return ""
        return f"{self.resource.plural}.{self.resource.group}" if self.resource.group else self.resource.plural


def describe(method: str, path: str, segments: tuple[str, ...], query: Mapping[str, str]) -> RequestInfo:
    """Parse a request; ``segments`` are the decoded parts of the path."""
    found = parse_path(segments)
    if found is None or not found.plural:
        return RequestInfo(verb=method.lower(), path=path)
    if method in ("GET", "HEAD"):
        watch = found.watch or parse_boolean(query.get("watch")) or False
        verb = "get" if found.name and not found.watch else "watch" if watch else "list"
    elif method == "DELETE":
        verb = "delete" if found.name else "deletecollection"
    else:
        verb = _VERBS.get(method, method.lower())
    return RequestInfo(verb=verb, path=path, resource=found)


def selected_name(info: RequestInfo, query: Mapping[str, str]) -> str:
    """Return the single name of a request, from its path or ``fieldSelector=metadata.name=x``, or an empty string."""
    if info.resource is None or info.resource.name or info.verb not in ("list", "watch", "deletecollection"):
        return info.resource.name if info.resource is not None else ""
    match = _NAME_SELECTOR.search(query.get("fieldSelector", ""))
    return match[1] if match else ""


def wanted_by(user: User, info: RequestInfo, query: Mapping[str, str]) -> Attributes:
    path = info.resource
    if path is None:
        return Attributes(user=user, verb=info.verb, path=info.path)
    # A namespace counts as inside of itself, so permissions in a namespace apply to it.
    in_itself = (path.group, path.plural) == ("", "namespaces")
    return Attributes(
        user=user,
        verb=info.verb,
        group=path.group,
        version=path.version,
        resource=path.plural,
        subresource=path.subresource,
        namespace=path.name if in_itself else path.namespace,
        name=selected_name(info, query),
    )
