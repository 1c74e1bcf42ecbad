"""Handlers of non-resource requests: discovery, OpenAPI, version and health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, final

import msgspec
from aiohttp import web

from deltaloop._internal.threads import beside_loop
from deltaloop.api.kubernetes_version import KUBERNETES, MINOR
from deltaloop.apiserver.builtin_tables import published_schemas
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.answers import discovery, openapi, openapi_v2
from deltaloop.apiserver.core.answers.openapi_v2 import to_protobuf
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.wire.media_types import YAML, AcceptClause, failure_in_yaml, parse_accept, wants_lines
from deltaloop.apiserver.core.wire.yaml_writer import json_to_yaml
from deltaloop.apiserver.large_writes import beside

VERSION: Final = {
    "major": MINOR.partition(".")[0],
    "minor": MINOR.partition(".")[2],
    "gitVersion": f"v{KUBERNETES}+deltaloop",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "any/any",
}
_FORMS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList", "APIGroupDiscoveryList"})


def json_answer(body: bytes, headers: Mapping[str, str], *, status: int = 200) -> web.Response:
    """Return a JSON response with a trailing newline, like a real server."""
    return _json(body + b"\n", headers, status)


def indented_answer(body: bytes, headers: Mapping[str, str], *, status: int = 200) -> web.Response:
    """Return an indented JSON response without a trailing newline, like a real server for some documents."""
    return _json(_indented(body), headers, status)


def _json(body: bytes, headers: Mapping[str, str], status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={**headers, "Content-Type": "application/json"})


async def in_yaml(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Convert a JSON response to YAML if requested, in a thread if it is large. Streams are not changed."""
    accept = ",".join(request.headers.getall("Accept", []))
    if YAML not in accept or not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return response
    content_type, separator, parameters = response.headers.get("Content-Type", "").partition(";")
    if content_type != "application/json":
        return response
    failed = response.status >= 400
    if failure_in_yaml(accept) if failed else request.path.startswith("/api") and _chosen_yaml(accept):
        response.body = await beside(len(response.body), partial(json_to_yaml, response.body))
        response.headers["Content-Type"] = f"{YAML}{separator}{parameters}"
    return response


