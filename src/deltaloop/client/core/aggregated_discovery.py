"""Decode aggregated discovery, which describes all resources of ``/api`` or ``/apis`` in one document.

A server without it returns the legacy form. Versions of unreachable aggregated API servers are ``Stale``.

Source: api/apidiscovery/v2/types.go; client-go discovery/aggregated_discovery.go, discovery_client.go
(``downloadAPIs``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.core.resource_index import DiscoveredResource

AGGREGATED_ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
_REMEMBERED: Final = 4  # /api and /apis of two servers


class _GroupVersionKind(msgspec.Struct, rename="camel"):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, rename="camel"):
    subresource: str = ""


class _Served(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _GroupVersionKind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct, rename="camel"):
    version: str
    resources: list[_Served] | None = None
    freshness: str = ""


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: list[_Version] | None = None


class _GroupList(msgspec.Struct):
    items: list[_Group] | None


class DiscoveredVersion(msgspec.Struct, frozen=True):
    """One version of an API group; ``stale`` means that the server could not reach its API server."""

    group_version: str
    resources: tuple[DiscoveredResource, ...]
    stale: bool = False


def is_aggregated(content_type: str) -> bool:
    kind, *parameters = (part.strip() for part in content_type.split(";"))
    return (
        kind.lower() == "application/json"
        and "g=apidiscovery.k8s.io" in parameters
        and ("v=v2" in parameters or "v=v2beta1" in parameters)
        and "as=APIGroupDiscoveryList" in parameters
    )


@lru_cache(maxsize=_REMEMBERED)
def decode_aggregated(path: str, body: bytes) -> tuple[DiscoveredVersion, ...]:
    """Decode and cache an aggregated document, with the preferred version of each group first."""
    try:
        groups = msgspec.json.decode(body, type=_GroupList).items or []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedObjectError(f"cannot read the aggregated discovery of {path}: {error}") from None
    found: list[DiscoveredVersion] = []
    for group in groups:
        name = group.metadata.name
        for version in group.versions or []:
            resources = [_resource(name, version.version, served) for served in version.resources or []]
            found.append(
                DiscoveredVersion(
                    f"{name}/{version.version}" if name else version.version,
                    tuple(resource for resource in resources if resource is not None),
                    version.freshness == "Stale",
                )
            )
    return tuple(found)


def _resource(group: str, version: str, served: _Served) -> DiscoveredResource | None:
    kind = served.response_kind
    if kind is None or not kind.kind:
        return None  # such entries only have subresources, for example the bindings of some servers
    try:
        known = ResourceType[Resource](group, version, kind.kind, served.resource, served.scope == "Namespaced")
    except InvalidArgumentError:
        return None
    return DiscoveredResource(
        known,
        served.singular_resource,
        tuple(served.short_names or ()),
        verbs=tuple(served.verbs or ()),
        categories=tuple(served.categories or ()),
        subresources=tuple(entry.subresource for entry in served.subresources or ()),
    )
