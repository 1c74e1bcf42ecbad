"""The sending of the shapes of built-in kinds, and of their mutations, to two servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deltaloop.api.json_values import mapping
from lab.conformance.fuzz.steps import APPLY, MERGE
from lab.corpus.builtin.mutating import builtin_mutations
from lab.corpus.builtin.types import kinds_of_shapes, read_shapes
from lab.corpus.counting import Bounds
from lab.corpus.mutating import REMOVED, Mutation, chosen
from lab.corpus.requests import Chain, Request, placed
from lab.corpus.schemas import Kind
from lab.corpus.sending import LiveServer, Sender

# The name of such an object follows from its fields.
_NAMED: Final = ("CustomResourceDefinition", "APIService", "IPAddress", "ClusterTrustBundle")
# Controllers of the real server write these as soon as they are there.
_WRITTEN: Final = ("CustomResourceDefinition", "APIService")
_NAMES: Final = ("A_b", "a.b", "1a", "-a", "a/b", "a:b", "", "a" * 53, "a" * 64, "a" * 254, "a" * 245)
_KEYS: Final = ({"a b": "c"}, {"a": "c d"}, {"a/b/c": ""}, {"A": "x"})
BOUNDS: Final = Bounds(writes=1.0, writes_of_each=1.0, mutations=0.995)
"""Which part has the same verdict."""


@dataclass(frozen=True)
class BuiltinPlan:
    """How much is sent.

    Attributes:
        mutations: At most so many of each shape are created; a third as many are updates.
        seed: Chooses them.
        only: Nothing but the chains whose name holds this.
        every: Of these one in so many.
    """

    mutations: int = 120
    seed: int = 1
    only: str = ""
    every: int = 1


@dataclass(frozen=True)
class _Base:
    kind: Kind
    object: dict[str, Any]
    number: int
    namespace: str

    @property
    def label(self) -> str:
        return f"{self.kind.plural}.{self.kind.group or 'core'}/{self.object['metadata']['name']}"

    @property
    def collection(self) -> str:
        return self.kind.collection(self.namespace)

    def named(self, name: str) -> dict[str, Any]:
        """Return the object under a name, or under its own where that follows from its fields."""
        return placed(self.object, self.kind, self.namespace, self.own or name)

    @property
    def own(self) -> str:
        return str(self.object["metadata"]["name"]) if self.kind.kind in _NAMED else ""


async def run_builtin(sender: Sender, lives: Sequence[LiveServer], plan: BuiltinPlan) -> None:
    """Send all of it, one kind after the other, because objects of one kind can change what becomes of others."""
    shapes = read_shapes()
    kinds = await kinds_of_shapes(lives[0], shapes)
    for (api_version, name), kind in kinds.items():
        namespace = f"builtin-{kind.plural}"
        found = [shape for shape in shapes if (shape["apiVersion"], shape["kind"]) == (api_version, name)]
        bases = [
            _Base(kind, json.loads(json.dumps(shape).replace("$NS", namespace)), number, namespace)
            for number, shape in enumerate(found)
        ]
        chains = [chain for base in bases for chain in _chains(base, plan) if plan.only in chain.name]
        chains = chains[:: plan.every]
        if chains and kind.namespaced:
            for live in lives:
                await live.caller.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await sender.send_all(kind.plural, chains, at_once=1 if kind.kind in _NAMED else 12)


def _chains(base: _Base, plan: BuiltinPlan) -> Iterator[Chain]:
    twice = base.number % 2 == 0
    found = list(builtin_mutations(base.kind.schema, base.object, twice=twice)) if plan.mutations else []
    # A rich object has more places.
    share = max(plan.mutations, plan.mutations * len(found) // 1500)
    label = base.label
    for number, mutation in enumerate(chosen(found, share, f"{plan.seed}/{label}"), 1):
        yield _creation(base, mutation, number)
    for number, mutation in enumerate(_of_metadata(base), 1):
        yield _creation(base, mutation, number, "metadata")
    if base.kind.kind != "CustomResourceDefinition":  # a deleted one stays a moment, and has a corpus of its own
        yield _lifetime(base)
    yield _updates(base, chosen(found, share // 3, f"{plan.seed}/{label}/updates"))


def _of_metadata(base: _Base) -> Iterator[Mutation]:
    def changed(name: str, value: Any, path: str) -> Mutation:
        return Mutation(name, ("metadata", path), value, frozenset(), f"metadata.{path}")

    if not base.number:
        yield from (changed("a name", name, "name") for name in _NAMES)
        yield from (changed("labels", keys, "labels") for keys in _KEYS)
        yield from (changed("annotations", keys, "annotations") for keys in _KEYS[:1])


def _creation(base: _Base, mutation: Mutation, number: int, group: str = "mutated") -> Chain:
    body = mutation.applied_to(base.named(f"{group}-{base.number}-{number}"))
    path = f"{base.collection}?dryRun=All&fieldManager=creator{'&fieldValidation=Strict' if number % 2 else ''}"
    requests = [Request("create", "POST", path, body, always=True)]
    if number % 8 == 0 and group == "mutated":
        path = f"{base.collection}/{body['metadata']['name']}?dryRun=All&fieldManager=other&force=true"
        requests.append(Request("apply", "PATCH", path, body, APPLY, always=True))
    return Chain(f"{base.label}/{group}-{number}", "", [_mutated(base, mutation, request) for request in requests])


def _lifetime(base: _Base) -> Chain:
    made = base.named(f"whole-{base.number}")
    where = f"{base.collection}/{made['metadata']['name']}"
    same = Request("update, the same", "PUT", f"{where}?fieldManager=creator", made, on_stored=True, keeps=True)
    requests = [
        Request("create", "POST", f"{base.collection}?fieldManager=creator&fieldValidation=Strict", made, keeps=True),
        Request("get", "GET", where),
        *(() if base.kind.kind in _WRITTEN else (same,)),
        Request("merge patch", "PATCH", where, {"metadata": {"labels": {"corpus": "a"}}}, MERGE, keeps=True),
        Request("apply", "PATCH", f"{where}?fieldManager=applier&force=true", made, APPLY, keeps=True),
        Request("delete", "DELETE", where),
    ]
    return Chain(f"{base.label}/whole", "", [replace(request, kind=base.kind) for request in requests])


def _updates(base: _Base, mutations: Sequence[Mutation]) -> Chain:
    made = base.named(f"updated-{base.number}")
    where = f"{base.collection}/{made['metadata']['name']}"
    requests = [Request("create for updates", "POST", f"{base.collection}?fieldManager=creator", made, keeps=True)]
    for number, mutation in enumerate(mutations):
        request = _update(base, where, mutation, mutation.applied_to(made), number)
        requests.append(_mutated(base, mutation, request))
    requests.append(Request("delete", "DELETE", where))
    return Chain(f"{base.label}/updated", "", [replace(request, kind=base.kind) for request in requests])


def _update(base: _Base, where: str, mutation: Mutation, body: Mapping[str, Any], number: int) -> Request:
    query = "?dryRun=All&fieldManager=creator"
    if mutation.at[0] == "status" and base.kind.status:
        return Request("update the status", "PUT", f"{where}/status{query}", body, on_stored=True)
    if number % 4 and base.kind.kind not in _WRITTEN:
        return Request("update", "PUT", where + query, body, on_stored=True)
    patch = {key: part for key, part in body.items() if key not in ("metadata", "apiVersion", "kind")}
    if mutation.value is REMOVED and isinstance(mutation.at[-1], str):
        _put_null(patch, mutation)
    return Request("merge patch", "PATCH", where + query, patch, MERGE)


def _put_null(patch: dict[str, Any], mutation: Mutation) -> None:
    part: Any = patch
    for step in mutation.at[:-1]:
        part = part[step]
    mapping(part)[str(mutation.at[-1])] = None


def _mutated(base: _Base, mutation: Mutation, request: Request) -> Request:
    return replace(request, kind=base.kind, mutation=mutation.name, where=mutation.where)
