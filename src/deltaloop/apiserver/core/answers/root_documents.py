"""Documents for ``/`` and ``/metrics``.

Source: apiserver pkg/server/routes/index.go; pkg/storage/etcd3/metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deltaloop.apiserver.core.registry import Registry

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
