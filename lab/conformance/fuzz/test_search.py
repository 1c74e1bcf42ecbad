"""The fuzzer itself: two servers that are alike agree, and a bug in one of them is found and made short."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, cast

import aiohttp
import pytest
from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, EmbeddedTarget

from lab.conformance.fuzz.definitions import GROUP, NAME, PLURAL
from lab.conformance.fuzz.differential import Pair, both, first_difference
from lab.conformance.fuzz.search import Search
from lab.conformance.fuzz.sequences import FUZZED
from lab.conformance.fuzz.steps import APPLY, COMPACT, JSON_PATCH, MERGE, REQUESTS, Step

SHORTENING = 0.5
# Sequences within which chance finds each seeded bug, among all kinds and requests, and searches that draw them.
ENOUGH = 1000
SEARCHES = 4


class BuggyApi(Api):
    """A server with a bug: requests or answers are changed on their way."""

    bug = ""

    async def call(self, method: str, path: str, content: object = None, **headers: str) -> Answer:
        if self.bug == "a dry run is none":
            path = path.replace("dryRun=All", "")
        elif self.bug == "preconditions are forgotten" and method == "DELETE" and isinstance(content, bytes):
            content = content.replace(b'"preconditions"', b'"forgotten"')
        elif self.bug == "force is always on" and "force=" not in path and "apply-patch" in str(headers):
            path += "&force=true"
        elif self.bug == "a copy of nothing is refused" and isinstance(content, bytes):
            content = content.replace(b'{"op": "copy"', b'{"op": "move"')
        elif self.bug == "limits are passed over":
            path = path.replace("limit=1", "limit=2")
        elif self.bug == "exact lists are new ones":
            path = path.replace("resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan")
        elif self.bug == "budgets are not asked" and path.endswith("/eviction"):
            pod = path.removesuffix("/eviction")
            return await self._evicted(await super().call(method, path, content, **headers), pod)
        elif self.bug == "columns are fixed" and method in ("PUT", "PATCH") and path.startswith(CRDS):
            content = cast("bytes", content).replace(b'"Size"', b'"Other"')
        return await super().call(method, path, content, **headers)

    async def _evicted(self, answer: Answer, pod: str) -> Answer:
        if answer.status != 429:
            return answer
        await super().call("DELETE", pod)
        return Answer(201, answer.headers, b'{"kind": "Status", "apiVersion": "v1", "metadata": {}}')

    def stream(self, path: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return super().stream(path.replace("labelSelector", "none") if self.bug == "watches have no selector" else path)

    async def compact(self) -> None:
        if self.bug != "nothing is forgotten":
            await super().compact()


class BuggyTarget(EmbeddedTarget):
    bug = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Api]:
        async with EmbeddedTarget().open() as good:
            buggy = BuggyApi(good.session, good.url, compact=good.compact, policies_seen=good.policies_seen)
            buggy.bug = self.bug
            yield buggy


def _search(
    bug: str,
    *,
    examples: int,
    seed: int = 1,
    shortening: float = SHORTENING,
    requests: Sequence[str] = tuple(REQUESTS),
    kinds: Sequence[str] = (),
) -> Search:
    second = BuggyTarget()
    object.__setattr__(second, "bug", bug)
    resources = [resource for resource in FUZZED if not kinds or resource.kind in kinds]
    until: list[float] = []

    def over(found: bool) -> bool:
        # A short form of what was found is enough: shortening to the end takes longer than finding.
        if found and not until:
            until.append(time.monotonic() + shortening)
        return found and time.monotonic() > until[0]

    with asyncio.Runner() as runner:
        servers = both(EmbeddedTarget(), second)
        pair: Pair = runner.run(servers.__aenter__())
        search = Search(pair, runner, over, resources, requests)
        try:
            search.run(examples=examples, seed=seed, longest=8)
        finally:
            runner.run(servers.__aexit__(None, None, None))
    return search


@pytest.mark.nightly
@pytest.mark.real_time
def test_equal_servers_agree() -> None:
    search = _search("", examples=40)
    assert search.shortest is None, search.shortest
    assert search.tried[0] >= 30


@pytest.mark.nightly
@pytest.mark.real_time
def test_seeded_bug_is_found_and_minimized() -> None:
    search = _search("a dry run is none", examples=400, requests=("create",), kinds=("ConfigMap",))
    assert search.shortest is not None
    steps, difference = search.shortest
    assert any(("dryRun", "All") in step.query for step in steps), difference
    assert len(steps) <= 3


def found_after(bug: str, *, examples: int) -> int:
    """Return how many sequences it takes to find a bug among all requests and kinds; 0 if these are not enough.

    They are drawn by several searches, one after the other: within one, Hypothesis keeps to what it has drawn before.
    """
    each = examples // SEARCHES
    for number in range(SEARCHES):
        found = _search(bug, examples=each, seed=number + 1, shortening=0.0).found_after
        if found:
            return number * each + found
    return 0


_MAPS: Final = "/api/v1/namespaces/NAMESPACE/configmaps"
_PODS: Final = "/api/v1/namespaces/NAMESPACE/pods"
_BUDGETS: Final = "/apis/policy/v1/namespaces/NAMESPACE/poddisruptionbudgets"
_SIZE: Final = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}


def _definition(*columns: dict[str, str]) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": schema}
    version["additionalPrinterColumns"] = list(columns)
    names = {"plural": PLURAL, "kind": "Thing"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": NAME}, "spec": spec}


def _map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


_FINDS: Final[dict[str, list[Step]]] = {
    "a dry run is none": [Step("POST", _MAPS, (("dryRun", "All"),), _map())],
    "preconditions are forgotten": [
        Step("POST", _MAPS, (), _map()),
        Step("DELETE", f"{_MAPS}/a", (), {"preconditions": {"uid": "other"}}),
    ],
    "force is always on": [
        Step("PATCH", f"{_MAPS}/a", (("fieldManager", "m1"),), _map(k="1"), APPLY),
        Step("PATCH", f"{_MAPS}/a", (("fieldManager", "m2"),), _map(k="2"), APPLY),
    ],
    "a copy of nothing is refused": [
        Step("POST", _MAPS, (), _map()),
        Step("PATCH", f"{_MAPS}/a", (), [{"op": "copy", "from": "/data", "path": "/data"}], JSON_PATCH),
    ],
    "limits are passed over": [
        Step("POST", _MAPS, (), _map("a")),
        Step("POST", _MAPS, (), _map("b")),
        Step("GET", _MAPS, (("limit", "1"),)),
    ],
    "exact lists are new ones": [
        Step("POST", _MAPS, (), _map("a")),
        Step("POST", _MAPS, (), _map("b")),
        Step("GET", _MAPS, (("resourceVersion", "$revision:1"), ("resourceVersionMatch", "Exact"))),
    ],
    "budgets are not asked": [
        Step("POST", _BUDGETS, (), {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {}}}),
        Step("POST", _PODS, (), {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        Step("PATCH", f"{_PODS}/a/status", (), {"status": {"phase": "Running"}}, MERGE),
        Step("POST", f"{_PODS}/a/eviction", (), {"metadata": {"name": "a"}}),
    ],
    "columns are fixed": [
        Step("POST", CRDS, (), _definition()),
        Step("PATCH", f"{CRDS}/{NAME}", (), {"spec": _definition(_SIZE)["spec"]}, MERGE),
    ],
    "nothing is forgotten": [
        Step("POST", _MAPS, (), _map()),
        COMPACT,
        Step("GET", _MAPS, (("resourceVersion", "$revision:0"), ("resourceVersionMatch", "Exact"))),
    ],
}


@pytest.mark.nightly
@pytest.mark.real_time
async def test_ignored_selector_is_detected_in_watch() -> None:
    steps = [
        Step("GET", _MAPS, (("watch", "1"), ("labelSelector", "app=x"), ("resourceVersion", "$revision:0"))),
        Step("POST", _MAPS, (), _map()),
    ]
    second = BuggyTarget()
    object.__setattr__(second, "bug", "watches have no selector")
    async with both(EmbeddedTarget(), second) as pair:
        found = await pair.compare(steps)
        assert found is not None
        assert (found.number, found.events) == (1, True)


@pytest.mark.nightly
@pytest.mark.real_time
@pytest.mark.skipif(not os.environ.get("DELTALOOP_FUZZ"), reason="takes minutes: DELTALOOP_FUZZ=1")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", [*sorted(_FINDS), "watches have no selector"])
def test_random_search_finds_each_seeded_bug(bug: str) -> None:
    assert 0 < found_after(bug, examples=ENOUGH) <= ENOUGH


@pytest.mark.nightly
@pytest.mark.real_time
@pytest.mark.parametrize("bug", sorted(_FINDS))
async def test_each_seeded_bug_is_visible_in_sequence(bug: str) -> None:
    """And in a sequence that has nothing to do with it, it does not."""
    second = BuggyTarget()
    object.__setattr__(second, "bug", bug)
    async with both(EmbeddedTarget(), second) as pair:
        found = await pair.compare(_FINDS[bug])
        assert found is not None
        assert found.number == len(_FINDS[bug])
        assert await pair.compare([Step("POST", _MAPS, (), _map()), Step("GET", f"{_MAPS}/a")]) is None


def test_first_difference_has_path_and_values() -> None:
    one: Any = {"a": [1, {"b": 2}], "c": None}
    assert first_difference(one, one) is None
    assert first_difference(one, {"a": [1, {"b": 3}], "c": None}) == (".a[1].b", 2, 3)
    assert first_difference(one, {"a": [1], "c": None}) == (".a[1]", {"b": 2}, "nothing")
    assert first_difference({"a": 1}, {"a": True}) == (".a", 1, True)
    assert first_difference({}, {"a": None}) == (".a", "nothing", None)
