"""Dispatch of authorized requests by path and method to the handler of their verb."""

from __future__ import annotations

from http import HTTPStatus
from typing import final

import msgspec
from aiohttp import web

from deltaloop.apiserver.access import AccessHandlers
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.core.kinds.resources import is_review
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.strategy import Subresource
from deltaloop.apiserver.core.wire.requests import ResourcePath
from deltaloop.apiserver.core.wire.routing import Route, find_route
from deltaloop.apiserver.documents import Documents, json_answer, text_answer
from deltaloop.apiserver.exchange import Exchange
from deltaloop.apiserver.read_handlers import ReadHandlers
from deltaloop.apiserver.write_handlers import WriteHandlers


@final
class Handlers:
    def __init__(self, answering: Answering, access: AccessHandlers) -> None:
        self._access = access
        self._reads = ReadHandlers(answering)
        self._writes = WriteHandlers(answering)
        self._registry = answering.state.registry
        self._headers = answering.headers
        self._documents = Documents(self._registry, self._headers, count=answering.state.store.count)

    async def answer(self, exchange: Exchange) -> web.StreamResponse:
        """Handle an authorized request, or raise ApiError. Cancellation cannot split a write."""
        request, path = exchange.request, exchange.info.resource
        if path is None:
            return await self._documents.answer(request, exchange.segments)
        self._warn(exchange, path)
        route = find_route(self._registry, path, request.method, watch=exchange.info.verb == "watch")
        if route is None:
            return text_answer(404, "404 page not found\n", self._headers)
        route, extra = self._extra(route)
        if is_review(route.served):
            code, fields = await self._access.review(exchange, route)
        elif extra is not None:
            code, fields = await self._access.subresource(exchange, route, extra)
        else:
            return await self._serve(exchange, route)
        if code == HTTPStatus.NO_CONTENT:
            return web.Response(status=code, headers=self._headers)
        return json_answer(encode_json(fields), self._headers, status=code)

    def _extra(self, route: Route) -> tuple[Route, Subresource | None]:
        goes_to = route.served.strategy.posts_to
        if goes_to is not None:
            kind, subresource = goes_to
            served = self._registry.resource(kind)
            assert served is not None
            route = msgspec.structs.replace(route, served=served, subresource=subresource)
        return route, route.served.subresource(route.subresource)

    def _warn(self, exchange: Exchange, path: ResourcePath) -> None:
        """Add the deprecation warning of a version to all responses, including errors."""
        served = self._registry.find(path.group, path.version, path.plural)
        if served is not None and served.deprecation:
            exchange.notes.deprecation = served.deprecation

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
                return await self._writes.create(exchange, route)
            case "update":
                return await self._writes.update(exchange, route)
            case "patch":
                return await self._writes.patch(exchange, route)
            case "delete":
                return await self._writes.delete(exchange, route)
            case _:
                return await self._writes.delete_collection(exchange, route)
