"""Random sequences of requests, as data.

A step cannot hold a uid, a resource version or a token, because each server has its own. It holds a reference instead:
``$uid:0`` is the uid of the last object that was answered, ``$uid:1`` of the one before; ``$revision:N`` and
``$continue:N`` in the same way, and ``{"$object:N": changes}`` is a whole object as it was answered, with a merge patch
applied. What a reference resolves to is decided when a step is sent.

Every selector that is drawn chooses the sentinel (``replay.SENTINEL``), the object whose arrival ends the watches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from hypothesis import strategies as st

from lab.conformance.fuzz.resources import (
    FINALIZERS,
    METADATA,
    ODD_METADATA,
    RESOURCES,
    SMALL,
    UNCACHED,
    WORDS,
    Resource,
    some,
)

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Step:
    """One request; ``NAMESPACE`` in its path is the sequence's own namespace.

    A ``fresh`` one may be answered from a cache, which is brought up to date by a list before it: how far a cache lags
    behind is nothing to compare.
    """

    method: str
    path: str
    query: Query = ()
    body: Any = None
    content_type: str = "application/json"
    fresh: bool = False
    accept: str = ""

    @property
    def watches(self) -> bool:
        return dict(self.query).get("watch") == "1"

    def __str__(self) -> str:
        query = f"?{urlencode(self.query, safe='$:,/=!')}" if self.query else ""
        kind = "" if self.content_type == "application/json" else f" ({self.content_type.partition('/')[2]})"
        body = "" if self.body is None else f" {json.dumps(self.body)}"
        more = f"{' (fresh)' if self.fresh else ''}{' (table)' if self.accept else ''}"
        return f"{self.method} {self.path}{query}{kind}{body}{more}"

    def __repr__(self) -> str:
        return str(self)


# No request: the server is told to forget the past.
COMPACT: Final = Step("COMPACT", "")
NAMES: Final = st.sampled_from(["a", "a", "a", "b"])


def _queries(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[Query]:
    return some(**fields).map(lambda chosen: tuple(chosen.items()))


_SELECTORS: Final = {
    "labelSelector": st.sampled_from(["app=x", "tier", "tier in (1,2)", "app!=y", "!gone", "app=x,!gone"]),
    "fieldSelector": st.sampled_from(["metadata.name!=a", "metadata.namespace!=other"]),
}
_DRY: Final = st.just("All")
_VALIDATION: Final = st.sampled_from(["Strict", "Warn", "Ignore"])
_MANAGERS: Final = st.sampled_from(["m1", "m2", "m3"])
_WRITES: Final = st.one_of(
    st.just(()), st.just(()), _queries(dryRun=_DRY, fieldValidation=_VALIDATION, fieldManager=_MANAGERS)
)
_BACK: Final = st.integers(0, 3)
_FORMATS: Final = st.sampled_from(["application/json", "application/json", "application/yaml"])


@st.composite
def _bodies(draw: st.DrawFn, resource: Resource, name: str, *, wild: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **(draw(METADATA) if draw(st.booleans()) else {})}
    if wild and draw(st.integers(0, 9)) == 0:
        metadata |= draw(ODD_METADATA)
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata, **draw(resource.spec)}
    if wild and draw(st.integers(0, 29)) == 0:
        body |= draw(some(kind=st.sampled_from(["", "Other"]), apiVersion=st.sampled_from(["", "v2"])))
    return body


@st.composite
def _creates(draw: st.DrawFn, resource: Resource) -> Step:
    body = draw(_bodies(resource, draw(NAMES)))
    if draw(st.integers(0, 19)) == 0:
        body["metadata"] |= draw(
            some(resourceVersion=st.just("1"), uid=st.just("u"), namespace=st.sampled_from(["other", ""]))
        )
    return Step("POST", resource.path, draw(_WRITES), body, draw(_FORMATS))


@st.composite
def good_create(draw: st.DrawFn, resource: Resource, name: str, labels: dict[str, str] | None = None) -> Step:
    """A create that is done: with nothing but labels and what an object of the kind must have."""
    metadata: dict[str, Any] = {"name": name}
    given = labels if labels is not None else draw(some(app=st.sampled_from(["x", "y"]), tier=st.just("1")))
    if given:
        metadata["labels"] = given
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata, **resource.least}
    return Step("POST", resource.path, (), body)


@st.composite
def _labels(draw: st.DrawFn, resource: Resource) -> Step:
    """A change by which an object comes to be chosen by selectors, or is chosen no more."""
    label = st.sampled_from(["x", "y", None])
    labels = draw(some(app=label, tier=st.sampled_from(["1", "3", None]), gone=st.sampled_from(["yes", None])))
    return Step("PATCH", f"{resource.path}/{draw(NAMES)}", (), {"metadata": {"labels": labels}}, MERGE)


@st.composite
def _versions(draw: st.DrawFn) -> dict[str, str]:
    """Metadata by which an update says what it was made from."""
    return draw(
        some(
            resourceVersion=st.one_of(_BACK.map(lambda back: f"$revision:{back}"), st.sampled_from(["", "0", "1"])),
            uid=st.one_of(_BACK.map(lambda back: f"$uid:{back}"), st.just("other")),
        )
    )


@st.composite
def _updates(draw: st.DrawFn, resource: Resource) -> Step:
    name = draw(NAMES)
    part = draw(st.sampled_from(["", "/status"])) if resource.status else ""
    path = f"{resource.path}/{name}{part}"
    if draw(st.booleans()):
        changes = {"metadata": draw(METADATA), **draw(resource.changes)}
        return Step("PUT", path, draw(_WRITES), {f"$object:{draw(_BACK)}": changes})
    body = draw(_bodies(resource, name))
    body["metadata"] |= draw(_versions())
    return Step("PUT", path, draw(_WRITES), body, draw(_FORMATS))


_METADATA_POINTERS: Final = (
    "/metadata/labels",
    "/metadata/labels/app",
    "/metadata/finalizers",
    "/metadata/finalizers/-",
    "/metadata/finalizers/-1",
    "/metadata/finalizers/1",
)


@st.composite
def _operations(draw: st.DrawFn, resource: Resource) -> dict[str, Any]:
    paths = st.sampled_from([*resource.pointers, *_METADATA_POINTERS])
    done = draw(st.sampled_from(["add", "replace", "remove", "test", "copy", "move"]))
    operation: dict[str, Any] = {"op": done, "path": draw(paths)}
    if done in ("add", "replace", "test"):
        values = ["x", 1, 1.5, True, {}, [], [None], {"a": "b"}]
        if not operation["path"].startswith(resource.bytes or " "):
            # A null among bytes is stored by a real server, where nobody reads it; the next write is one then.
            values += [None, {"a": None}]
        operation["value"] = draw(st.sampled_from(values))
    elif done in ("copy", "move"):
        # Onto itself, too: that of what is not there is an odd case of its own.
        operation["from"] = draw(st.one_of(paths, paths, st.just(operation["path"])))
    if draw(st.integers(0, 19)) == 0:
        operation |= draw(
            some(op=st.sampled_from(["other", 1]), path=st.sampled_from(["", "data", 1]), more=st.just(1))
        )
    return operation


@st.composite
def _one_operation(draw: st.DrawFn, resource: Resource) -> Step:
    """A JSON patch of one operation, so that no other one spoils it."""
    return Step("PATCH", f"{resource.path}/{draw(NAMES)}", (), [draw(_operations(resource))], JSON_PATCH)


@st.composite
def _patches(draw: st.DrawFn, resource: Resource) -> Step:
    part = draw(st.sampled_from(["", "", "/status"])) if resource.status else ""
    path = f"{resource.path}/{draw(NAMES)}{part}"
    formats = [MERGE, JSON_PATCH] + ([] if resource.custom else [STRATEGIC])
    content_type = draw(st.sampled_from(formats))
    if content_type == JSON_PATCH:
        return Step("PATCH", path, draw(_WRITES), draw(st.lists(_operations(resource), max_size=3)), content_type)
    metadata = draw(
        some(
            labels=some(app=st.sampled_from(["x", "y", None])),
            annotations=st.one_of(st.none(), some(n=WORDS)),
            finalizers=st.one_of(st.none(), FINALIZERS),
        )
    )
    if draw(st.integers(0, 9)) == 0:
        metadata |= draw(_versions()) | draw(ODD_METADATA)
    body = {**({"metadata": metadata} if metadata else {}), **draw(resource.changes)}
    if draw(st.integers(0, 29)) == 0:
        body |= draw(some(kind=st.sampled_from(["", "Secret", "Other"]), apiVersion=st.sampled_from(["", None])))
    return Step("PATCH", path, draw(_WRITES), body, content_type)


@st.composite
def _applies(draw: st.DrawFn, resource: Resource) -> Step:
    name = draw(NAMES)
    part = draw(st.sampled_from(["", "", "/status"])) if resource.status else ""
    query = (("fieldManager", draw(_MANAGERS)), *draw(_queries(force=st.sampled_from(["true", "false"]), dryRun=_DRY)))
    body = draw(_bodies(resource, name, wild=False))
    if resource.custom:
        # A real server stores empty metadata of these as they are sent, where nobody reads them; the next write of the
        # same object is one then.
        body["metadata"] = {field: value for field, value in body["metadata"].items() if value}
    if draw(st.integers(0, 9)) == 0:
        body["metadata"] |= draw(_versions())
    return Step("PATCH", f"{resource.path}/{name}{part}", query, body, APPLY)


@st.composite
def _scales(draw: st.DrawFn, resource: Resource) -> Step:
    path = f"{resource.path}/{draw(NAMES)}/scale"
    match draw(st.sampled_from(["GET", "PATCH", "PUT"])):
        case "GET":
            return Step("GET", path)
        case "PATCH":
            return Step("PATCH", path, draw(_WRITES), {"spec": {"replicas": draw(SMALL)}}, MERGE)
        case _:
            metadata = {"name": path.split("/")[-2], "namespace": "NAMESPACE", **draw(_versions())}
            body = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata}
            return Step("PUT", path, draw(_WRITES), {**body, "spec": {"replicas": draw(SMALL)}})


@st.composite
def _reads(draw: st.DrawFn, resource: Resource) -> Step:
    if draw(st.booleans()):
        part = draw(st.sampled_from(["", "", "/status"])) if resource.status else ""
        return Step("GET", f"{resource.path}/{draw(NAMES)}{part}")
    query = draw(_queries(limit=st.sampled_from(["1", "2"]), **_SELECTORS))
    if draw(st.integers(0, 2)) == 0:
        query = (*query, ("continue", f"$continue:{draw(_BACK)}"))
    elif draw(st.booleans()):
        revision = draw(st.one_of(_BACK.map(lambda back: f"$revision:{back}"), st.sampled_from(["0", "1", "x", ""])))
        if resource.kind == UNCACHED and revision == "0":
            query = tuple(part for part in query if part[0] != "limit")  # a list of a cache passes limits over
        match = draw(st.sampled_from([(), ("Exact",), ("Exact",), ("NotOlderThan",), ("Other",)]))
        if resource.kind != UNCACHED and revision == "1" and match == ("Exact",):
            revision = "$revision:0"  # how long a cache remembers what is compacted is its own affair
        query = (*query, ("resourceVersion", revision), *(("resourceVersionMatch", name) for name in match))
        return Step("GET", resource.path, query, fresh=True)
    return Step("GET", resource.path, query)


@st.composite
def _pages(draw: st.DrawFn, resource: Resource) -> Step:
    """A first page, or one that goes on from another."""
    query = (("limit", "1"), *draw(_queries(labelSelector=st.just("!gone"))))
    if draw(st.booleans()):
        query = (*query, ("continue", f"$continue:{draw(_BACK)}"))
    return Step("GET", resource.path, query)


@st.composite
def _old_lists(draw: st.DrawFn, resource: Resource) -> Step:
    """A list as it was at the version of some object."""
    query = (("resourceVersion", f"$revision:{draw(_BACK)}"), ("resourceVersionMatch", "Exact"))
    return Step("GET", resource.path, query, fresh=True)


@st.composite
def _evictions(draw: st.DrawFn, resource: Resource) -> Step:
    name = draw(NAMES)
    body: dict[str, Any] = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
    if draw(st.integers(0, 9)) == 0:
        body["metadata"] |= draw(some(name=st.sampled_from(["b", ""]), namespace=st.sampled_from(["NAMESPACE", "o"])))
    if draw(st.integers(0, 2)) == 0:
        body["deleteOptions"] = draw(
            some(
                gracePeriodSeconds=st.sampled_from([0, 5]),
                dryRun=st.just(["All"]),
                preconditions=_versions(),
                propagationPolicy=st.sampled_from(["Foreground", "Background"]),
            )
        )
    return Step("POST", f"{resource.path}/{name}/eviction", draw(_queries(dryRun=_DRY)), body)


@st.composite
def _watches(draw: st.DrawFn, resource: Resource) -> Step:
    query = (("watch", "1"), *draw(_queries(**_SELECTORS)))
    kind = draw(st.integers(0, 5))
    if kind < 3:
        query = (*query, ("resourceVersion", f"$revision:{draw(_BACK)}"))
    elif kind == 3:
        query = (*query, ("resourceVersion", draw(st.sampled_from(["", "0"]))))
    else:
        query = (*query, ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
        query = (*query, ("allowWatchBookmarks", "true"))
    return Step("GET", resource.path, query, fresh=True)


@st.composite
def _deletes(draw: st.DrawFn, resource: Resource) -> Step:
    options = draw(
        st.one_of(
            st.none(),
            some(
                propagationPolicy=st.sampled_from(["Foreground", "Background", "Orphan", "Other"]),
                gracePeriodSeconds=st.sampled_from([0, 5]),
                orphanDependents=st.booleans(),
                dryRun=st.just(["All"]),
                preconditions=_versions(),
            ),
        )
    )
    if draw(st.integers(0, 4)):
        return Step("DELETE", f"{resource.path}/{draw(NAMES)}", body=options)
    return Step("DELETE", resource.path, draw(_queries(**_SELECTORS)), options)


REQUESTS: Final[Mapping[str, Callable[[Resource], st.SearchStrategy[Step]]]] = {
    "create": _creates,
    "update": _updates,
    "patch": _patches,
    "apply": _applies,
    "read": _reads,
    "watch": _watches,
    "delete": _deletes,
    "scale": _scales,
    "label": _labels,
    "page": _pages,
    "old": _old_lists,
    "operation": _one_operation,
    "evict": _evictions,
}
_OFTEN: Final = ("create", "patch")


@st.composite
def one_step(
    draw: st.DrawFn, resources: Sequence[Resource] = RESOURCES, requests: Sequence[str] = tuple(REQUESTS)
) -> Step:
    """One request of these kinds for one of these resources."""
    resource = draw(st.sampled_from(resources))
    there = {"scale": resource.scale, "evict": resource.evicted}
    kinds = [name for name in (*requests, *_OFTEN) if name in requests and there.get(name, True)]
    return draw(REQUESTS[draw(st.sampled_from(kinds))](resource))
