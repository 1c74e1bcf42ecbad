"""Whatever is sent, a webhook answers in good form: no review makes an error of this side's, or takes long.

``make -C lab fuzz-webhooks`` looks longer: ``FUZZ_WEBHOOKS`` is how many reviews.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import deltaloop as dl
from deltaloop.webhooks import WebhookSet
from deltaloop.webhooks.answer import Answer
from deltaloop.webhooks.declaring import Webhook
from tests.webhooks.kinds import Database, conversion, database, deployment, review, to_new, to_old
from tests.webhooks.serving import serving

MANY: Final = int(os.environ.get("FUZZ_WEBHOOKS", "50"))
SHORT: Final = MANY <= 50
pytestmark = pytest.mark.timeout(120 if SHORT else 0)
SETTINGS: Final = settings(max_examples=MANY)
LONGEST: Final = 2.0  # seconds of the process itself


@dl.validate(Database, operations=["CREATE", "UPDATE", "DELETE"])
def careful(database: Database, request: dl.AdmissionRequest[Database]) -> Iterator[dl.FieldError]:
    if database.spec.replicas % 2:
        yield dl.FieldError("spec.replicas", f"{database.spec.image} {request.user.groups} {request.options}")


@dl.mutate(Database)
def complete(database: Database) -> None:
    database.spec.owner = database.spec.owner or "nobody"


@dl.mutate("apps/v1/Deployment")
def fields(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "added": {"a/b": [1]}}


@dl.validate("v1/Pod", operations=["CONNECT"], subresources=["exec"])
def connects(options: dl.Resource) -> dl.FieldError | None:
    return dl.FieldError("", "no") if options.get("stdin") else None


EVERY: Final[tuple[Webhook, ...]] = (careful, complete, fields, connects, to_new, to_old)
HOOKS: Final = WebhookSet(EVERY)
PATHS: Final = sorted(HOOKS.by_path)
OLD: Final = {**database(), "apiVersion": "example.com/v1beta1", "spec": {"size": 1}}
SEEDS: Final[list[dict[str, Any]]] = [
    review(database(replicas=2)),
    review(database(replicas=2), old=database(replicas=3)),
    review(None, old=database(replicas=3)),
    review(deployment()),
    review(
        {"apiVersion": "v1", "kind": "PodExecOptions", "stdin": True},
        kind={"group": "", "version": "v1", "kind": "PodExecOptions"},
        operation="CONNECT",
        subResource="exec",
    ),
    conversion("example.com/v1beta1", database(replicas=3), OLD),
    conversion("example.com/v1", OLD, OLD),
]
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the ways to all parts of a value."""
    yield way
    if isinstance(value, dict | list):
        whole = cast("Any", value)
        for name, part in [*(whole.items() if isinstance(value, dict) else enumerate(whole))]:
            yield from places(part, (*way, name))


def replaced(value: Any, way: tuple[Any, ...], new: Any, *, drop: bool) -> Any:
    """Return a value with another part at a place, or without that part."""
    if not way:
        return new
    result = copy.copy(value)
    if len(way) == 1 and drop:
        del result[way[0]]
    else:
        result[way[0]] = replaced(value[way[0]], way[1:], new, drop=drop)
    return result


@st.composite
def reviews(draw: st.DrawFn) -> Any:
    found: Any = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 3))):
        way = draw(st.sampled_from(list(places(found))))
        found = replaced(found, way, draw(JSON), drop=draw(st.booleans()))
    return found


Ask = Callable[[str, bytes], Answer]


def asked(ask: Ask, path: str, body: bytes) -> Answer:
    """Ask, for a while: what does not come to an end is found, too."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"no answer within {LONGEST:g} s of the process: {path} {body!r}")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        return ask(path, body)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_answer(path: str, body: bytes, ask: Ask = HOOKS.answer) -> dict[str, Any]:
    """Check that an answer is one, and return it."""
    answer = asked(ask, path, body)
    assert answer.status in (200, 400), (path, body, answer)
    assert answer.outcome != "failed", (path, body, answer.error)
    said: dict[str, Any] = json.loads(answer.body)
    if answer.status == 400:
        assert (said["kind"], said["code"]) == ("Status", 400)
    elif said["kind"] == "AdmissionReview":
        assert said["response"]["allowed"] is ("status" not in said["response"])
    else:
        assert said["response"]["result"]["status"] in ("Success", "Failure")
    return said


def turned(chance: random.Random, number: int) -> Iterator[tuple[str, bytes]]:
    """Give reviews of which bytes are lost, doubled or others, and where they are sent."""
    for _ in range(number):
        content = bytearray(json.dumps(chance.choice(SEEDS)).encode())
        for _ in range(chance.randrange(4)):
            begin = chance.randrange(len(content))
            content[begin : begin + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        yield chance.choice(PATHS), bytes(content)


@SETTINGS
@given(st.sampled_from(PATHS), reviews())
@example("/validate/careful.databases.example.com", review(database(replicas=2), operation="DELETE"))
@example(PATHS[0], {**SEEDS[5], "request": {**SEEDS[5]["request"], "objects": [{}]}})
@example(PATHS[0], {**SEEDS[6], "request": {**SEEDS[6]["request"], "desiredAPIVersion": ""}})
@example(PATHS[0], {**SEEDS[6], "request": {"uid": "12-34", "desiredAPIVersion": "example.com/v1"}})
def test_slightly_invalid_reviews(path: str, content: Any) -> None:
    said = check_answer(path, json.dumps(content).encode())
    if said["kind"] == "Status":
        return
    request = content["request"]
    assert said["response"]["uid"] == request["uid"]
    assert said["apiVersion"] == content["apiVersion"]
    if said["kind"] == "ConversionReview" and said["response"]["result"]["status"] == "Success":
        assert len(said["response"]["convertedObjects"]) == len(request.get("objects", ()))


@SETTINGS
@given(st.sampled_from(PATHS), st.binary(max_size=64) | JSON.map(lambda found: json.dumps(found).encode()))
def test_arbitrary_bodies(path: str, body: bytes) -> None:
    answer = HOOKS.answer(path, body)
    assert (answer.status, answer.outcome) == (400, "invalid")
    assert json.loads(answer.body)["kind"] == "Status"


def check_turned(number: int, ask: Ask = HOOKS.answer) -> None:
    for path, body in turned(random.Random(25), number):
        check_answer(path, body, ask)


def test_corrupted_bytes() -> None:
    check_turned((20 if SHORT else 2) * MANY)


async def test_fuzzed_reviews_over_http() -> None:
    """The same bytes, by other methods, as other types, and with time limits that are none."""
    chance = random.Random(25)
    async with serving(EVERY) as caller:
        for number, (path, body) in enumerate(turned(chance, MANY)):
            limit = chance.choice(["10s", "", "x", "-1s", "9" * 40])
            kind = chance.choice(["application/json", "application/json; charset=utf-8", "text/plain", ""])
            url = f"{caller.server.url}{path}?timeout={limit}"
            async with asyncio.timeout(LONGEST * 10):
                async with caller.session.request(
                    chance.choice(["POST", "POST", "POST", "PUT"]), url, data=body, headers={"Content-Type": kind}
                ) as answer:
                    assert answer.status in (200, 400, 405, 415), (number, answer.status)
                    assert await answer.json()
        assert "failed" not in {outcome for _, _, outcome in caller.metrics.answers}
