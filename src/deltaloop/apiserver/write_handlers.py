"""Handlers of write requests, with the real server's order of checks: response form, options, body, content."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, final

import msgspec
from aiohttp import web

from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.body import read_body, sent_body
from deltaloop.apiserver.core.storage.encoding import list_metadata
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.wire import requests
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_context import Notes, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions, check_dry_run, delete_query, parse_delete_options
from deltaloop.apiserver.core.writes.apply import apply_sent
from deltaloop.apiserver.core.writes.create import create_sent
from deltaloop.apiserver.core.writes.delete import delete, deletion_answer, deletion_code
from deltaloop.apiserver.core.writes.patch import patch_sent
from deltaloop.apiserver.core.writes.patching import applies
from deltaloop.apiserver.core.writes.update import update_sent
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import Exchange
from deltaloop.apiserver.large_writes import beside
from deltaloop.apiserver.receiving import Received, context_of, receive

# Number of deletions of a collection between two iterations of the event loop.
_AT_ONCE: Final = 16


@final
class WriteHandlers:
    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    async def create(self, exchange: Exchange, route: Route) -> web.Response:
        received = await receive(self._answering, exchange, route, "CreateOptions")
        return await self._carry_out(create_sent, received)

    async def update(self, exchange: Exchange, route: Route) -> web.Response:
        """Update an object, or create it if its kind allows that, and return it."""
        received = await receive(self._answering, exchange, route, "UpdateOptions")
        return await self._carry_out(update_sent, received)

    async def patch(self, exchange: Exchange, route: Route) -> web.Response:
        is_apply = applies(exchange.request.headers.get("Content-Type", ""))
        received = await receive(self._answering, exchange, route, "PatchOptions", applies=is_apply)
        return await self._carry_out(apply_sent if is_apply else patch_sent, received)

    async def _carry_out(
        self, verb: Callable[[WriteContext], tuple[Resource, int]], received: Received
    ) -> web.Response:
        (obj, code), commit = await self._answering.writes.run(verb, received.context)
        return await self._answering.write_answer(received.context, received.rendering, obj, commit, code)

    async def _delete_options(self, request: web.BaseRequest) -> DeleteOptions:
        body = await read_body(request)
        if body.strip():
            options = await beside(len(body), partial(_sent_options, request, body))
        else:
            options = parse_delete_options(delete_query(request.query))
        if options.dry_run is None and "dryRun" in request.query:
            options = msgspec.structs.replace(options, dry_run=tuple(request.query.getall("dryRun")))
        check_dry_run(options.dry_run or ())
        return options

    async def delete(self, exchange: Exchange, route: Route) -> web.Response:
        """Remove an object or mark it for deletion, and return it or a Status."""
        answering = self._answering
        rendering = answering.rendering(exchange.request, route.served)
        options = await self._delete_options(exchange.request)
        context = context_of(answering, exchange, route, options=options)
        deleted, commit = await self._answering.writes.run(lambda context: delete(context, options), context)
        status = deletion_answer(route.served, route.name, deleted.object.uid, removed=deleted.removed)
        if status is not None:
            return json_answer(status.to_json(), answering.headers)
        body = await answering.written(rendering, deleted.object, commit=commit)
        return json_answer(body, answering.headers, status=deletion_code(options, removed=deleted.removed))

    async def delete_collection(self, exchange: Exchange, route: Route) -> web.Response:
        """Delete all selected objects, and return their previous state."""
        served, request, answering = route.served, exchange.request, self._answering
        rendering = answering.rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        options = await self._delete_options(request)
        store = answering.state.store
        listed_at = store.revision
        selection, prefix = answering.selection(query, served), served.prefix(route.namespace)
        found = await answering.conversions.read(
            store,
            served,
            lambda store: store.list(served.storage, prefix=prefix, matches=selection.matches).items,
            scans=True,
        )
        if not found and options.policy is None and served.strategy.delete_warning:
            exchange.notes.stored.append(served.strategy.delete_warning)
        for number, item in enumerate(found):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            # Like on the real server, objects are deleted individually, and objects that no longer exist are skipped.
            notes, where = Notes(), msgspec.structs.replace(route, namespace=item.namespace, name=item.name)
            context = context_of(answering, exchange, where, options=options, notes=notes)
            try:
                with suppress(NotFoundError):
                    await self._answering.writes.run(
                        lambda context: delete(context, options, one_of_many=True), context
                    )
            finally:
                exchange.notes.add(notes)
        metadata = list_metadata(listed_at, shard=selection.shard, self_described=served.flags.self_described)
        return json_answer(await answering.written_list(rendering, Listed(found, metadata)), answering.headers)


def _sent_options(request: web.BaseRequest, body: bytes) -> DeleteOptions:
    fields = sent_body(request, body, protobuf_kind=("v1", "DeleteOptions")).decode()
    options = parse_delete_options(
        {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    )
    check_dry_run(options.dry_run or ())  # checked here because the error contains all values
    return options
