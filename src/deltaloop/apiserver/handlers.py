"""Answers requests: from path and method to the verb that is meant. Core: ``core/operations.py``.

``filters`` has found out who asks and whether they may; then the order of checks is the real server's: path, verb,
options, body. Every failure becomes a Status in JSON, except for paths that belong to nothing, which get a plain text
404.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, final

import msgspec
from aiohttp import web

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.status import Status, StatusDetails
from deltaloop.apiserver.access import Access
from deltaloop.apiserver.body import REPEATED, read_body, read_fields
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core import failures, requests
from deltaloop.apiserver.core.apply.options import APPLY_PATCH, check_patch_options, manager_name, read_applied
from deltaloop.apiserver.core.applying import apply_object
from deltaloop.apiserver.core.crd import crd_warnings
from deltaloop.apiserver.core.deletion import DeleteOptions, parse_delete_options
from deltaloop.apiserver.core.encoding import decode_object, encode_json, list_metadata
from deltaloop.apiserver.core.field_validation import (
    FieldValidation,
    check_applied,
    check_object,
    check_patched,
    parse_field_validation,
)
from deltaloop.apiserver.core.json_values import mapping
from deltaloop.apiserver.core.listing import Listed, lagging, plan_list, run_list
from deltaloop.apiserver.core.metadata import finalizer_warnings, owner_warnings
from deltaloop.apiserver.core.objects import Stamp, check_kind, is_crd
from deltaloop.apiserver.core.operations import Operations, prefix_of
from deltaloop.apiserver.core.patching import apply_patch
from deltaloop.apiserver.core.rendering import Rendering, WatchRendering, choose_rendering
from deltaloop.apiserver.core.requests import ListQuery
from deltaloop.apiserver.core.routing import Route, find_route
from deltaloop.apiserver.core.scaling import scale_of
from deltaloop.apiserver.core.selection import Selection
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.table import Shape
from deltaloop.apiserver.core.virtual_resources import extra_subresource, is_review
from deltaloop.apiserver.core.watching import REVISION_WAIT, Watcher, plan_watch, watch_seconds
from deltaloop.apiserver.documents import Documents, json_answer, text_answer
from deltaloop.apiserver.exchange import ADMIT, WARNINGS, Exchange, add_warnings
from deltaloop.apiserver.watch_stream import send_watch

_LABEL_REFUSAL: Final = "field label not supported: {}"
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
        *,
        headers: Mapping[str, str],
        wall_clock: Callable[[], datetime],
        bookmark_interval: float,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Answer from this store and registry.

        Args:
            operations: The verbs.
            signal: Told of every write.
            headers: Go with every answer.
            wall_clock: The time that objects get.
            bookmark_interval: Seconds between bookmarks of a watch.
            settle: Waits until the store's writes are durable; None if they are not kept.
        """
        self._operations = operations
        self._store = operations.store
        self._registry = operations.registry
        self._signal = signal
        self._settle = settle
        self._wall_clock = wall_clock
        self._bookmark_interval = bookmark_interval
        self._random = random.SystemRandom()
        self._headers = headers
        self._documents = Documents(operations.registry, self._headers)

    def stamp(self) -> Stamp:
        """Return the time, a new uid and a new chance."""
        return Stamp(now=self._epoch(), uid=str(uuid.uuid4()), chance=self._random.random())

    def _epoch(self) -> float:
        return self._wall_clock().timestamp()

    async def answer(self, exchange: Exchange, access: Access) -> web.StreamResponse:
        """Answer one request that is allowed.

        Cancellation (the client went away) cannot split a write: each runs without giving way.

        Raises:
            ApiError: What the caller is to answer with instead.
            PatchError: The same.
        """
        request, path = exchange.request, exchange.info.resource
        if path is None:
            return self._documents.answer(request, exchange.segments)
        route = find_route(self._registry, path, request.method, watch=exchange.info.verb == "watch")
        if route is None:
            return text_answer(404, "404 page not found\n", self._headers)
        extra = extra_subresource(route.served, route.subresource)
        if is_review(route.served):
            code, fields = await access.review(exchange, route)
        elif extra is not None:
            code, fields = await access.subresource(exchange, route, extra)
        else:
            request[ADMIT] = access.admission(exchange.user)
            return await self._serve(exchange, route)
        return json_answer(encode_json(fields), self._headers, status=code)

    async def _serve(self, exchange: Exchange, route: Route) -> web.StreamResponse:
        request = exchange.request
        match route.verb:
            case "get":
                return await self._get(request, route, stale_at=exchange.stale_at)
            case "list":
                return await self._list(request, route, stale_at=exchange.stale_at)
            case "watch":
                return await self._watch(exchange, route)
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
            return Selection.parse(
                query.label_selector,
                query.field_selector,
                supported=served.field_labels,
                refusal=served.label_refusal or (_LABEL_REFUSAL if served.custom else ""),
            )
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

    async def _get(self, request: web.BaseRequest, route: Route, *, stale_at: int | None = None) -> web.Response:
        rendering = self._rendering(request, route.served)
        await self._reach(requests.check_revision(request.query.get("resourceVersion", "")))
        found = self._operations.read(route.served, route.namespace, route.name, revision=stale_at)
        if route.subresource == "scale":
            body = encode_json(scale_of(route.served, decode_object(route.served, found)))
            return json_answer(body, self._headers)
        return json_answer(rendering.object(found), self._headers)

    async def _list(self, request: web.BaseRequest, route: Route, *, stale_at: int | None = None) -> web.Response:
        served = route.served
        rendering = self._rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        selection = self._selection(query, served)
        plan = plan_list(query)
        await self._reach(plan.not_older_than)
        plan = lagging(plan, stale_at)
        listed = run_list(
            self._store,
            plan,
            resource=served.storage,
            prefix=prefix_of(served, route.namespace),
            selection=selection,
            custom=served.custom,
        )
        return json_answer(rendering.list(listed), self._headers)

    async def _watch(self, exchange: Exchange, route: Route) -> web.StreamResponse:
        request = exchange.request
        served = route.served
        rendering = self._rendering(request, served, "watch")
        query = requests.named_query(requests.parse_list_query(request.query), route.name)
        requests.check_watch_query(query)
        resource = served.storage
        plan = plan_watch(
            query,
            resource=resource,
            prefix=prefix_of(served, route.namespace),
            selection=self._selection(query, served),
        )
        watcher = Watcher(
            self._store,
            dataclasses.replace(plan, stale_at=exchange.stale_at),
            now=asyncio.get_running_loop().time(),
            seconds=watch_seconds(query, chance=self._random.random()),
            bookmark_interval=self._bookmark_interval,
        )
        kind = served.type
        return await send_watch(
            exchange,
            watcher=watcher,
            rendering=WatchRendering(rendering),
            signal=self._signal,
            resource=resource,
            epoch=self._epoch,
            still_served=lambda: self._registry.find(kind.group, kind.version, kind.plural) is not None,
            headers=self._headers,
            settle=self._settle,
        )

    def _stamp_of(self, request: web.BaseRequest, kind: str) -> Stamp:
        given = request.query.get("fieldManager", "")
        manager = manager_name(kind, given, request.headers.get("User-Agent", ""))
        return dataclasses.replace(self.stamp(), manager=manager, admit=request[ADMIT])

    def _dry_run(self, request: web.BaseRequest, kind: str, options: tuple[str, ...] | None = None) -> bool:
        given = options if options is not None else tuple(request.query.getall("dryRun", []))
        return requests.check_dry_run(kind, given)

    async def _create(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        dry_run = self._dry_run(request, "CreateOptions")
        mode = parse_field_validation("CreateOptions", request.query.get("fieldValidation", ""))
        stamp = self._stamp_of(request, "CreateOptions")
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        warnings = self._checked(request, route, fields, body, mode)
        if is_crd(route.served):
            warnings += crd_warnings(fields)
        created = self._operations.create(route.served, route.namespace, fields, stamp=stamp, dry_run=dry_run)
        return _warned(json_answer(rendering.object(created), self._headers, status=201), warnings)

    async def _update(self, request: web.BaseRequest, route: Route) -> web.Response:
        rendering = self._rendering(request, route.served)
        dry_run = self._dry_run(request, "UpdateOptions")
        mode = parse_field_validation("UpdateOptions", request.query.get("fieldValidation", ""))
        stamp = self._stamp_of(request, "UpdateOptions")
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        # A Scale has a schema of its own, which is not the custom resource's.
        warnings = () if route.subresource == "scale" else self._checked(request, route, fields, body, mode)
        if self._creates(route):
            created = self._operations.create(
                route.served, route.namespace, fields, stamp=stamp, dry_run=dry_run, updated=route.name
            )
            return _warned(json_answer(rendering.object(created), self._headers, status=201), warnings)
        updated = self._operations.update(
            route.served,
            route.namespace,
            route.name,
            fields,
            stamp=stamp,
            subresource=route.subresource,
            dry_run=dry_run,
        )
        return _warned(self._changed(rendering, route, updated), warnings)

    def _checked(
        self, request: web.BaseRequest, route: Route, fields: dict[str, Any], body: bytes, mode: FieldValidation
    ) -> tuple[str, ...]:
        """Return the warnings about an object as sent; a refusal that follows carries them, too."""
        check_kind(route.served, fields)
        kind = route.served.type
        if route.served.custom and (fields.get("apiVersion"), fields.get("kind")) != (kind.api_version, kind.kind):
            return ()  # it is refused, and its fields mean nothing here
        warnings = check_object(route.served, fields, body, mode, repeated=request.get(REPEATED, ()))
        warnings += owner_warnings(mapping(fields.get("metadata")))
        request[WARNINGS] = warnings
        return warnings + self._finalizer_warnings(route, fields)

    def _finalizer_warnings(self, route: Route, fields: dict[str, Any]) -> tuple[str, ...]:
        sent = mapping(fields.get("metadata"))
        if not route.served.custom or not sent.get("finalizers"):
            return ()
        current = self._operations.find(route.served, route.namespace, route.name) if route.name else None
        return finalizer_warnings(route.served, sent, current.finalizers if current is not None else ())

    def _creates(self, route: Route) -> bool:
        """Tell whether a PUT is of an object that is not there, and of a kind that it creates."""
        if not route.served.create_on_update or route.subresource:
            return False
        return self._operations.find(route.served, route.namespace, route.name) is None

    async def _patch(self, request: web.BaseRequest, route: Route) -> web.Response:
        served = route.served
        rendering = self._rendering(request, served)
        dry_run = self._dry_run(request, "PatchOptions")
        content_type = request.headers.get("Content-Type", "")
        mode = parse_field_validation("PatchOptions", request.query.get("fieldValidation", ""))
        applies = content_type.partition(";")[0].strip().lower() == APPLY_PATCH
        force = requests.parse_boolean(request.query.get("force"))
        check_patch_options(applies=applies, manager=request.query.get("fieldManager", ""), force=force)
        stamp = self._stamp_of(request, "PatchOptions")
        body = await read_body(request)
        if applies:
            return self._apply(rendering, route, body, mode, stamp=stamp, force=force or False, dry_run=dry_run)
        warnings: list[str] = []

        def change(current: dict[str, Any]) -> dict[str, Any]:
            shown = scale_of(served, current, may_be_unset=True) if route.subresource == "scale" else current
            result = apply_patch(content_type, shown, body, served)
            if route.subresource != "scale":
                warnings.extend(check_patched(served, result, body, mode))
                warnings.extend(owner_warnings(mapping(result.get("metadata")), " after mutating admission happens"))
                request[WARNINGS] = tuple(warnings)
                warnings.extend(self._finalizer_warnings(route, result))
            return result

        patched = self._operations.patch(
            served,
            route.namespace,
            route.name,
            change,
            stamp=stamp,
            subresource=route.subresource,
            dry_run=dry_run,
        )
        return _warned(self._changed(rendering, route, patched), warnings)

    def _apply(
        self,
        rendering: Rendering,
        route: Route,
        body: bytes,
        mode: FieldValidation,
        *,
        stamp: Stamp,
        force: bool,
        dry_run: bool,
    ) -> web.Response:
        warnings = check_applied(body, mode)
        done = apply_object(
            self._operations,
            route.served,
            route.namespace,
            route.name,
            read_applied(body),
            stamp=stamp,
            force=force,
            subresource=route.subresource,
            dry_run=dry_run,
        )
        answer = self._changed(rendering, route, done.object)
        if done.created:
            answer.set_status(201)
        return _warned(answer, warnings)

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
        listed_at = self._store.revision
        deleted = self._operations.delete_collection(
            served,
            route.namespace,
            options,
            now=self._epoch(),
            selection=self._selection(query, served),
            dry_run=self._dry_run(request, "DeleteOptions", options.dry_run or ()),
        )
        metadata = list_metadata(listed_at, always_continue=served.custom)
        return json_answer(rendering.list(Listed(deleted, metadata)), self._headers)


def _protobuf_kind(route: Route) -> tuple[str, str] | None:
    """Return what a body in protobuf is; custom resources are not read from it."""
    if route.subresource == "scale":
        return "autoscaling/v1", "Scale"
    kind = route.served.type
    return None if route.served.custom else (kind.api_version, kind.kind)


def _warned(answer: web.Response, warnings: Iterable[str]) -> web.Response:
    add_warnings(answer, warnings)
    return answer
