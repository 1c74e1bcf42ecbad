"""What is sent for a CRD, a sample and a mutation: chains of requests, the same for each server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.conformance.target import CRDS

from deltaloop.api.json_values import at, copied, is_mapping, items, mapping, text
from lab.conformance.fuzz.steps import APPLY, JSON_PATCH, MERGE, STRATEGIC
from lab.corpus.making import smallest
from lab.corpus.mutating import Mutation
from lab.corpus.schemas import Kind, Schema

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
# What is the same for all kinds is Kubernetes' own, and its texts are not ours.
COMMON: Final = ("apiVersion", "kind", "metadata")
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CREATE: Final = "?fieldManager=creator&fieldValidation=Strict"


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        action: What is done, such as ``create``; the same word for all objects.
        on_stored: The body is sent with the resource version of the object as that server stored it last.
        keeps: What the answer shows is the object as it is stored.
        only_if_refused: Sent only if the object is not stored by now.
        always: Sent although the object is not stored.
        kind: The kind of the object, for the texts of its rules.
        mutation: What was made wrong before it was sent.
        features: What the schema of that place makes use of.
        where: That place.
    """

    action: str
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = ""
    on_stored: bool = False
    keeps: bool = False
    only_if_refused: bool = False
    always: bool = False
    kind: Kind | None = field(default=None, repr=False)
    mutation: str = ""
    features: frozenset[str] = frozenset()
    where: str = ""

    @property
    def writes(self) -> bool:
        return self.method in WRITES

    @property
    def changes(self) -> bool:
        """Whether it changes what is stored."""
        return self.writes and "dryRun=All" not in self.path

    def body_for(self, stored: Mapping[str, Any] | None) -> bytes:
        """Return the body as one server is sent it."""
        body = self.body
        if self.on_stored and stored is not None and is_mapping(body):
            version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            body = {**body, "metadata": {**mapping(body.get("metadata")), **version}}
        return b"" if body is None else json.dumps(body, separators=(",", ":")).encode()

    def __str__(self) -> str:
        kind = "" if self.content_type == "application/json" else f" ({self.content_type})"
        return f"{self.method} {self.path}{kind}"


@dataclass(frozen=True)
class Chain:
    """Requests that follow each other; it ends early where the servers no longer store the same.

    Chains with the same ``name`` are about the same object and are sent one after the other.
    """

    name: str
    origin: str
    requests: Sequence[Request]
    cleanup: Sequence[Request] = ()


def crd_chain(crd: Mapping[str, Any], origin: str) -> Chain:
    """Create a CRD."""
    name = text(at(crd, "metadata", "name"))
    strict = Request("create a CRD", "POST", CRDS + _CREATE, crd, keeps=True)
    warn = Request("create a CRD", "POST", CRDS + "?fieldManager=creator", crd, keeps=True, only_if_refused=True)
    return Chain(name, origin, (strict, warn), (Request("delete a CRD", "DELETE", f"{CRDS}/{name}"),))


def crd_reads(crd: Mapping[str, Any], kinds: Sequence[Kind], origin: str) -> Chain:
    """Look at an established CRD, and where it is published."""
    name = text(at(crd, "metadata", "name"))
    requests = [Request("read a CRD", "GET", f"{CRDS}/{name}")]
    requests.append(Request("table of a CRD", "GET", f"{CRDS}/{name}", accept=TABLE))
    for kind in kinds:
        requests.append(Request("discovery", "GET", f"/apis/{kind.api_version}", kind=kind, where=kind.plural))
        requests.append(Request("OpenAPI v3", "GET", f"/openapi/v3/apis/{kind.api_version}", kind=kind))
    return Chain(f"{name}/reads", origin, requests)


