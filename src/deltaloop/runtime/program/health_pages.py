"""Pages of the health server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from deltaloop.api.keys import join_key
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.readiness import Check, answer
from deltaloop.runtime.program.pages import HttpPage, Route

EXPLAIN_PATH: Final = "/explain"
DOCTOR_PATH: Final = "/doctor"


def probe(checks: Callable[[], tuple[Check, ...]]) -> Route:
    """Make the route of a probe. A path suffix selects one check; the query can have ``?verbose`` and ``?exclude=``."""

    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        found = checks()
        if rest:
            found = tuple(check for check in found if check.name == rest)
            if not found:
                return HttpPage(b"no such check\n", status=404)
        ok, text = answer(found, verbose="verbose" in query, exclude=frozenset(query.get("exclude", ())))
        return HttpPage(text.encode(), status=200 if ok else 500)

    return route


def metrics_page(render: Callable[[], tuple[bytes, str]]) -> Route:
    """Make the route of ``/metrics``; ``render`` returns the body and its content type."""

    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        del query
        if rest:
            return HttpPage(b"not found\n", status=404)
        body, content_type = render()
        return HttpPage(body, content_type)

    return route


def explanation(
    history: History,
    *,
    clock: Callable[[], float],
    standby_of: Callable[[], str | None],
    shard_of: Callable[[str], Mapping[str, object] | None] = lambda _: None,
) -> Route:
    """Make the route of ``deltaloop why``, which returns the last reconciles of an object as JSON without object data.

    The query has ``name``, ``namespace`` and, optionally, ``kind``. ``standby_of`` returns the leader of a standby,
    and ``shard_of`` the owner of a key in a sharded program.
    """

    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        kind, namespace, name = (query.get(field, [""])[0] for field in ("kind", "namespace", "name"))
        if rest or not name:
            return HttpPage(b"bad request: name an object by ?name=, and by namespace= and kind=\n", status=400)
        keys = frozenset({join_key(namespace, name), name})
        found = history.about(kind, keys)
        body: dict[str, object] = {"reconciles": [run.to_dict(clock()) for run in found]}
        leader = standby_of()
        if leader is not None:
            body["standby"] = {"leader": leader}
        shard = shard_of(join_key(namespace, name))
        if shard is not None:
            body["shard"] = shard
        return HttpPage(json.dumps(body).encode(), "application/json", status=200 if found else 404)

    return route


def diagnosis_page(document: Callable[[], Awaitable[Mapping[str, Any]]]) -> Route:
    """Make the route of ``deltaloop doctor``, which returns the diagnoses and the state of the program as JSON.

    The document has no data of objects. Times are durations in seconds, and ``null`` if unknown::

        {"stuck": true,                                      whether a diagnosis needs a person
         "diagnoses": [{"kind", "stuck", "subject", "cause", "remedy", "seconds", "count", "where": [lines],
                        "controller", "keys": [at most 10]}],      the most urgent first
         "leadership": "leading" | "standby" | "no election",
         "leader", "seconds" since the start,
         "lease": null | {"name", "age", "renewDeadline"},
         "controllers": [{"name", "kind", "workers", "timeout", "pausedFor",
                          "queue": {"queued", "processing", "delayed", "failing", "parked", "adds", "done",
                                    "addedRate", "doneRate"},
                          "running": [{"key", "reconcile", "seconds", "where", "stopping", "triggers"}],
                          "failing": [{"key", "error", "attempts", "seconds", "nextIn", "where"}],
                          "parked": [{"key", "error", "attempts", "seconds", "where"}],
                          "hot": [{"key", "fight", "kind", "object", "other", "fields", "seconds", "interval"}]}],
         "caches": [{"name", "synced", "objects", "age", "confirmed", "silent", "failing", "error", "refused",
                     "bookmarks", "stalledBy"}],
         "blocked": null | {"task", "seconds", "where", "endedAgo"}, "ranges": [...], "webhooks": [...],
         "requests": {"throttled", "throttledAgo", "undiscovered"}, "maxStaleness",
         "actions": whether POST requests are accepted}

    Lists of keys have at most 100 entries; the counts in ``queue`` are complete.
    """

    async def route(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        del query
        if rest:
            return HttpPage(b"not found\n", status=404)
        return HttpPage(json.dumps(await document()).encode(), "application/json")

    return route
