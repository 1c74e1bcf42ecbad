"""Random sequences of requests, as data.

A step cannot hold a uid, a resource version or a token, because each server has its own. It holds a reference instead:
``$uid:0`` is the uid of the last object that was answered, ``$uid:1`` of the one before; ``$revision:N`` and
``$continue:N`` in the same way, and ``{"$object:N": changes}`` is a whole object as it was answered, with a merge patch
applied. What a reference resolves to is decided when a step is sent.

Every selector that is drawn chooses the sentinel (``replay.SENTINEL``), the object whose arrival ends the watches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from hypothesis import strategies as st

GROUP: Final = "fuzz.example.com"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
LONGEST: Final = 14

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Step:
    """One request; ``NAMESPACE`` in its path is the sequence's own namespace."""

    method: str
    path: str
    query: Query = ()
    body: Any = None
    content_type: str = "application/json"

    @property
    def watches(self) -> bool:
        return dict(self.query).get("watch") == "1"

    def __str__(self) -> str:
        query = f"?{urlencode(self.query, safe='$:,/=!')}" if self.query else ""
        kind = "" if self.content_type == "application/json" else f" ({self.content_type.partition('/')[2]})"
        body = "" if self.body is None else f" {json.dumps(self.body)}"
        return f"{self.method} {self.path}{query}{kind}{body}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Resource:
    """A resource that is fuzzed."""

    kind: str
    api_version: str
    plural: str
    spec: st.SearchStrategy[dict[str, Any]]
    changes: st.SearchStrategy[dict[str, Any]]
    pointers: tuple[str, ...]
    status: bool = False
    scale: bool = False
    custom: bool = False

    @property
    def path(self) -> str:
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        return f"{root}/namespaces/NAMESPACE/{self.plural}"


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


NAMES: Final = st.sampled_from(["a", "a", "b"])
_WORDS: Final = st.sampled_from(["", "1", "2"])
_DATA: Final = _some(k=_WORDS, l=_WORDS)
_LABELS: Final = _some(app=st.sampled_from(["x", "y"]), tier=st.sampled_from(["1", "3"]), gone=st.just("yes"))
_FINALIZERS: Final = st.lists(st.sampled_from(["example.com/f", "example.com/g"]), max_size=2)
_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"}
_METADATA: Final = _some(
    labels=_LABELS, annotations=_some(n=_WORDS), finalizers=_FINALIZERS, ownerReferences=st.just([_OWNER])
)
_ODD_METADATA: Final = _some(
    labels=st.sampled_from([{"a b": "c"}, {"a": "b c"}, None]),
    annotations=st.sampled_from([{"/": ""}, None]),
    finalizers=st.sampled_from([["nogroup"], None, []]),
    ownerReferences=st.sampled_from([[{}], [_OWNER, _OWNER], [{**_OWNER, "controller": True}]]),
    generation=st.sampled_from([5, -1]),
    creationTimestamp=st.just("2020-01-02T03:04:05Z"),
    deletionTimestamp=st.just("2020-01-02T03:04:05Z"),
    selfLink=st.just("/me"),
    managedFields=st.sampled_from([[], [{}], None]),
)
_SMALL: Final = st.integers(-1, 11)
_PART: Final = _some(name=st.sampled_from(["p", "q"]), v=_SMALL)
_WIDGET_SPEC: Final = _some(
    size=_SMALL,
    colour=st.sampled_from(["red", "green", "blue"]),
    word=st.sampled_from(["abc", "ABC", "abcdef"]),
    mode=st.sampled_from(["plain", "odd", None]),
    names=st.lists(st.sampled_from(["x", "y"]), max_size=2),
    parts=st.lists(_PART, max_size=2),
    port=st.sampled_from([80, "http", True]),
    free=_some(deep=_some(a=_SMALL)),
    maybe=st.sampled_from(["", None]),
    table=_some(a=_SMALL, b=_WORDS),
    unknown=_SMALL,
)
_WIDGET_STATUS: Final = _some(size=_SMALL, ready=st.booleans(), selector=st.just("app=x"), unknown=_SMALL)
_LEASE_SPEC: Final = _some(
    holderIdentity=_WORDS,
    leaseDurationSeconds=st.sampled_from([15, 0, -1]),
    renewTime=st.sampled_from(["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05Z"]),
    leaseTransitions=_SMALL,
)
_CONFIG: Final = _some(
    data=_DATA, binaryData=st.sampled_from([{"b": "YQ=="}, {"b": "YQ=="}, {"b": "?"}]), immutable=st.booleans()
)
_SECRET: Final = _some(
    data=_some(k=st.sampled_from(["YQ==", "Yg=="])), stringData=_DATA, type=st.sampled_from(["", "example.com/t"])
)