def sample_chain(kind: Kind, sample: Mapping[str, Any], namespace: str, origin: str, name: str) -> Chain:
    """Do with an object what is done with objects, from its creation to its end."""
    made = placed(sample, kind, namespace, name)
    where, collection = f"{kind.collection(namespace)}/{name}", kind.collection(namespace)
    bare = {key: part for key, part in made.items() if key != "status"}
    requests = [
        Request(
            "create under its own name, dry run",
            "POST",
            f"{collection}{_CREATE}&dryRun=All",
            _own(sample, kind, namespace),
            always=True,
        ),
        Request("create", "POST", collection + _CREATE, made, keeps=True),
        Request(
            "create, not strict", "POST", f"{collection}?fieldManager=creator", made, keeps=True, only_if_refused=True
        ),
        Request("get", "GET", where),
        Request("table", "GET", where, accept=TABLE),
        Request("list", "GET", f"{collection}?fieldSelector=metadata.name%3D{name}"),
        Request("table of a list", "GET", f"{collection}?fieldSelector=metadata.name%3D{name}", accept=TABLE),
        Request(
            "update, the same",
            "PUT",
            f"{where}?fieldManager=creator&fieldValidation=Strict",
            made,
            on_stored=True,
            keeps=True,
        ),
        *_patches(where, bare),
        *_applies(where, collection, bare),
        *_status(kind, where, made),
        *_scale(kind, where),
    ]
    end: list[Request] = []
    if made["metadata"].get("finalizers"):
        end.append(_patch("remove finalizers", where, {"metadata": {"finalizers": None}}, MERGE))
    end.append(Request("delete", "DELETE", where))
    requests += [*end, Request("get what is deleted", "GET", where)]
    requests = [_of(kind, request) for request in requests]
    return Chain(f"{kind}/{name}", origin, requests, end)