async def in_lines(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Indent a JSON response if requested. Streams are not changed."""
    if not wants_lines(request.query.get("pretty", ""), request.headers.get("User-Agent", "")):
        return response
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes) or not response.body:
        return response
    written_so = response.headers.get("Content-Type", "").partition(";")[0] == "application/json"
    if written_so and not request.path.startswith("/openapi"):
        response.body = await beside(len(response.body), partial(_indented, response.body))
    return response


def _indented(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=2)


def _accepted(request: web.BaseRequest) -> tuple[AcceptClause, ...]:
    return parse_accept(",".join(request.headers.getall("Accept", [])))


def _chosen_yaml(accept: str) -> bool:
    for clause in parse_accept(accept):
        if clause.is_yaml or clause.accepts_json:
            wanted = clause.parameters.get("as")
            if wanted is None or wanted in _FORMS:
                return clause.is_yaml
    return False


def _old_document(served: tuple[ServedResource, ...], content_type: str) -> bytes:
    document = openapi_v2.document(served, published_schemas())
    return to_protobuf(document) if content_type == openapi_v2.PROTOBUF else encode_json(document)


def text_answer(status: int, text: str, headers: Mapping[str, str]) -> web.Response:
    return web.Response(
        body=text.encode(), status=status, headers={**headers, "Content-Type": "text/plain; charset=utf-8"}
    )


@final
class Documents:
    def __init__(self, registry: Registry, headers: Mapping[str, str], *, count: Callable[[str], int]) -> None:
        self._registry = registry
        self._count = count
        self._headers = headers
        # OpenAPI v2 documents by content type, and the resources that they describe.
        self._described: tuple[ServedResource, ...] = ()
        self._old: dict[str, asyncio.Task[bytes]] = {}

    async def answer(self, request: web.BaseRequest, segments: tuple[str, ...]) -> web.Response:
        """Handle a request; unknown paths return a plain text 404; raises ApiError 404, 405 or 406."""
        response = await self._find(request, segments)
        if response is None:
            if segments[:1] == ("api",) or (segments[:1] == ("apis",) and self._registry.has_built_in(segments[1])):
                raise status_errors.path_not_found()
            return text_answer(404, "404 page not found\n", self._headers)
        if request.method not in ("GET", "HEAD"):
            raise status_errors.method_not_allowed()
        return response

    async def _find(self, request: web.BaseRequest, segments: tuple[str, ...]) -> web.Response | None:
        match segments:
            case ("",):
                return indented_answer(encode_json(discovery.paths_document(self._registry)), self._headers)
            case ("metrics",):
                text = discovery.metrics_text(self._registry, self._count)
                return web.Response(body=text.encode(), headers={**self._headers, "Content-Type": discovery.METRICS})
            case ("version",):
                if not any(clause.accepts_json for clause in _accepted(request)):
                    raise status_errors.not_acceptable(("application/json",))
                return indented_answer(encode_json(VERSION), self._headers)
            case (("healthz" | "livez" | "readyz") as name, *rest) if rest in ([], ["ping"]):
                verbose = "verbose" in request.query
                return text_answer(200, f"[+]ping ok\n{name} check passed\n" if verbose else "ok", self._headers)
            case ("api",) | ("apis",):
                return self._groups(request, core=segments == ("api",))
            case ("apis", group):
                return self._document(request, discovery.group_document(self._registry, group))
            case ("apis", group, version):
                return self._document(request, discovery.resources_document(self._registry, group, version))
            case ("api", version):
                return self._document(request, discovery.resources_document(self._registry, "", version))
            case ("openapi", *rest):
                return await self._openapi(request, tuple(rest))
            case _:
                return None

    def _document(self, request: web.BaseRequest, document: dict[str, object] | None) -> web.Response | None:
        if document is None:
            return None
        if not any(clause.is_yaml or clause.accepts_json for clause in _accepted(request)):
            raise status_errors.not_acceptable(("application/json", YAML))
        return json_answer(encode_json(document), self._headers)

    def _groups(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        form = discovery.negotiate_discovery(",".join(request.headers.getall("Accept", [])))
        if form is None:
            raise status_errors.not_servable(("application/json", YAML))
        known = self._registry.aggregated
        body, tag = known.get((form.version, core), (b"", ""))
        if not body:
            if core:
                document = discovery.core_document(self._registry, form, address=request.host)
            else:
                document = discovery.groups_document(self._registry, form)
            body = encode_json(document) + b"\n"
            if form.aggregated:
                tag = discovery.etag(document)
                known[form.version, core] = body, tag
        headers = {**self._headers, "Vary": "Accept"}
        if tag:
            headers["ETag"] = tag
            if tag in request.headers.get("If-None-Match", ""):
                return web.Response(status=304, headers=headers)
        headers["Content-Type"] = form.content_type
        return web.Response(body=body, headers=headers)

    async def _openapi(self, request: web.BaseRequest, rest: tuple[str, ...]) -> web.Response | None:
        match rest:
            case ("v2",):
                return await self._old_openapi(request)
            case ("v3",):
                return _json(encode_json(openapi.index_document(self._registry, published_schemas())), self._headers)
            case ("v3", "api", version):
                return await self._schema(request, "", version)
            case ("v3", "apis", group, version):
                return await self._schema(request, group, version)
            case _:
                return None

    async def _old_openapi(self, request: web.BaseRequest) -> web.Response:
        headers = {**self._headers, "Vary": "Accept"}
        content_type = openapi_v2.content_type(_accepted(request))
        if content_type is None:
            return web.Response(status=406, headers=headers)
        headers["Content-Type"] = content_type
        served = self._registry.resources()
        if self._described is not served:
            self._described, self._old = served, {}
        task = self._old.get(content_type)
        if task is None:
            work = beside_loop(partial(_old_document, served, content_type))
            task = self._old[content_type] = asyncio.create_task(work, name="deltaloop-apiserver-openapi")
        return web.Response(body=await asyncio.shield(task), headers=headers)

    async def _schema(self, request: web.BaseRequest, group: str, version: str) -> web.Response | None:
        published = published_schemas()
        digest = openapi.document_hash(self._registry, group, version, published)
        if not digest:
            return None
        wanted = request.query.get("hash")
        if wanted and wanted != digest:
            headers = {**self._headers, "Location": f"{request.path}?hash={digest}"}
            return web.Response(status=301, headers=headers)
        headers = {**self._headers, "ETag": f'"{digest}"'}
        if wanted:
            headers["Cache-Control"] = "public, immutable"
        if digest in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        if not any(clause.accepts_json for clause in _accepted(request)):
            return web.Response(status=406, headers=self._headers)
        registry = self._registry.branch()

        def write() -> bytes:
            return encode_json(openapi.document(registry, group, version, published))

        # Schemas of custom resources and the built-in documents can be large.
        return _json(await beside_loop(write), headers)
