"""Answers requests that write: create, update, patch, apply and delete.

The order of checks is the real server's: form of the answer, options, body, and what the body says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeVar, final

import msgspec
from aiohttp import web

from deltaloop.api.json_values import mapping
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, NotFoundError
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.body import REPEATED, decode_fields, read_body
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.answers.rendering import Rendering
from deltaloop.apiserver.core.apply.options import read_applied
from deltaloop.apiserver.core.kinds.scaling import scale_of
from deltaloop.apiserver.core.metadata.rules import owner_warnings
from deltaloop.apiserver.core.outside import Outside
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.draft import Ask, Commit
from deltaloop.apiserver.core.storage.encoding import list_metadata
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.wire import requests
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_options import DeleteOptions, check_dry_run, parse_delete_options
from deltaloop.apiserver.core.writes import write_requests as asked
from deltaloop.apiserver.core.writes.applying import apply_object
from deltaloop.apiserver.core.writes.field_validation import (
    FieldValidation,
    check_applied,
    check_object,
    check_patched,
)
from deltaloop.apiserver.core.writes.operations import DeleteResult, Operations
from deltaloop.apiserver.core.writes.patching import apply_patch
from deltaloop.apiserver.core.writes.query_options import WriteOptions
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import (
    ABOUT_OBJECT,
    WARNINGS,
    Notes,
    add_warnings,
    options_of,
    stamp_of,
)
from deltaloop.apiserver.large_writes import LARGE, LargeWrites, beside

T = TypeVar("T")

# Deletions of a collection between two turns of the loop.
_AT_ONCE: Final = 16


@final
class WriteHandlers:
    """The answers of one server to requests that change objects. Each write is one transaction (``large_writes``)."""

    def __init__(self, answering: Answering, writes: LargeWrites) -> None:
        """Write to a store.

        Args:
            answering: The store, and how answers are written.
            writes: Runs the writes.
        """
        self._answering = answering
        self._writes = writes

    async def _carry_out(
        self,
        request: web.BaseRequest,
        route: Route,
        options: WriteOptions | DeleteOptions,
        body: bytes,
        write: Callable[[Operations, Stamp], T],
    ) -> tuple[T, Commit]:
        """Carry out a write, a large one beside the loop; ``write`` may be called again, and begins from the body."""
        outside = Outside()
        manager = options.manager if isinstance(options, WriteOptions) else ""
        once = self._answering.stamp(manager=manager, options=options.as_object(), outside=outside)

        def run(operations: Operations, ask: Ask) -> T:
            return write(operations, stamp_of(request, once, ask))

        def refusal() -> ApiError:
            return failures.conflict(route.served.type, route.name)

        present = _present(route, self._answering.operations)
        size = len(body) + (len(present.raw) if present is not None else 0)
        if asked.may_swell(request.headers.get("Content-Type", ""), body):
            size += LARGE
        return await self._writes.run(run, size=size, refusal=refusal, outside=outside)

    async def create(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Store a new object and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        rendering = self._answering.rendering(request, route.served)
        options = options_of(request, "CreateOptions")
        dry_run, mode = options.dry_run, options.validation
        body = await read_body(request)

        def write(operations: Operations, stamp: Stamp) -> tuple[Resource, tuple[str, ...]]:
            fields = decode_fields(request, body, protobuf_kind=asked.protobuf_kind(route))
            warnings = self._checked(request, route, fields, body, mode, operations)
            try:
                created = operations.create(route.served, route.namespace, fields, stamp=stamp, dry_run=dry_run)
            except ApiError as error:
                if asked.is_looked_at_whole(error.status):
                    request[WARNINGS] = warnings
                raise
            return created, warnings

        (created, warnings), commit = await self._carry_out(request, route, options, body, write)
        return await self._written(rendering, route, created, commit, warnings, status=201)

    async def update(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Store an object anew, or for the first time where its kind allows that, and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        rendering = self._answering.rendering(request, route.served)
        options = options_of(request, "UpdateOptions")
        dry_run, mode = options.dry_run, options.validation
        body = await read_body(request)

        def write(operations: Operations, stamp: Stamp) -> tuple[Resource, tuple[str, ...], int]:
            fields = decode_fields(request, body, protobuf_kind=asked.protobuf_kind(route))
            scales = asked.writes_scale(route)
            warnings = () if scales else self._checked(request, route, fields, body, mode, operations)
            where = route.served, route.namespace
            if asked.may_create_by_update(route) and _present(route, operations) is None:
                created = operations.create(*where, fields, stamp=stamp, dry_run=dry_run, updated=route.name)
                return created, warnings, 201
            if scales:
                updated = operations.update_scale(*where, route.name, fields, stamp=stamp, dry_run=dry_run)
            else:
                part = route.subresource
                updated = operations.update(*where, route.name, fields, stamp=stamp, subresource=part, dry_run=dry_run)
            return updated, warnings, 200

        (updated, warnings, status), commit = await self._carry_out(request, route, options, body, write)
        return await self._written(rendering, route, updated, commit, warnings, status=status)

    def _checked(
        self,
        request: web.BaseRequest,
        route: Route,
        fields: dict[str, object],
        body: bytes,
        mode: FieldValidation,
        operations: Operations,
    ) -> tuple[str, ...]:
        """Return the warnings about an object as sent; a refusal that follows carries them, too."""
        route.served.codec.check_kind(fields)
        if not route.served.codec.is_read(fields):
            return ()  # it is refused, and its fields mean nothing here
        warnings = check_object(route.served, fields, body, mode, repeated=request.get(REPEATED))
        warnings += owner_warnings(mapping(fields.get("metadata")))
        request[WARNINGS] = warnings
        return warnings + asked.advice_on_finalizers(route, fields, _present(route, operations))

    async def patch(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Change an object, or apply one, and answer with it.

        Raises:
            ApiError: What the caller is to answer with instead; nothing has changed then.
        """
        served = route.served
        rendering = self._answering.rendering(request, served)
        content_type = request.headers.get("Content-Type", "")
        applies = asked.applies(content_type)
        options = options_of(request, "PatchOptions", applies=applies)
        dry_run, mode = options.dry_run, options.validation
        body = await read_body(request)

        def patch(operations: Operations, stamp: Stamp) -> tuple[Resource, tuple[str, ...], int]:
            warnings: list[str] = []

            def change(current: dict[str, object]) -> dict[str, object]:
                of_kind = not asked.writes_scale(route)
                shown = current if of_kind else scale_of(served, current, may_be_unset=True)
                result = apply_patch(content_type, shown, body, served, of_kind=of_kind)
                if of_kind:
                    warnings.extend(check_patched(served, result, body, mode))
                    request[WARNINGS] = tuple(warnings)
                    warnings.extend(asked.advice_on_finalizers(route, result, _present(route, operations)))
                return result

            where = served, route.namespace, route.name
            part = route.subresource
            patched = operations.patch(*where, change, stamp=stamp, subresource=part, dry_run=dry_run)
            return patched, tuple(warnings), 200

        def apply(operations: Operations, stamp: Stamp) -> tuple[Resource, tuple[str, ...], int]:
            applied, repeated = read_applied(body)
            advice = asked.advice_on_finalizers(route, applied, _present(route, operations))
            warnings = check_applied(repeated, mode) + advice
            done = apply_object(
                operations,
                served,
                route.namespace,
                route.name,
                applied,
                stamp=stamp,
                force=options.force,
                subresource=route.subresource,
                dry_run=dry_run,
            )
            return done.object, warnings, 201 if done.created else 200

        write = apply if applies else patch
        (changed, warnings, status), commit = await self._carry_out(request, route, options, body, write)
        return await self._written(rendering, route, changed, commit, warnings, status=status)

    async def _written(
        self, rendering: Rendering, route: Route, obj: Resource, commit: Commit, warnings: Iterable[str], *, status: int
    ) -> web.Response:
        """Return the answer to a write that was carried out."""
        if asked.writes_scale(route):
            body = await self._answering.written_scale(route.served, obj, commit=commit)
        else:
            body = await self._answering.written(rendering, obj, commit=commit)
        answer = json_answer(body, self._answering.headers, status=status)
        add_warnings(answer, warnings)
        return answer

    async def _delete_options(self, request: web.BaseRequest) -> DeleteOptions:
        body = await read_body(request)
        if body.strip():
            options = await beside(len(body), lambda: _sent_options(request, body))
        else:
            options = parse_delete_options(requests.delete_query(request.query))
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
        dry_run = check_dry_run(options.dry_run or ())

        def write(operations: Operations, stamp: Stamp) -> DeleteResult:
            where = route.served, route.namespace, route.name
            return operations.delete(*where, options, stamp=stamp, dry_run=dry_run)

        deleted, commit = await self._carry_out(request, route, options, b"", write)
        status = asked.deletion_answer(route.served, route.name, deleted.object.uid, removed=deleted.removed)
        if status is not None:
            return json_answer(status.to_json(), self._answering.headers)
        body = await self._answering.written(rendering, deleted.object, commit=commit)
        code = asked.deletion_code(options, removed=deleted.removed)
        return json_answer(body, self._answering.headers, status=code)

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
        dry_run = check_dry_run(options.dry_run or ())
        operations = self._answering.operations
        listed_at = operations.store.revision
        selection, prefix = self._answering.selection(query, served), served.prefix(route.namespace)
        found = await self._answering.conversions.read(
            operations.store,
            served,
            lambda store: store.list(served.storage, prefix=prefix, matches=selection.matches).items,
            scans=True,
        )
        notes = Notes()
        if not found and options.policy is None and served.strategy.delete_warning:
            request[ABOUT_OBJECT] = (served.strategy.delete_warning,)
        for number, item in enumerate(found):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            # As on the real server they go one by one, and one that has gone meanwhile is gone.
            where = served, item.namespace, item.name

            def write(operations: Operations, stamp: Stamp, where: tuple[ServedResource, str, str] = where) -> None:
                operations.delete(*where, options, stamp=stamp, dry_run=dry_run, one_of_many=True)

            with notes.kept(request), suppress(NotFoundError):
                await self._carry_out(request, route, options, b"", write)
        metadata = list_metadata(listed_at, always_continue=served.flags.self_described)
        return json_answer(
            await self._answering.written_list(rendering, Listed(found, metadata)), self._answering.headers
        )


def _sent_options(request: web.BaseRequest, body: bytes) -> DeleteOptions:
    fields = decode_fields(request, body, protobuf_kind=("v1", "DeleteOptions"))
    options = parse_delete_options(
        {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    )
    check_dry_run(options.dry_run or ())  # here, since the refusal names all values
    return options


def _present(route: Route, operations: Operations) -> Resource | None:
    return operations.find(route.served, route.namespace, route.name) if route.name else None
