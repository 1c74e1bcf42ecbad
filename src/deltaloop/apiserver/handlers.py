"""Answers requests: from path and method to the verb that is meant. Core: ``core/operations.py``.

The order of checks is the real server's: host, credentials, path, verb, options, body. Every failure becomes a
Status in JSON, except for paths that belong to nothing, which get a plain text 404.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, final
from urllib.parse import unquote

import msgspec
from aiohttp import web

from deltaloop.api.errors import InvalidSelectorError, MissingExtraError
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver import authentication
from deltaloop.apiserver.body import read_body, read_fields
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core import failures, requests
from deltaloop.apiserver.core.crd import crd_warnings
from deltaloop.apiserver.core.deletion import DeleteOptions, parse_delete_options
from deltaloop.apiserver.core.encoding import decode_object, encode_json, list_metadata
from deltaloop.apiserver.core.field_validation import (
    check_object,
    check_patched,
    parse_field_validation,
    warning_header,
)
from deltaloop.apiserver.core.listing import Listed, plan_list, run_list
from deltaloop.apiserver.core.objects import Stamp, is_crd
from deltaloop.apiserver.core.operations import Operations, prefix_of
from deltaloop.apiserver.core.patching import PatchError, apply_patch
from deltaloop.apiserver.core.rendering import Rendering, WatchRendering, choose_rendering
from deltaloop.apiserver.core.requests import ListQuery, ResourcePath
from deltaloop.apiserver.core.routing import Route, find_route
from deltaloop.apiserver.core.scaling import scale_of
from deltaloop.apiserver.core.selection import Selection
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.table import Shape
from deltaloop.apiserver.core.watching import REVISION_WAIT, Watcher, plan_watch, watch_seconds
from deltaloop.apiserver.documents import Documents, json_answer, text_answer
from deltaloop.apiserver.watch_stream import send_watch

_log: Final = logging.getLogger("deltaloop.apiserver")
_RETURNED_WHEN_DELETED: Final = frozenset(
    {
        "customresourcedefinitions.apiextensions.k8s.io",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    }
)


@final
class Handlers:
    """One server's answers."""

    def __init__(
        self,
        operations: Operations,
        signal: ChangeSignal,
        authenticator: authentication.Authenticator,
        *,
        host: str,
        wall_clock: Callable[[], datetime],
        bookmark_interval: float,
    ) -> None:
        """Answer from this store and registry.

        Args:
            operations: The verbs.
            signal: Told of every write.
            authenticator: Knows the token.
            host: Address that the server listens on.
            wall_clock: The time that objects get.
            bookmark_interval: Seconds between bookmarks of a watch.
        """
        self._operations = operations
        self._store = operations.store
        self._registry = operations.registry
        self._signal = signal
        self._authenticator = authenticator
        self._host = host
        self._wall_clock = wall_clock
        self._bookmark_interval = bookmark_interval
        self._random = random.SystemRandom()
        self._headers = {
            "Cache-Control": "no-cache, private",
            "X-Kubernetes-PF-FlowSchema-UID": str(uuid.uuid4()),
            "X-Kubernetes-PF-PriorityLevel-UID": str(uuid.uuid4()),
        }
        self._documents = Documents(operations.registry, self._headers)

    def stamp(self) -> Stamp:
        """Return the time, a new uid and a new chance."""
        return Stamp(now=self._epoch(), uid=str(uuid.uuid4()), chance=self._random.random())

    def _epoch(self) -> float:
        return self._wall_clock().timestamp()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; failures are answered, too.

        Cancellation (the client went away) cannot split a write: each runs without giving way.
        """
        try:
            return await self._answer(request)
        except ApiError as error:
            return self._refusal(error)
        except PatchError as error:
            status = Status(message=error.message, reason=error.reason, code=error.code, details=StatusDetails())
            return self._refusal(error_from_status(status))
        except MissingExtraError as error:
            return self._refusal(failures.internal(str(error)))
        except (ConnectionError, web.HTTPException):
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: answered with a 500 and logged
            _log.error(
                "a request failed inside the server",
                exc_info=error,
                extra={"method": request.method, "path": request.path},
            )
            return self._refusal(failures.internal(f"{type(error).__name__}; the server's log says more"))
        finally:
            self._signal.publish()

    def _refusal(self, error: ApiError) -> web.Response:
        headers = dict(self._headers)
        if error.status.details is not None and error.status.details.retry_after_seconds:
            headers["Retry-After"] = str(error.status.details.retry_after_seconds)
        return json_answer(error.status.to_json(), headers, status=error.status.code)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if not authentication.is_own_host(host, listening_on=self._host):
            raise failures.misdirected(host)
        segments = tuple(unquote(part) for part in request.raw_path.partition("?")[0].strip("/").split("/"))
        user = self._authenticator.user_of(request.headers.get("Authorization", ""))
        path = requests.parse_path(segments)
        if user != authentication.ADMIN and not authentication.is_public(segments):
            raise self._forbidden(request, path, user)
        if path is None or not path.plural:
            return self._documents.answer(request, segments)
        if (path.group, path.plural) == ("authorization.k8s.io", "selfsubjectaccessreviews"):
            return await self._review_access(request, path)
        route = find_route(self._registry, path, request.method, watch=path.watch or _wants_watch(request))
        if route is None:
            return text_answer(404, "404 page not found\n", self._headers)
        return await self._serve(request, route)

    def _forbidden(self, request: web.BaseRequest, path: ResourcePath | None, user: str) -> ApiError:
        served = self._registry.find(path.group, path.version, path.plural) if path is not None else None
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "get")
        if path is None or served is None:
            return failures.forbidden_path(request.path, user=user, verb=verb)
        if verb == "get" and not path.name:
            verb = "list"
        return failures.forbidden_resource(
            served.type,
            user=user,
            verb=verb,
            namespace=path.namespace,
            name="" if verb == "create" else path.name,
            subresource=path.subresource,
        )

    async def _serve(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        match route.verb:
            case "get":
                return await self._get(request, route)
            case "list":
                return await self._list(request, route)
            case "watch":
                return await self._watch(request, route)
            case "create":
                return await self._create(request, route)
            case "update":
                return await self._update(request, route)
            case "patch":
                return await self._patch(request, route)
            case "delete":
                return await self._delete(request, route)
            case _:
                return await self._delete_collection(request, route)

    def _rendering(self, request: web.BaseRequest, served: ServedResource, shape: Shape = "object") -> Rendering:
        return choose_rendering(
            served,
            accept=",".join(request.headers.getall("Accept", [])),
            include_object=request.query.get("includeObject", ""),
            shape=shape,
            now=self._epoch(),
        )

    def _selection(self, query: ListQuery, served: ServedResource) -> Selection:
        try:
            return Selection.parse(query.label_selector, query.field_selector, supported=served.field_labels)
        except InvalidSelectorError as error:
            raise failures.bad_request(str(error)) from None

    async def _reach(self, revision: int) -> None:
        """Wait until the store has come to a revision.

        Raises:
            ServerTimeoutError: If it has not after 3 seconds.
        """
        if revision <= self._store.revision:
            return
        try:
            with self._signal.subscribe() as changed:
                async with asyncio.timeout(REVISION_WAIT):
                    while revision > self._store.revision and not self._signal.closed:
                        changed.clear()
                        await changed.wait()
        except TimeoutError:
            raise failures.too_large_resource_version(revision, self._store.revision) from None

    async def _get(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        version = request.query.get("resourceVersion", "")
        revision = requests.parse_revision(version)
        if revision is None:
            raise failures.unexplained(f'strconv.ParseUint: parsing "{version[:64]}": invalid syntax')
        await self._reach(revision)
        found = self._operations.read(route.served, route.namespace, route.name)
        if route.subresource == "scale":
            body = encode_json(scale_of(route.served, decode_object(route.served, found)))
            return json_answer(body, self._headers)
        return json_answer(rendering.object(found), self._headers)

    async def _list(self, request: web.BaseRequest, route: Route) -> web.Response:
        served = route.served
        rendering = self._rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        selection = self._selection(query, served)
        plan = plan_list(query)
        await self._reach(plan.not_older_than)
        listed = run_list(
            self._store,
            plan,
            resource=served.type.group_resource,
            prefix=prefix_of(served, route.namespace),
            selection=selection,
            custom=served.custom,
        )
        return json_answer(rendering.list(listed), self._headers)

    async def _watch(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        served = route.served
        rendering = self._rendering(request, served, "watch")
        query = requests.parse_list_query(request.query)
        requests.check_watch_query(query)
        resource = served.type.group_resource
        plan = plan_watch(
            query,
            resource=resource,
            prefix=prefix_of(served, route.namespace),
            selection=self._selection(query, served),
        )
        watcher = Watcher(
            self._store,
            plan,
            now=asyncio.get_running_loop().time(),
            seconds=watch_seconds(query, chance=self._random.random()),
            bookmark_interval=self._bookmark_interval,
        )
        kind = served.type
        return await send_watch(
            request,
            watcher=watcher,
            rendering=WatchRendering(rendering),
            signal=self._signal,
            resource=resource,
            epoch=self._epoch,
            still_served=lambda: self._registry.find(kind.group, kind.version, kind.plural) is not None,
            headers=self._headers,
        )

    def _dry_run(self, request: web.BaseRequest, kind: str, options: tuple[str, ...] | None = None) -> bool:
        given = options if options is not None else tuple(request.query.getall("dryRun", []))
        return requests.check_dry_run(kind, given)

    async def _create(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        dry_run = self._dry_run(request, "CreateOptions")
        mode = parse_field_validation("CreateOptions", request.query.get("fieldValidation", ""))
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        warnings = check_object(route.served, fields, body, mode)
        if is_crd(route.served):
            warnings += crd_warnings(fields)
        created = self._operations.create(route.served, route.namespace, fields, stamp=self.stamp(), dry_run=dry_run)
        return _warned(json_answer(rendering.object(created), self._headers, status=201), warnings)

    async def _update(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        dry_run = self._dry_run(request, "UpdateOptions")
        mode = parse_field_validation("UpdateOptions", request.query.get("fieldValidation", ""))
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        # A Scale has a schema of its own, which is not the custom resource's.
        warnings = () if route.subresource == "scale" else check_object(route.served, fields, body, mode)
        updated = self._operations.update(
            route.served,
            route.namespace,
            route.name,
            fields,
            stamp=self.stamp(),
            subresource=route.subresource,
            dry_run=dry_run,
        )
        return _warned(self._changed(rendering, route, updated), warnings)

    async def _patch(self, request: web.BaseRequest, route: Route) -> web.Response:
        served = route.served
        rendering = self._rendering(request, served)
        dry_run = self._dry_run(request, "PatchOptions")
        content_type = request.headers.get("Content-Type", "")
        mode = parse_field_validation("PatchOptions", request.query.get("fieldValidation", ""))
        body = await read_body(request)
        warnings: list[str] = []

        def change(current: dict[str, Any]) -> dict[str, Any]:
            shown = scale_of(served, current) if route.subresource == "scale" else current
            result = apply_patch(content_type, shown, body, served)
            if route.subresource != "scale":
                warnings.extend(check_patched(served, result, body, mode))
            return result

        patched = self._operations.patch(
            served,
            route.namespace,
            route.name,
            change,
            stamp=self.stamp(),
            subresource=route.subresource,
            dry_run=dry_run,
        )
        return _warned(self._changed(rendering, route, patched), warnings)

    def _changed(self, rendering: Rendering, route: Route, obj: Any) -> web.Response:
        if route.subresource == "scale":
            return json_answer(encode_json(scale_of(route.served, decode_object(route.served, obj))), self._headers)
        return json_answer(rendering.object(obj), self._headers)

    async def _delete_options(self, request: web.BaseRequest) -> DeleteOptions:
        body = await read_body(request)
        if body.strip():
            fields = await read_fields(request, body=body, protobuf_kind=("v1", "DeleteOptions"))
            fields = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
        else:
            fields = requests.delete_query(request.query)
        options = parse_delete_options(fields)
        if options.dry_run is None and "dryRun" in request.query:
            return msgspec.structs.replace(options, dry_run=tuple(request.query.getall("dryRun")))
        return options

    async def _delete(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        options = await self._delete_options(request)
        deleted = self._operations.delete(
            route.served,
            route.namespace,
            route.name,
            options,
            now=self._epoch(),
            dry_run=self._dry_run(request, "DeleteOptions", options.dry_run or ()),
        )
        kind = route.served.type
        if not deleted.removed or kind.group_resource in _RETURNED_WHEN_DELETED:
            return json_answer(rendering.object(deleted.object), self._headers)
        details = StatusDetails(name=route.name, group=kind.group, kind=kind.plural, uid=deleted.object.uid)
        return json_answer(Status(status="Success", details=details).to_json(), self._headers)

    async def _delete_collection(self, request: web.BaseRequest, route: Route) -> web.Response:
        served = route.served
        rendering = self._rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        options = await self._delete_options(request)
        deleted = self._operations.delete_collection(
            served,
            route.namespace,
            options,
            now=self._epoch(),
            selection=self._selection(query, served),
            dry_run=self._dry_run(request, "DeleteOptions", options.dry_run or ()),
        )
        metadata = list_metadata(self._store.revision, always_continue=served.custom)
        return json_answer(rendering.list(Listed(deleted, metadata)), self._headers)

    async def _review_access(self, request: web.BaseRequest, path: ResourcePath) -> web.Response:
        if request.method != "POST" or path.version != "v1" or path.name:
            return text_answer(404, "404 page not found\n", self._headers)
        fields = await read_fields(request, protobuf_kind=("authorization.k8s.io/v1", "SelfSubjectAccessReview"))
        review = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": fields.get("spec") or {},
            "status": {"allowed": True, "reason": "this server allows its one user everything"},
        }
        return json_answer(encode_json(review), self._headers, status=201)


def _protobuf_kind(route: Route) -> tuple[str, str] | None:
    """Return what a body in protobuf is; custom resources are not read from it."""
    if route.subresource == "scale":
        return "autoscaling/v1", "Scale"
    kind = route.served.type
    return None if route.served.custom else (kind.api_version, kind.kind)


def _warned(answer: web.Response, warnings: Iterable[str]) -> web.Response:
    for text in warnings:
        answer.headers.add("Warning", warning_header(text))
    return answer


def _wants_watch(request: web.BaseRequest) -> bool:
    return requests.parse_boolean(request.query.get("watch")) or False