def placed(sample: Mapping[str, Any], kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    """Return an object as it is sent: in this namespace, under this name."""
    made: dict[str, Any] = copied(dict(sample))
    metadata = {key: value for key, value in mapping(made.get("metadata")).items() if key != "namespace"}
    made["metadata"] = {**metadata, "name": name, **({"namespace": namespace} if kind.namespaced else {})}
    return made


def _own(sample: Mapping[str, Any], kind: Kind, namespace: str) -> dict[str, Any]:
    if not kind.namespaced:
        return dict(sample)
    return {**sample, "metadata": {**mapping(sample.get("metadata")), "namespace": namespace}}


def mutation_chain(
    kind: Kind, whole: Mapping[str, Any], mutation: Mutation, namespace: str, origin: str, number: int
) -> Chain:
    """Create an object with something wrong in it, or try to."""
    name = f"mutated-{number}"
    body = placed(mutation.applied_to(whole), kind, namespace, name)
    collection = kind.collection(namespace)
    create = "?dryRun=All&fieldManager=creator"
    path = f"{collection}{create}{'&fieldValidation=Strict' if number % 2 else ''}"
    requests = [Request("create", "POST", path, body, always=True)]
    if number % 5 == 0:
        path = f"{collection}/{name}?dryRun=All&fieldManager=other&force=true"
        requests.append(Request("apply", "PATCH", path, body, APPLY, always=True))
    return Chain(f"{kind}/{name}", origin, [_mutated(kind, mutation, request) for request in requests])


def mutated_updates(
    kind: Kind, whole: Mapping[str, Any], mutations: Sequence[Mutation], namespace: str, origin: str, name: str
) -> Chain:
    """Store an object, then try to make something wrong of it, by updates and patches."""
    made = placed(whole, kind, namespace, name)
    where, collection = f"{kind.collection(namespace)}/{name}", kind.collection(namespace)
    requests = [Request("create for updates", "POST", collection + "?fieldManager=creator", made, keeps=True)]
    for number, mutation in enumerate(mutations):
        body = placed(mutation.applied_to(whole), kind, namespace, name)
        if mutation.at[:1] == ("status",) and kind.status:
            path = f"{where}/status?dryRun=All&fieldManager=status"
            request = Request("update the status", "PUT", path, body, on_stored=True)
        elif number % 2:
            path = f"{where}?dryRun=All&fieldManager=creator&fieldValidation=Strict"
            request = Request("update", "PUT", path, body, on_stored=True)
        else:
            patch = {key: part for key, part in body.items() if key not in ("metadata", "apiVersion", "kind")}
            path = f"{where}?dryRun=All&fieldManager=creator&fieldValidation=Strict"
            request = Request("merge patch", "PATCH", path, patch, MERGE)
        requests.append(_mutated(kind, mutation, request))
    requests.append(Request("delete", "DELETE", where))
    return Chain(
        f"{kind}/{name}", origin, [_of(kind, request) for request in requests], (Request("delete", "DELETE", where),)
    )


def _of(kind: Kind, request: Request) -> Request:
    return replace(request, kind=kind)


def _mutated(kind: Kind, mutation: Mutation, request: Request) -> Request:
    return replace(request, kind=kind, mutation=mutation.name, features=mutation.features, where=mutation.where)


def _patch(action: str, path: str, body: Any, content_type: str, **more: Any) -> Request:
    return Request(action, "PATCH", path, body, content_type, keeps=True, **more)


def _patches(where: str, made: Mapping[str, Any]) -> Iterator[Request]:
    by = "?fieldManager=patcher"
    yield _patch(
        "merge patch of metadata",
        where + by,
        {"metadata": {"labels": {"corpus": "a"}, "annotations": {"corpus": "b"}}},
        MERGE,
    )
    leaf = first_leaf(made)
    if leaf is not None:
        path, value = leaf
        yield _patch("merge patch, the same", where + by, _nested(path, value), MERGE)
        yield _patch("merge patch that removes", f"{where}{by}&dryRun=All", _nested(path, None), MERGE)
        pointer = "/" + "/".join(step.replace("~", "~0").replace("/", "~1") for step in path)
        test = {"op": "test", "path": pointer, "value": value}
        yield _patch("JSON patch", where + by, [test, {"op": "replace", "path": pointer, "value": value}], JSON_PATCH)
        yield _patch(
            "JSON patch that removes", f"{where}{by}&dryRun=All", [{"op": "remove", "path": pointer}], JSON_PATCH
        )
        wrong = [{"op": "test", "path": pointer, "value": "something else"}]
        yield _patch("JSON patch whose test fails", where + by, wrong, JSON_PATCH)
    unknown = {"spec": {"unknownField": 1}, "unknownField": 2}
    yield _patch("merge patch with unknown fields", f"{where}{by}&dryRun=All", unknown, MERGE)
    yield _patch(
        "merge patch with unknown fields, strict", f"{where}{by}&dryRun=All&fieldValidation=Strict", unknown, MERGE
    )
    yield _patch("strategic merge patch", where, {"metadata": {"labels": {"corpus": "c"}}}, STRATEGIC)


def _applies(where: str, collection: str, made: Mapping[str, Any]) -> Iterator[Request]:
    metadata = {key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]}
    head = {"apiVersion": made.get("apiVersion"), "kind": made.get("kind")}
    yield _patch("apply, the same", f"{where}?fieldManager=applier", _without_identity(made), APPLY)
    labelled = {**head, "metadata": {**metadata, "labels": {"corpus": "applied"}}}
    yield _patch("apply with a conflict", f"{where}?fieldManager=other", labelled, APPLY)
    yield _patch("apply with force", f"{where}?fieldManager=other&force=true", labelled, APPLY)
    yield _patch("apply without fields", f"{where}?fieldManager=applier", {**head, "metadata": metadata}, APPLY)
    new = f"{metadata['name']}-applied"
    other = {**_without_identity(made), "metadata": {**_without_identity(made)["metadata"], "name": new}}
    yield _patch("apply of a new object", f"{collection}/{new}?fieldManager=applier&dryRun=All", other, APPLY)


def _without_identity(made: Mapping[str, Any]) -> dict[str, Any]:
    own = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
    return {**made, "metadata": {key: value for key, value in made["metadata"].items() if key not in own}}


