"""Routing of paths and methods to verbs of resources.

An unknown path is a 404 with a Status in the server's built-in groups, and a plain text 404 elsewhere. A method that a
path does not support is a 405. HEAD works like GET for custom resources only.
"""

from __future__ import annotations

from typing import Final

import msgspec

from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.requests import ResourcePath

_CONNECT: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_OBJECT: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_COLLECTION: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class Route(msgspec.Struct, frozen=True):
    served: ServedResource
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_route(registry: Registry, path: ResourcePath, method: str, *, watch: bool) -> Route | None:
    """Find the route of a request, or return None for a plain text 404."""
    served = registry.find(path.group, path.version, path.plural)
    own = registry.has_built_in(path.group)
    if served is None:
        if own:
            raise status_errors.path_not_found()
        return None
    everywhere = served.type.namespaced and not path.namespace
    if (path.namespace and not served.type.namespaced) or (everywhere and path.name):
        if not own:
            return None
        raise status_errors.path_not_found()
    if path.subresource and not _has(served, path.subresource):
        if not own:
            raise status_errors.not_found(served.type, path.name)
        raise status_errors.path_not_found()
    extra = served.subresource(path.subresource)
    methods = _CONNECT if extra is not None else _OF_OBJECT if path.name else _OF_COLLECTION
    verb = methods.get("GET" if method == "HEAD" and not own else method)
    if verb is None or (everywhere and verb != "list"):
        raise status_errors.method_not_allowed()
    if (verb == "list" and watch) or (verb == "get" and path.watch):
        verb = "watch"
    if extra is not None:
        allowed: tuple[str, ...] = extra.verbs
    elif path.subresource:
        allowed = ("update",) if path.subresource == "finalize" else ("get", "update", "patch")
    else:
        allowed = served.verbs
    if verb not in allowed:
        raise status_errors.method_not_allowed()
    return Route(served, verb, path.namespace, path.name, path.subresource)


def _has(served: ServedResource, subresource: str) -> bool:
    match subresource:
        case "status":
            return served.status
        case "scale":
            return served.scale_paths is not None
        case "finalize":
            return served.finalize
        case _ if subresource in served.parts:
            return True
        case _:
            return served.subresource(subresource) is not None