RESOURCES: Final = (
    Resource("ConfigMap", "v1", "configmaps", _CONFIG, _CONFIG, ("/data", "/data/k", "/immutable")),
    Resource("Secret", "v1", "secrets", _SECRET, _SECRET, ("/data", "/data/k", "/type")),
    Resource(
        "Lease", "coordination.k8s.io/v1", "leases", _some(spec=_LEASE_SPEC), _some(spec=_LEASE_SPEC),
        ("/spec", "/spec/holderIdentity"),
    ),
    Resource(
        "Widget", f"{GROUP}/v1", "widgets",
        _some(spec=_WIDGET_SPEC, status=_WIDGET_STATUS),
        _some(spec=_WIDGET_SPEC, status=_WIDGET_STATUS),
        ("/spec", "/spec/size", "/spec/names/0", "/spec/parts/-", "/status/size"),
        status=True, scale=True, custom=True,
    ),
    Resource(
        "Gadget", f"{GROUP}/v1", "gadgets",
        _some(spec=_some(a=_SMALL, b=_WORDS), status=_some(c=_WORDS), more=st.sampled_from([None, [], {}, [1]])),
        _some(spec=_some(a=_SMALL, b=st.none()), status=_some(c=_WORDS), more=st.sampled_from([None, [], [2]])),
        ("/spec", "/spec/a", "/more/0"), custom=True,
    ),
)  # fmt: skip


def _queries(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[Query]:
    return _some(**fields).map(lambda chosen: tuple(chosen.items()))


_SELECTORS: Final = {
    "labelSelector": st.sampled_from(["app=x", "tier", "tier in (1,2)", "app!=y", "!gone", "app=x,!gone"]),
    "fieldSelector": st.sampled_from(["metadata.name!=a", "metadata.namespace!=other"]),
}
_DRY: Final = st.just("All")
_VALIDATION: Final = st.sampled_from(["Strict", "Warn", "Ignore"])
_MANAGERS: Final = st.sampled_from(["m1", "m2"])
_WRITES: Final = st.one_of(
    st.just(()), st.just(()), _queries(dryRun=_DRY, fieldValidation=_VALIDATION, fieldManager=_MANAGERS)
)
_BACK: Final = st.integers(0, 3)


@st.composite
def _bodies(draw: st.DrawFn, resource: Resource, name: str, *, wild: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **(draw(_METADATA) if draw(st.booleans()) else {})}
    if wild and draw(st.integers(0, 9)) == 0:
        metadata |= draw(_ODD_METADATA)
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata, **draw(resource.spec)}
    if wild and draw(st.integers(0, 29)) == 0:
        body |= draw(_some(kind=st.sampled_from(["", "Other"]), apiVersion=st.sampled_from(["", "v2"])))
    return body


@st.composite
def _creates(draw: st.DrawFn, resource: Resource) -> Step:
    body = draw(_bodies(resource, draw(NAMES)))
    if draw(st.integers(0, 19)) == 0:
        body["metadata"] |= draw(
            _some(resourceVersion=st.just("1"), uid=st.just("u"), namespace=st.sampled_from(["other", ""]))
        )
    return Step("POST", resource.path, draw(_WRITES), body)


