"""One project after the other: its CRDs, what they publish, its samples, mutations of these, and all of it removed."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.target import CRDS

from deltaloop.api.json_values import at, text
from lab.corpus.making import fullest, object_of, smallest, with_part
from lab.corpus.mutating import Mutation, chosen, mutations_of
from lab.corpus.outcomes import Outcome
from lab.corpus.reading import Project, Sample
from lab.corpus.requests import (
    Chain,
    Request,
    crd_chain,
    crd_reads,
    explained_fields,
    mutated_updates,
    mutation_chain,
    sample_chain,
)
from lab.corpus.schemas import Kind, kind_served, kinds_of, paths_of, places_of
from lab.corpus.sending import LiveServer, Sender
from lab.corpus.servers import Running, kubectl

PATIENCE: Final = 60.0
_POLL: Final = 0.1
LONGEST_OBJECT: Final = 400_000


@dataclass(frozen=True)
class Plan:
    """How much is sent.

    Attributes:
        mutations: At most so many of each kind, of which a fifth are sent as updates too.
        seed: Chooses them.
        only: Nothing but the chains whose name holds this.
        every: Of these one in so many.
        explain: Whether kubectl is asked to explain.
    """

    mutations: int = 120
    seed: int = 1
    only: str = ""
    every: int = 1
    explain: bool = True


# Our own corpus, whose answers are recorded.
OWN_PLAN: Final = Plan(mutations=150, explain=False)


def object_chains(project: Project, kinds: Sequence[Kind], plan: Plan, namespace: str) -> Iterator[Chain]:
    """Yield what is sent for the samples of these kinds, and for objects made from their schemas."""
    by_name = {(kind.api_version, kind.kind): kind for kind in kinds}
    numbers: Counter[str] = Counter()
    samples: dict[str, list[Sample]] = {str(kind): [] for kind in kinds}
    for sample in project.samples:
        kind = by_name.get((sample.object.get("apiVersion", ""), sample.object.get("kind", "")))
        if kind is not None:
            samples[str(kind)].append(sample)
    for kind in kinds:
        values = [smallest(kind.schema), fullest(kind.schema)] if kind.schema else []
        made = [Sample("made from the schema", object_of(kind, "made", value)) for value in values]
        for sample in [*samples[str(kind)], *made]:
            numbers[str(kind)] += 1
            # Versions of a kind store the same objects: each version has names of its own.
            name = f"{kind.version}-sample-{numbers[str(kind)]}"
            yield sample_chain(kind, sample.object, namespace, sample.origin, name)
        yield from _mutated(kind, samples[str(kind)], plan, namespace)


def _mutated(kind: Kind, samples: Sequence[Sample], plan: Plan, namespace: str) -> Iterator[Chain]:
    seed = f"{plan.seed}/{kind}"
    whole = [(sample.origin, sample.object) for sample in samples]
    found: list[tuple[str, Any, Mutation]] = []
    for origin, base in whole:
        places = list(places_of(kind.schema, base))
        share = max(1, plan.mutations // 2 // len(whole))
        found += [(origin, base, each) for each in chosen(mutations_of(places, base), share, f"{seed}/{origin}")]
    found += [("made from the schema", *each) for each in _of_the_schema(kind, plan.mutations - len(found), seed)]
    by_base: dict[int, tuple[str, Any, list[Mutation]]] = {}
    for number, (origin, base, mutation) in enumerate(found, 1):
        yield mutation_chain(kind, base, mutation, namespace, origin, number)
        by_base.setdefault(id(base), (origin, base, []))[2].append(mutation)
    for turn, (origin, base, mutations) in enumerate(list(by_base.values())[:5], 1):
        yield mutated_updates(kind, base, mutations[:12], namespace, origin, f"{kind.version}-updated-{turn}")


def _of_the_schema(kind: Kind, number: int, seed: str) -> Iterator[tuple[Any, Mutation]]:
    """Yield mutations of objects that are made so that they have one node of the schema."""
    nodes = [
        place
        for place in paths_of(kind.schema)
        if place.path and place.path[0] not in ("metadata", "apiVersion", "kind")
    ]
    chance = random.Random(f"{seed}/schema")
    chance.shuffle(nodes)
    bases: dict[int, Any] = {}
    found: list[Mutation] = []
    for node in nodes[: max(200, number * 2)]:
        base = object_of(kind, "made", with_part(kind.schema, node.path))
        try:
            here = [place for place in places_of(kind.schema, base) if place.path == node.path]
            made = list(mutations_of(here, base))
        except (KeyError, IndexError, TypeError):
            continue
        for mutation in made:
            bases[id(mutation)] = base
        found += made
    for mutation in chosen(found, number, seed):
        yield bases[id(mutation)], mutation


class ProjectRun:
    """The sending of one project to two servers."""

    def __init__(
        self,
        sender: Sender,
        project: Project,
        plan: Plan,
        *,
        lives: Sequence[LiveServer] = (),
        running: Sequence[Running] = (),
    ) -> None:
        """Make one that has not begun.

        Args:
            sender: Both servers.
            project: What is sent.
            plan: How much of it.
            lives: Those of the servers that run: the others need no namespace, and nothing is removed from them.
            running: Both, if kubectl can be asked to explain.
        """
        self._sender = sender
        self._project = project
        self._plan = plan
        self._running = running
        self._servers = lives
        self.namespace = f"corpus-{project.name}"

    async def run(self) -> None:
        """Do all of it; afterwards the servers have nothing of the project any more."""
        name = self._project.name
        made = await self._every("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        if any(status not in (201, 409) for status in made):
            raise RuntimeError(f"namespace {self.namespace} was answered with {made}")
        chains = [crd_chain(crd.object, crd.origin) for crd in self._project.crds]
        stored = await asyncio.gather(*(self._sender.send(name, chain) for chain in chains))
        crds = [crd for crd, there in zip(self._project.crds, stored, strict=True) if there]
        kinds = {
            chain.name: kinds_of(crd.object)
            for chain, crd in zip(chains, self._project.crds, strict=True)
            if crd in crds
        }
        every = [kind for some in kinds.values() for kind in some]
        await self._until_served(every)
        reads = [crd_reads(crd.object, kinds[crd.object["metadata"]["name"]], crd.origin) for crd in crds]
        await self._sender.send_all(name, self._wanted(reads))
        if self._plan.explain and not self._plan.only and self._running:
            await self._explain(every)
        every += await self._others(every)
        await self._sender.send_all(name, self._wanted(object_chains(self._project, every, self._plan, self.namespace)))
        await self._remove_finalizers(every)
        for chain in chains:
            await self._every("DELETE", f"{CRDS}/{chain.name}")
        await self._until_gone([chain.name for chain in chains])

    async def _others(self, known: Sequence[Kind]) -> list[Kind]:
        """Return the kinds of the samples that no CRD of the project defines, as far as the servers have them."""
        wanted = {
            (text(at(each.object, "apiVersion")), text(at(each.object, "kind"))) for each in self._project.samples
        }
        found: list[Kind] = []
        for api_version, kind in sorted(wanted - {(each.api_version, each.kind) for each in known}):
            for server in self._servers[-1:]:
                path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
                answer = await server.caller.get(path)
                served = kind_served(api_version, kind, answer.json) if answer.status == 200 else None
                found += [served] if served is not None else []
        return found

    def _wanted(self, chains: Sequence[Chain] | Iterator[Chain]) -> Iterator[Chain]:
        wanted = (chain for chain in chains if self._plan.only in chain.name)
        return itertools.islice(wanted, 0, None, self._plan.every)

    async def _every(self, method: str, path: str, body: object = None) -> list[int]:
        return [(await server.caller.call(method, path, body)).status for server in self._servers]

    async def _until_served(self, kinds: Sequence[Kind]) -> None:
        """Wait until objects can be created and schemas be read: the real server does both a moment later."""
        waiting: list[tuple[LiveServer, Kind]] = [(server, kind) for server in self._servers for kind in kinds]
        async with asyncio.timeout(PATIENCE):
            while waiting:
                there = await asyncio.gather(*(self._is_served(server, kind) for server, kind in waiting))
                waiting = [each for each, served in zip(waiting, there, strict=True) if not served]
                if waiting:
                    await asyncio.sleep(_POLL)

    async def _is_served(self, server: LiveServer, kind: Kind) -> bool:
        listed = await server.caller.get(kind.collection(self.namespace))
        if listed.status != 200:
            return False
        published = await server.caller.get(f"/openapi/v3/apis/{kind.api_version}")
        return published.status == 200 and f'"kind":"{kind.kind}"' in published.text.replace(" ", "")

    async def _remove_finalizers(self, kinds: Sequence[Kind]) -> None:
        """A CRD goes when its objects have."""
        for server in self._servers:
            for kind in kinds:
                path = kind.collection(self.namespace)
                for item in (await server.caller.get(path)).json.get("items", ()):
                    if item["metadata"].get("finalizers"):
                        await server.caller.patch(
                            f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}}
                        )

    async def _until_gone(self, names: Sequence[str]) -> None:
        until = asyncio.get_running_loop().time() + PATIENCE
        for server in self._servers:
            for name in names:
                while (answer := await server.caller.get(f"{CRDS}/{name}")).status != 404:
                    if asyncio.get_running_loop().time() > until:
                        raise RuntimeError(
                            f"CRD {name} is still there: {answer.json.get('status', {}).get('conditions')}"
                        )
                    await asyncio.sleep(_POLL)

    async def _explain(self, kinds: Sequence[Kind]) -> None:
        asked = [
            (kind, ("explain", kind.plural, "--api-version", kind.api_version, *more))
            for kind in kinds
            for more in ((), ("--recursive",))
        ]
        limit = asyncio.Semaphore(2)

        async def ask(kind: Kind, arguments: tuple[str, ...]) -> None:
            async with limit:
                ours, real = await asyncio.gather(
                    *(asyncio.to_thread(kubectl, each, *arguments) for each in self._running)
                )
            request = Request(
                "explain" + " --recursive" * (len(arguments) > 4), "GET", "kubectl " + " ".join(arguments), kind=kind
            )
            self._sender.counts.add(
                self._project.name, f"{kind}/explain", "its CRD", request, _printed(*ours), _printed(*real)
            )

        for kind, arguments in asked[:1]:
            await ask(kind, arguments)  # alone: it fills the cache of discovery
        await asyncio.gather(*(ask(kind, arguments) for kind, arguments in asked[1:]))


def _printed(code: int, text: str) -> Outcome:
    return Outcome(
        200 if code == 0 else 400, message=text if code else "", body=explained_fields(text) if code == 0 else None
    )
