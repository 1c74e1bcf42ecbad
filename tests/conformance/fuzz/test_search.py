"""The fuzzer itself: two servers that are alike agree, and a bug in one of them is found and made short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.apiserver.serving import Answer
from tests.conformance.fuzz.differential import Pair, both, first_difference
from tests.conformance.fuzz.search import Search
from tests.conformance.target import Api, EmbeddedTarget

pytestmark = pytest.mark.timeout(30)


class BuggyApi(Api):
    """A server with a bug: requests or answers are changed on their way."""

    bug = ""

    async def call(self, method: str, path: str, content: object = None, **headers: str) -> Answer:
        if self.bug == "a dry run is none":
            path = path.replace("dryRun=All", "dryRun=")
        elif self.bug == "preconditions are forgotten" and method == "DELETE" and isinstance(content, bytes):
            content = content.replace(b'"preconditions"', b'"forgotten"')
        elif self.bug == "force is always on" and "force=" not in path and "apply-patch" in str(headers):
            path += "&force=true"
        return await super().call(method, path, content, **headers)


class BuggyTarget(EmbeddedTarget):
    bug = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Api]:
        async with EmbeddedTarget().open() as good:
            buggy = BuggyApi(good.session, good.url, compact=good.compact)
            buggy.bug = self.bug
            yield buggy


def _search(bug: str, *, examples: int, seed: int = 1) -> Search:
    second = BuggyTarget()
    object.__setattr__(second, "bug", bug)
    with asyncio.Runner() as runner:
        servers = both(EmbeddedTarget(), second)
        pair: Pair = runner.run(servers.__aenter__())
        search = Search(pair, runner)
        try:
            search.run(examples=examples, seed=seed, longest=6)
        finally:
            runner.run(servers.__aexit__(None, None, None))
    return search


@pytest.mark.real_time
def test_two_servers_that_are_alike_agree() -> None:
    search = _search("", examples=40)
    assert search.shortest is None, search.shortest
    assert search.tried[0] >= 30


@pytest.mark.real_time
def test_a_seeded_bug_is_found_and_shortened() -> None:
    search = _search("a dry run is none", examples=200)
    assert search.shortest is not None
    steps, difference = search.shortest
    assert len(steps) <= 2
    assert any(("dryRun", "All") in step.query for step in steps), difference


def test_differences_are_named() -> None:
    one: Any = {"a": [1, {"b": 2}], "c": None}
    assert first_difference(one, one) is None
    assert first_difference(one, {"a": [1, {"b": 3}], "c": None}) == (".a[1].b", 2, 3)
    assert first_difference(one, {"a": [1], "c": None}) == (".a[1]", {"b": 2}, "nothing")
    assert first_difference({"a": 1}, {"a": True}) == (".a", 1, True)
    assert first_difference({}, {"a": None}) == (".a", "nothing", None)