@st.composite
def _versions(draw: st.DrawFn) -> dict[str, str]:
    """Metadata by which an update says what it was made from."""
    return draw(
        _some(
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
        changes = {"metadata": draw(_METADATA), **draw(resource.changes)}
        return Step("PUT", path, draw(_WRITES), {f"$object:{draw(_BACK)}": changes})
    body = draw(_bodies(resource, name))
    body["metadata"] |= draw(_versions())
    return Step("PUT", path, draw(_WRITES), body)


@st.composite
def _operations(draw: st.DrawFn, resource: Resource) -> dict[str, Any]:
    paths = st.sampled_from([*resource.pointers, "/metadata/labels", "/metadata/labels/app", "/metadata/finalizers"])
    done = draw(st.sampled_from(["add", "replace", "remove", "test", "copy", "move"]))
    operation: dict[str, Any] = {"op": done, "path": draw(paths)}
    if done in ("add", "replace", "test"):
        operation["value"] = draw(st.sampled_from(["x", 1, None, {}, [], {"a": "b"}]))
    elif done in ("copy", "move"):
        operation["from"] = draw(paths)
    return operation


@st.composite
def _patches(draw: st.DrawFn, resource: Resource) -> Step:
    part = draw(st.sampled_from(["", "", "/status"])) if resource.status else ""
    path = f"{resource.path}/{draw(NAMES)}{part}"
    formats = [MERGE, JSON_PATCH] + ([] if resource.custom else [STRATEGIC])
    content_type = draw(st.sampled_from(formats))
    if content_type == JSON_PATCH:
        return Step("PATCH", path, draw(_WRITES), draw(st.lists(_operations(resource), max_size=3)), content_type)
    metadata = draw(
        _some(
            labels=_some(app=st.sampled_from(["x", "y", None])),
            annotations=st.one_of(st.none(), _some(n=_WORDS)),
            finalizers=st.one_of(st.none(), _FINALIZERS),
        )
    )
    if draw(st.integers(0, 9)) == 0:
        metadata |= draw(_versions()) | draw(_ODD_METADATA)
    body = {**({"metadata": metadata} if metadata else {}), **draw(resource.changes)}
    return Step("PATCH", path, draw(_WRITES), body, content_type)


@st.composite
def _applies(draw: st.DrawFn, resource: Resource) -> Step:
    name = draw(NAMES)
    part = draw(st.sampled_from(["", "", "/status"])) if resource.status else ""
    query = (("fieldManager", draw(_MANAGERS)), *draw(_queries(force=st.sampled_from(["true", "false"]), dryRun=_DRY)))
    body = draw(_bodies(resource, name, wild=False))
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
            return Step("PATCH", path, draw(_WRITES), {"spec": {"replicas": draw(_SMALL)}}, MERGE)
        case _:
            metadata = {"name": path.split("/")[-2], "namespace": "NAMESPACE", **draw(_versions())}
            body = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata}
            return Step("PUT", path, draw(_WRITES), {**body, "spec": {"replicas": draw(_SMALL)}})


@st.composite
def _reads(draw: st.DrawFn, resource: Resource) -> Step:
    if draw(st.booleans()):
        return Step("GET", f"{resource.path}/{draw(NAMES)}")
    query = draw(_queries(limit=st.sampled_from(["1", "2"]), **_SELECTORS))
    if draw(st.integers(0, 2)) == 0:
        query = (*query, ("continue", f"$continue:{draw(_BACK)}"))
    elif draw(st.integers(0, 2)) == 0:
        # Not NotOlderThan: a list that may be stale is, now and then, and both servers are right.
        query = (*query, ("resourceVersion", f"$revision:{draw(_BACK)}"), ("resourceVersionMatch", "Exact"))
    return Step("GET", resource.path, query)


@st.composite
def _watches(draw: st.DrawFn, resource: Resource) -> Step:
    query = (("watch", "1"), *draw(_queries(**_SELECTORS)))
    if draw(st.booleans()):
        query = (*query, ("resourceVersion", f"$revision:{draw(_BACK)}"))
    else:
        query = (*query, ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
        query = (*query, ("allowWatchBookmarks", "true"))
    return Step("GET", resource.path, query)


@st.composite
def _deletes(draw: st.DrawFn, resource: Resource) -> Step:
    options = draw(
        st.one_of(
            st.none(),
            _some(
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


@st.composite
def one_step(draw: st.DrawFn) -> Step:
    resource = draw(st.sampled_from(RESOURCES))
    kinds = [_creates, _creates, _updates, _patches, _patches, _applies, _reads, _watches, _deletes]
    if resource.scale:
        kinds.append(_scales)
    return draw(draw(st.sampled_from(kinds))(resource))


def sequences(longest: int = LONGEST) -> st.SearchStrategy[list[Step]]:
    return st.lists(one_step(), min_size=1, max_size=longest)
