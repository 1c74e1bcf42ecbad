"""Answers requests that write: create, update, patch, apply and delete. Core: ``core/operations.py``.

The order of checks is the real server's: form of the answer, options, body, and what the body says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final, final

import msgspec
from aiohttp import web

from deltaloop.api.status import ApiError, Status, StatusDetails
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.body import REPEATED, read_body, read_fields
from deltaloop.apiserver.core import requests
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
from deltaloop.apiserver.core.listing import Listed
from deltaloop.apiserver.core.metadata import finalizer_warnings, owner_warnings
from deltaloop.apiserver.core.objects import Stamp, check_kind, is_crd
from deltaloop.apiserver.core.patching import apply_patch
from deltaloop.apiserver.core.rendering import Rendering
from deltaloop.apiserver.core.routing import Route
from deltaloop.apiserver.core.scaling import scale_of
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import ABOUT_OBJECT, ADMIT, MAY_CREATE, WARNINGS, add_warnings

# Another object of the name, and a resource version: the real server looks at both last.
_REFUSED_BY_STORAGE: Final = (409, 500)
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
class WriteHandlers:
    """The answers of one server to requests that change objects. Each write runs without giving way."""

    def __init__(self, answering: Answering) -> None:
        """Write to a store.

        Args:
            answering: The store, and how answers are written.
        """
        self._answering = answering

    def _stamp_of(self, request: web.BaseRequest, kind: str) -> Stamp:
        given = request.query.get("fieldManager", "")
        manager = manager_name(kind, given, request.headers.get("User-Agent", ""))
        admit, may_create = request[ADMIT], request[MAY_CREATE]

        def warn(texts: Iterable[str]) -> None:
            request[ABOUT_OBJECT] = (*request.get(ABOUT_OBJECT, ()), *texts)

        stamp = self._answering.stamp()
        return dataclasses.replace(stamp, manager=manager, admit=admit, may_create=may_create, warn=warn)

    def _dry_run(self, request: web.BaseRequest, kind: str, options: tuple[str, ...] | None = None) -> bool:
        given = options if options is not None else tuple(request.query.getall("dryRun", []))
        return requests.check_dry_run(kind, given)

    async def create(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Store a new object and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        rendering = self._answering.rendering(request, route.served)
        dry_run = self._dry_run(request, "CreateOptions")
        mode = parse_field_validation("CreateOptions", request.query.get("fieldValidation", ""))
        stamp = self._stamp_of(request, "CreateOptions")
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        warnings = self._checked(request, route, fields, body, mode)
        if is_crd(route.served):
            warnings += crd_warnings(fields)
        create = self._answering.operations.create
        try:
            created = create(route.served, route.namespace, fields, stamp=stamp, dry_run=dry_run)
        except ApiError as error:
            if error.status.code in _REFUSED_BY_STORAGE:
                request[WARNINGS] = warnings  # it was looked at whole by then
            raise
        return _warned(json_answer(rendering.object(created), self._answering.headers, status=201), warnings)

    async def update(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Store an object anew, or for the first time where its kind allows that, and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        rendering = self._answering.rendering(request, route.served)
        dry_run = self._dry_run(request, "UpdateOptions")
        mode = parse_field_validation("UpdateOptions", request.query.get("fieldValidation", ""))
        stamp = self._stamp_of(request, "UpdateOptions")
        body = await read_body(request)
        fields = await read_fields(request, body=body, protobuf_kind=_protobuf_kind(route))
        # A Scale has a schema of its own, which is not the custom resource's.
        warnings = () if route.subresource == "scale" else self._checked(request, route, fields, body, mode)
        if self._creates(route):
            created = self._answering.operations.create(
                route.served, route.namespace, fields, stamp=stamp, dry_run=dry_run, updated=route.name
            )
            return _warned(json_answer(rendering.object(created), self._answering.headers, status=201), warnings)
        updated = self._answering.operations.update(
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
        if not route.served.custom or not sent.get("finalizers") or route.subresource == "status":
            return ()
        current = self._answering.operations.find(route.served, route.namespace, route.name) if route.name else None
        return finalizer_warnings(route.served, sent, current.finalizers if current is not None else ())

    def _creates(self, route: Route) -> bool:
        """Tell whether a PUT is of an object that is not there, and of a kind that it creates."""
        if not route.served.create_on_update or route.subresource:
            return False
        return self._answering.operations.find(route.served, route.namespace, route.name) is None

    async def patch(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Change an object, or apply one, and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
            PatchError: The same.
        """
        served = route.served
        rendering = self._answering.rendering(request, served)
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
            of_kind = route.subresource != "scale"
            shown = current if of_kind else scale_of(served, current, may_be_unset=True)
            result = apply_patch(content_type, shown, body, served, of_kind=of_kind)
            if of_kind:
                warnings.extend(check_patched(served, result, body, mode))
                request[WARNINGS] = tuple(warnings)
                warnings.extend(self._finalizer_warnings(route, result))
            return result

        patched = self._answering.operations.patch(
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
        applied = read_applied(body)
        warnings = check_applied(body, mode) + self._finalizer_warnings(route, applied)
        done = apply_object(
            self._answering.operations,
            route.served,
            route.namespace,
            route.name,
            applied,
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
            return json_answer(
                encode_json(scale_of(route.served, decode_object(route.served, obj))), self._answering.headers
            )
        return json_answer(rendering.object(obj), self._answering.headers)

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

    async def delete(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Remove an object or mark it, and answer with it or with a Status.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        rendering = self._answering.rendering(request, route.served)
        options = await self._delete_options(request)
        deleted = self._answering.operations.delete(
            route.served,
            route.namespace,
            route.name,
            options,
            now=self._answering.epoch(),
            dry_run=self._dry_run(request, "DeleteOptions", options.dry_run or ()),
        )
        kind = route.served.type
        if not deleted.removed or kind.group_resource in _RETURNED_WHEN_DELETED:
            return json_answer(rendering.object(deleted.object), self._answering.headers)
        details = StatusDetails(name=route.name, group=kind.group, kind=kind.plural, uid=deleted.object.uid)
        return json_answer(Status(status="Success", details=details).to_json(), self._answering.headers)

    async def delete_collection(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Remove all objects that are selected and answer with them as they were.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        served = route.served
        rendering = self._answering.rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        options = await self._delete_options(request)
        listed_at = self._answering.operations.store.revision
        deleted = self._answering.operations.delete_collection(
            served,
            route.namespace,
            options,
            now=self._answering.epoch(),
            selection=self._answering.selection(query, served),
            dry_run=self._dry_run(request, "DeleteOptions", options.dry_run or ()),
        )
        metadata = list_metadata(listed_at, always_continue=served.custom)
        return json_answer(rendering.list(Listed(deleted, metadata)), self._answering.headers)


def _protobuf_kind(route: Route) -> tuple[str, str] | None:
    """Return what a body in protobuf is; custom resources are not read from it."""
    if route.subresource == "scale":
        return "autoscaling/v1", "Scale"
    kind = route.served.type
    return None if route.served.custom else (kind.api_version, kind.kind)


def _warned(answer: web.Response, warnings: Iterable[str]) -> web.Response:
    add_warnings(answer, warnings)
    return answer
