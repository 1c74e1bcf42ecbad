"""Discovery documents: one per group version (legacy), or aggregated if the Accept header requests it.

Clients recognize the aggregated form by the content type, and then expect it for ``/api`` and ``/apis``.

Source: apimachinery pkg/apis/meta/v1 (``APIGroupList``, ``APIResourceList``), api/apidiscovery/v2; apiserver
pkg/endpoints/discovery; client-go discovery/discovery_client.go; apiserver pkg/server/routes/index.go;
pkg/storage/etcd3/metrics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import SUBRESOURCE_VERBS, ServedResource
from deltaloop.apiserver.core.wire.media_types import parse_accept

JSON: Final = "application/json"
_AGGREGATED_VERSIONS: Final = ("v2", "v2beta1")


@dataclass(frozen=True, slots=True)
class DiscoveryForm:
    """Response format of ``/api`` and ``/apis``; the version is empty for the legacy form."""

    version: str = ""

    @property
    def aggregated(self) -> bool:
        return bool(self.version)

    @property
    def content_type(self) -> str:
        """Content type of the response. Clients compare it literally."""
        if not self.version:
            return JSON
        return f"{JSON};g=apidiscovery.k8s.io;v={self.version};as=APIGroupDiscoveryList"


LEGACY: Final = DiscoveryForm()


def negotiate_discovery(accept: str) -> DiscoveryForm | None:
    """Choose the form from the Accept header, or return None for a 406 response."""
    for clause in parse_accept(accept):
        if not (clause.accepts_json or clause.is_yaml):
            continue
        if "as" not in clause.parameters:
            return LEGACY
        wanted = (clause.parameters.get("as"), clause.parameters.get("g"))
        version = clause.parameters.get("v", "")
        if wanted == ("APIGroupDiscoveryList", "apidiscovery.k8s.io") and version in _AGGREGATED_VERSIONS:
            return DiscoveryForm(version)
    return None


def core_document(registry: Registry, form: DiscoveryForm = LEGACY, *, address: str = "") -> dict[str, Any]:
    """Return the document for ``/api``; ``address`` is the server's ``host:port`` for the legacy form."""
    if form.aggregated:
        return _aggregated(registry, form, [group for group in registry.groups() if not group])
    return {
        "kind": "APIVersions",
        "versions": list(registry.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups_document(registry: Registry, form: DiscoveryForm = LEGACY) -> dict[str, Any]:
    named = [group for group in registry.groups() if group]
    if form.aggregated:
        return _aggregated(registry, form, named)
    groups = [_group(registry, group) for group in named]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_document(registry: Registry, group: str) -> dict[str, Any] | None:
    if not group or not registry.versions(group):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}


def resources_document(registry: Registry, group: str, version: str) -> dict[str, Any] | None:
    """Return the document for ``/apis/{group}/{version}`` or ``/api/{version}``, or None if it is not served."""
    served = registry.in_version(group, version)
    if not served:
        return None
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": served[0].type.api_version,
        "resources": [entry for resource in served for entry in _entries(resource)],
    }


def etag(document: dict[str, Any]) -> str:
    return f'"{hashlib.sha512(msgspec.json.encode(document)).hexdigest().upper()}"'


def _group(registry: Registry, group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in registry.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _entries(resource: ServedResource) -> Iterator[dict[str, Any]]:
    kind = resource.type
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": resource.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = _storage_hash(resource)
    yield entry
    for name, group, version, kind_name, verbs in _subresources(resource):
        below: dict[str, Any] = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
        if group:
            below |= {"group": group, "version": version}
        yield {**below, "kind": kind_name, "verbs": list(verbs)}


def _subresources(resource: ServedResource) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    """Return name, group, version, kind and verbs. Group and version are empty if they are the resource's own."""
    kind = resource.type.kind
    found: list[tuple[str, str, str, str, tuple[str, ...]]] = [
        (part, "", "", kind, SUBRESOURCE_VERBS) for part in resource.parts
    ]
    if resource.finalize:
        found += [("finalize", "", "", kind, ("update",))]
    if resource.status:
        found += [("status", "", "", kind, SUBRESOURCE_VERBS)]
    if resource.scale_paths is not None:
        found += [("scale", "autoscaling", "v1", "Scale", SUBRESOURCE_VERBS)]
    extras = resource.strategy.subresources
    found += [(extra.name, extra.group, extra.version, extra.kind, extra.verbs) for extra in extras]
    return found if resource.flags.self_described else sorted(found)


def _storage_hash(resource: ServedResource) -> str:
    """Return eight bytes that identify the storage version. Clients only compare them."""
    kind = resource.type
    digest = hashlib.sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()[:8]
    return msgspec.json.decode(msgspec.json.encode(digest), type=str)


def _aggregated(registry: Registry, form: DiscoveryForm, groups: list[str]) -> dict[str, Any]:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form.version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [_aggregated_version(registry, group, version) for version in registry.versions(group)],
            }
            for group in groups
        ],
    }


def _aggregated_version(registry: Registry, group: str, version: str) -> dict[str, Any]:
    served = registry.in_version(group, version)
    return {
        "version": version,
        "resources": [_aggregated_resource(resource) for resource in served],
        "freshness": "Current",
    }


def _aggregated_resource(resource: ServedResource) -> dict[str, Any]:
    kind = resource.type
    scope = "Namespaced" if kind.namespaced else "Cluster"
    # Like on the real server, built-in kinds omit the group version of the document.
    place = (kind.group, kind.version) if resource.flags.self_described else ("", "")
    own = {"group": place[0], "version": place[1], "kind": kind.kind}
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    below = [
        {
            "subresource": name,
            "responseKind": {"group": group, "version": version, "kind": kind_name} if group else own,
            "verbs": list(verbs),
        }
        for name, group, version, kind_name, verbs in _subresources(resource)
    ]
    if below:
        entry["subresources"] = below
    return entry


_PATHS = ("/api", "/apis", "/apis/", "/healthz", "/healthz/ping", "/livez", "/livez/ping", "/metrics", "/openapi/v2")
_MORE_PATHS = ("/openapi/v3", "/openapi/v3/", "/readyz", "/readyz/ping", "/version")
METRICS = "text/plain; version=0.0.4; charset=utf-8"


def paths_document(registry: Registry) -> dict[str, object]:
    paths = {*_PATHS, *_MORE_PATHS}
    for served in registry.resources():
        group, version = served.type.group, served.type.version
        paths |= {f"/apis/{group}", f"/apis/{group}/{version}"} if group else {f"/api/{version}"}
    return {"paths": sorted(paths)}


def metrics_text(registry: Registry, count: Callable[[str], int]) -> str:
    """Return the Prometheus metric with the number of objects per resource."""
    return "\n".join(_lines(registry, count)) + "\n"


def _lines(registry: Registry, count: Callable[[str], int]) -> Iterator[str]:
    yield "# HELP apiserver_resource_objects Number of stored objects by resource."
    yield "# TYPE apiserver_resource_objects gauge"
    kinds = {served.storage: served.type for served in reversed(registry.resources())}
    for group, plural, storage in sorted((kind.group, kind.plural, storage) for storage, kind in kinds.items()):
        yield f'apiserver_resource_objects{{group="{group}",resource="{plural}"}} {count(storage)}'
