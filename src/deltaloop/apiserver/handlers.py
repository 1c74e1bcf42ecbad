"""Answers requests: from path and method to the verb that is meant.

``filters`` has found out who asks and whether they may; here the path and the verb are looked at, then
``read_handlers`` or ``write_handlers`` look at options and body. Every failure becomes a Status in JSON, except for
paths that belong to nothing, which get a plain text 404.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import final

from aiohttp import web

from deltaloop.apiserver.access import AccessHandlers
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.conversions import Conversions
from deltaloop.apiserver.core.kinds.reviews import is_review
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.strategy import Subresource
from deltaloop.apiserver.core.wire.requests import ResourcePath
from deltaloop.apiserver.core.wire.routing import Route, find_route
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.documents import Documents, json_answer, text_answer
from deltaloop.apiserver.exchange import ADMIT, DECIDE, DEPRECATION, MAY_CREATE, USER, Exchange
from deltaloop.apiserver.large_writes import LargeWrites
from deltaloop.apiserver.read_handlers import ReadHandlers
from deltaloop.apiserver.write_handlers import WriteHandlers


@final
class Handlers:
    """One server's answers."""

    def __init__(
        self,
        operations: Operations,
        signal: ChangeSignal,
        writes: LargeWrites,
        conversions: Conversions,
        *,
        headers: Mapping[str, str],
        wall_clock: Callable[[], datetime],
        bookmark_interval: float,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Answer from this store and registry.

        Args:
            operations: Carries out verbs on the store: create, update, delete and the others.
            signal: Told of every write.
            writes: Runs the writes.
            conversions: Has objects converted to the version that is asked for.
            headers: Go with every answer.
            wall_clock: The time that objects get.
            bookmark_interval: Seconds between bookmarks of a watch.
            settle: Waits until the store's writes are durable; None if they are not kept.
        """
        answering = Answering(operations, conversions, headers=headers, wall_clock=wall_clock)
        self._reads = ReadHandlers(answering, signal, bookmark_interval=bookmark_interval, settle=settle)
        self._writes = WriteHandlers(answering, writes)
        self._registry = operations.registry
        self._headers = headers
        self._documents = Documents(operations.registry, headers, count=operations.store.count)

    async def answer(self, exchange: Exchange, access: AccessHandlers) -> web.StreamResponse:
        """Answer one request that is allowed.

        Cancellation (the client went away) cannot split a write: each is one transaction.

        Raises:
            ApiError: What the caller is to answer with instead.
        """
        request, path = exchange.request, exchange.info.resource
        if path is None:
            return await self._documents.answer(request, exchange.segments)
        self._warn(request, path)
        route = find_route(self._registry, path, request.method, watch=exchange.info.verb == "watch")
        if route is None:
            return text_answer(404, "404 page not found\n", self._headers)
        route, extra = self._extra(route)
        request[USER] = exchange.user
        request[DECIDE] = access.decide
        request[ADMIT] = access.admission(exchange.user)
        request[MAY_CREATE] = access.may_create(exchange)
        if is_review(route.served):
            code, fields = await access.review(exchange, route)
        elif extra is not None:
            code, fields = await access.subresource(exchange, route, extra)
        else:
            return await self._serve(exchange, route)
        if code == HTTPStatus.NO_CONTENT:
            return web.Response(status=code, headers=self._headers)
        return json_answer(encode_json(fields), self._headers, status=code)

    def _extra(self, route: Route) -> tuple[Route, Subresource | None]:
        """Return the subresource that a request is about, if it is more than a part of its object, and where it is."""
        goes_to = route.served.strategy.posts_to
        if goes_to is not None:
            kind, subresource = goes_to
            served = self._registry.resource(kind)
            assert served is not None
            route = replace(route, served=served, subresource=subresource)
        return route, route.served.subresource(route.subresource)

    def _warn(self, request: web.BaseRequest, path: ResourcePath) -> None:
        """Note that the version is deprecated, for every answer to this request, refusals included."""
        served = self._registry.find(path.group, path.version, path.plural)
        if served is not None and served.deprecation:
            request[DEPRECATION] = served.deprecation

    async def _serve(self, exchange: Exchange, route: Route) -> web.StreamResponse:
        request = exchange.request
        match route.verb:
            case "get":
                return await self._reads.get(request, route, stale_at=exchange.stale_at)
            case "list":
                return await self._reads.list(request, route, stale_at=exchange.stale_at)
            case "watch":
                return await self._reads.watch(exchange, route)
            case "create":
                return await self._writes.create(request, route)
            case "update":
                return await self._writes.update(request, route)
            case "patch":
                return await self._writes.patch(request, route)
            case "delete":
                return await self._writes.delete(request, route)
            case _:
                return await self._writes.delete_collection(request, route)
