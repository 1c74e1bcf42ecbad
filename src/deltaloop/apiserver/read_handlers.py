"""Handlers of read requests: get, list and watch."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import final

from aiohttp import web

from deltaloop.api.kinds import NAMESPACE
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.conversions import MOST_SCANNED
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.answers.rendering import LineCache, WatchRendering
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.listing import Listed, ListPlan, lagging, plan_list, run_list
from deltaloop.apiserver.core.storage.watching import REVISION_WAIT, ChangeReader, Watcher, plan_watch, watch_seconds
from deltaloop.apiserver.core.wire import requests
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import Exchange
from deltaloop.apiserver.watch_stream import send_watch


@final
class ReadHandlers:
    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._store = answering.state.store
        # Shared by all watches.
        self._changes = ChangeReader(self._store)
        self._lines = LineCache()

    async def _reach(self, revision: int) -> None:
        """Wait for a revision of the store, or raise ServerTimeoutError after 3 seconds."""
        if revision <= self._store.revision:
            return
        try:
            with self._answering.signal.subscribe() as changed:
                async with asyncio.timeout(REVISION_WAIT):
                    while revision > self._store.revision and not self._answering.signal.closed:
                        changed.clear()
                        await changed.wait()
        except TimeoutError:
            raise status_errors.too_large_resource_version(revision, self._store.revision) from None

    async def get(self, request: web.BaseRequest, route: Route, *, stale_at: int | None = None) -> web.Response:
        """Return one object or its ``Scale``, currently or at a revision, or raise ApiError."""
        rendering = self._answering.rendering(request, route.served)
        await self._reach(requests.check_revision(request.query.get("resourceVersion", "")))
        reported = (obj for obj in route.served.strategy.reported if obj.name == route.name)
        found = next(reported, None) or self._answering.state.read(
            route.served, route.namespace, route.name, revision=stale_at
        )
        if request.query.get("resourceVersion"):
            found = await self._answering.conversions.one(route.served, found, anew=False)
        if route.subresource == "scale":
            body = await self._answering.written_scale(route.served, found)
            return json_answer(body, self._answering.headers)
        return json_answer(await self._answering.written(rendering, found), self._answering.headers)

    async def list(self, request: web.BaseRequest, route: Route, *, stale_at: int | None = None) -> web.Response:
        """Return a list or a page of it, or raise ApiError."""
        served = route.served
        rendering = self._answering.rendering(request, served, "list")
        query = requests.parse_list_query(request.query)
        requests.check_list_query(query)
        selection = self._answering.selection(query, served)
        plan = plan_list(query)
        if served.strategy.reported:
            shown = tuple(obj for obj in served.strategy.reported if selection.matches(obj))
            return json_answer(
                await self._answering.written_list(rendering, Listed(shown, {})), self._answering.headers
            )
        await self._reach(plan.not_older_than)
        plan = lagging(plan, stale_at)
        listed = await self._answering.conversions.read(
            self._store,
            served,
            lambda store: run_list(
                store,
                plan,
                resource=served.storage,
                prefix=served.prefix(route.namespace),
                selection=selection,
                self_described=served.flags.self_described,
            ),
            scans=not (selection.everything or (selection.only_namespaces and self._are_few(plan)))
            or (plan.at is not None and self._store.have_keys_changed(served.storage, after=plan.at)),
        )
        return json_answer(await self._answering.written_list(rendering, listed), self._answering.headers)

    def _are_few(self, plan: ListPlan) -> bool:
        """Return whether a page visits few namespaces."""
        return plan.limit > 0 and self._store.count(NAMESPACE.group_resource) <= MOST_SCANNED

    async def watch(self, exchange: Exchange, route: Route) -> web.StreamResponse:
        """Send a watch stream until its deadline or the end of the server. Raises ApiError only before it starts."""
        request = exchange.request
        served = route.served
        rendering = self._answering.rendering(request, served, "watch")
        query = requests.named_query(requests.parse_list_query(request.query), route.name)
        requests.check_watch_query(query)
        resource = served.storage
        plan = plan_watch(
            query,
            resource=resource,
            prefix=served.prefix(route.namespace),
            selection=self._answering.selection(query, served),
        )
        everything = plan.selection.everything
        shown = self._answering.conversions.shown(self._store, served, compares=not everything)
        watcher = Watcher(
            shown,
            dataclasses.replace(plan, stale_at=exchange.stale_at),
            now=asyncio.get_running_loop().time(),
            seconds=watch_seconds(query, random=self._answering.random()),
            bookmark_interval=self._answering.options.bookmark_interval,
            changes=self._changes if shown is self._store else None,
        )
        return await send_watch(
            exchange,
            self._answering,
            watcher=watcher,
            convert=partial(self._answering.conversions.settle, shown),
            rendering=WatchRendering(rendering, self._lines),
            resource=resource,
            still_served=lambda: self._is_served(served),
        )

    def _is_served(self, served: ServedResource) -> bool:
        found = self._answering.state.registry.resource(served.type)
        return found is not None and found.codec.webhook == served.codec.webhook
