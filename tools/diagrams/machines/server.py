"""The embedded server, case by case: which verb a request is, what a list reads, who owns a field, who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from tools.diagrams.model import Table

from deltaloop.api.status import ApiError
from deltaloop.apiserver.builtin_tables import built_in
from deltaloop.apiserver.core.apply.field_set import paths, shown
from deltaloop.apiserver.core.apply.ownership import (
    APPLY,
    UPDATE,
    ConflictsError,
    FieldManager,
    Owners,
    Target,
    apply_owners,
    update_owners,
)
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.listing import plan_list
from deltaloop.apiserver.core.wire.requests import ListQuery, parse_path
from deltaloop.apiserver.core.wire.routing import find_route
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.types import TypeNode

# -- verbs

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PATHS = (
    "/api/v1/namespaces/NS/pods",
    "/api/v1/pods",
    "/api/v1/namespaces/NS/pods/NAME",
    "/api/v1/namespaces/NS/pods/NAME/status",
    "/api/v1/namespaces/NS/pods/NAME/eviction",
    "/apis/apps/v1/namespaces/NS/deployments/NAME/scale",
    "/api/v1/namespaces/NAME/finalize",
    "/api/v1/nothing",
)


def _verb(registry: Registry, path: str, method: str) -> str:
    taken = parse_path(tuple(path.strip("/").split("/")))
    assert taken is not None
    try:
        route = find_route(registry, taken, method, watch=False)
    except ApiError as error:
        return str(error.code)
    return route.verb if route is not None else "404"


def verbs() -> Table:
    """Ask for the verb of each path and method."""
    registry = Registry(built_in())
    rows = [(f"`{path}`", *(_verb(registry, path, method) for method in METHODS)) for path in PATHS]
    return Table("verbs", "embedded-server", "apiserver/core/wire/routing.py", ("path", *METHODS), rows)


def lists() -> Table:
    """Plan each kind of list."""
    rows: list[tuple[str, ...]] = []
    for version in ("", "0", "N"):
        for match in ("", "NotOlderThan", "Exact") if version else ("",):
            for limit in (0, 500):
                if version == "0" and match == "Exact":
                    continue  # refused: 0 is no version that a list could be exactly at
                number = "7" if version == "N" else version
                plan = plan_list(ListQuery(resource_version=number, resource_version_match=match, limit=limit))
                read = "state at N" if plan.at is not None else "current state"
                if plan.at is None and plan.not_older_than:
                    read += " after it has reached N"
                rows.append(
                    (version or "none", match or "–", str(limit or "–"), read, "pages" if plan.limit else "all")
                )
    heads = ("`resourceVersion`", "`resourceVersionMatch`", "`limit`", "state that is read", "form")
    return Table("lists", "embedded-server", "apiserver/core/storage/listing.py", heads, rows)


# -- ownership of fields

API_VERSION = "example.com/v1"
SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "text": {"type": "string"}}}},
}
KIND = schema_from_json(msgspec.json.encode(SCHEMA)).tree


def _type_of(_: str) -> TypeNode:
    return KIND


TARGET = Target(API_VERSION, _type_of)


class _Object:
    """One object that several managers write."""

    def __init__(self) -> None:
        self.live: dict[str, Any] = {}
        self.owners: Owners = {}
        self.time = 0

    def apply(self, name: str, *, force: bool = False, **spec: object) -> str:
        applied = {"spec": spec}
        manager = FieldManager(name, APPLY)
        try:
            self.live, self.owners, _ = apply_owners(self.owners, self.live, applied, manager, TARGET, force=force)
        except ConflictsError as error:
            places = ", ".join(f"`{conflict.place}` with {conflict.manager.name}" for conflict in error.conflicts)
            return f"409, conflict of {places}"
        return "done"

    def update(self, name: str, **spec: object) -> str:
        self.time += 1
        new = {"spec": spec}
        writer = FieldManager(name, UPDATE, API_VERSION)
        self.owners = update_owners(self.owners, self.live, new, writer, TARGET, time=str(self.time))
        self.live = new
        return "done"

    def shown(self) -> str:
        return f"`{msgspec.json.encode(self.live.get('spec', {})).decode()}`"

    def owned(self) -> str:
        lines: list[str] = []
        for manager, owned in self.owners.items():
            fields = [shown(path) for path in paths(owned.fields) if path != ("f:spec",)]
            if fields:
                lines.append(f"{manager.name}: {', '.join(f'`{field}`' for field in sorted(fields))}")
        return "; ".join(sorted(lines)) or "nobody owns anything"


def ownership() -> Table:
    """Write one object again and again, and see who owns what."""
    obj = _Object()
    steps: list[tuple[str, Callable[[], str]]] = [
        ("`a` applies `size: 1, text: x`", lambda: obj.apply("a", size=1, text="x")),
        ("`b` applies `size: 2`", lambda: obj.apply("b", size=2)),
        ("`b` applies `size: 1`, the same value", lambda: obj.apply("b", size=1)),
        ("`b` applies `size: 2` with force", lambda: obj.apply("b", force=True, size=2)),
        ("`c` updates to `size: 3, text: x`", lambda: obj.update("c", size=3, text="x")),
        ("`a` applies an empty spec", lambda: obj.apply("a")),
    ]
    rows: list[tuple[str, ...]] = [(words, do(), obj.shown(), obj.owned()) for words, do in steps]
    heads = ("request", "response", "resulting spec", "resulting owners")
    return Table("ownership", "embedded-server", "apiserver/core/apply/ownership.py", heads, rows)


def tables() -> list[Table]:
    """Make them all."""
    return [verbs(), lists(), ownership()]