def _status(kind: Kind, where: str, made: Mapping[str, Any]) -> Iterator[Request]:
    yield Request("get the status", "GET", f"{where}/status")
    if not kind.status:
        return
    schema = mapping(at(kind.schema, "properties", "status"))
    status = made.get("status") or smallest(schema)
    by = "?fieldManager=status"
    yield Request(
        "update the status", "PUT", f"{where}/status{by}", {**made, "status": status}, on_stored=True, keeps=True
    )
    yield _patch("merge patch of the status", f"{where}/status{by}", {"status": status}, MERGE)
    yield _patch("status of another type", f"{where}/status{by}", {"status": "text"}, MERGE)
    head = {"apiVersion": made.get("apiVersion"), "kind": made.get("kind")}
    applied = {**head, "metadata": {"name": made["metadata"]["name"]}, "status": status}
    yield _patch("apply of the status", f"{where}/status?fieldManager=applier&force=true", applied, APPLY)
    yield Request(
        "update with another status", "PUT", f"{where}{by}", {**made, "status": {}}, on_stored=True, keeps=True
    )


def _scale(kind: Kind, where: str) -> Iterator[Request]:
    yield Request("get the scale", "GET", f"{where}/scale")
    if not kind.scale:
        return
    yield Request("patch the scale", "PATCH", f"{where}/scale", {"spec": {"replicas": 3}}, MERGE)
    yield Request("a negative scale", "PATCH", f"{where}/scale", {"spec": {"replicas": -1}}, MERGE)
    yield Request("a scale of another type", "PATCH", f"{where}/scale", {"spec": {"replicas": "x"}}, MERGE)
    yield Request("get what is scaled", "GET", where)


def first_leaf(made: Mapping[str, Any]) -> tuple[tuple[str, ...], Any] | None:
    """Return where the first value of an object's own is that is no object or list, by the order of names."""
    for name in sorted(made):
        if name in ("metadata", "apiVersion", "kind", "status"):
            continue
        found = _leaf(made[name], (name,))
        if found is not None:
            return found
    return None


def _leaf(value: Any, path: tuple[str, ...]) -> tuple[tuple[str, ...], Any] | None:
    if is_mapping(value):
        for name in sorted(value):
            found = _leaf(value[name], (*path, name))
            if found is not None:
                return found
        return None
    return None if isinstance(value, list) or value is None else (path, value)


def _nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {first: _nested(rest, value) if rest else value}


def of_kind(request: Request, body: Any) -> Any:
    """Return the part of a document that is about the request's kind."""
    if request.action == "create a CRD":
        # The real server establishes it a moment later; as it is then, it is read later.
        metadata = mapping(at(body, "metadata"))
        entries = [each for each in items(metadata.get("managedFields")) if at(each, "subresource") != "status"]
        return {**mapping(body), "metadata": {**metadata, "managedFields": entries}, "status": None}
    if request.kind is None:
        return body
    if request.action == "discovery":
        plural = request.kind.plural
        found = [each for each in items(at(body, "resources")) if text(at(each, "name")).partition("/")[0] == plural]
        return sorted(found, key=lambda each: str(at(each, "name")))
    if request.action == "OpenAPI v3":
        schemas = map(mapping, mapping(at(body, "components", "schemas")).values())
        return [_without_common(schema) for schema in schemas if request.kind.kind in _kinds(schema)]
    return body


def _kinds(schema: Schema) -> list[Any]:
    return [at(each, "kind") for each in items(schema.get("x-kubernetes-group-version-kind"))]


def _without_common(schema: Schema) -> dict[str, Any]:
    own = {name: part for name, part in mapping(schema.get("properties")).items() if name not in COMMON}
    return {**schema, "properties": own}


def explained_fields(text: str) -> list[str]:
    """Return what kubectl explains, without the fields of every kind."""
    lines: list[str] = []
    common = False
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            common = line.split()[0] in COMMON
        if not common:
            lines.append(line.rstrip())
    return lines
