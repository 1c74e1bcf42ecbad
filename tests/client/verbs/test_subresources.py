from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import BadRequestError, Status, TooManyRequestsError
from deltaloop.client import Client, ClientConfig, DeleteOptions, HttpResponse, LogOptions, WriteOptions
from deltaloop.errors import StreamEndedError
from deltaloop.testing import run_virtual
from tests.client.fake_transport import FakeTransport, Pause, Stream, json_answer
from tests.nightly import examples

SCALE = {
    "kind": "Scale",
    "apiVersion": "autoscaling/v1",
    "metadata": {"name": "a", "namespace": "n", "resourceVersion": "5"},
    "spec": {"replicas": 3},
    "status": {"replicas": 2, "selector": "a=b"},
}


def client_over(*answers: HttpResponse | Exception | Stream) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport), transport


def sent(transport: FakeTransport) -> tuple[str, str, dict[str, str], Any]:
    request = transport.requests[-1]
    body = None if request.body is None else json.loads(request.body)
    return request.method, request.path, dict(request.query), body


async def test_scale() -> None:
    client, transport = client_over(json_answer(SCALE), json_answer(SCALE), json_answer(SCALE))
    found = await client.get_scale(kinds.DEPLOYMENT, "a")
    assert (found.kind, found["status"]["selector"]) == ("Scale", "a=b")
    known = found.resource_type
    assert known is not None
    assert (known.group, known.version, known.kind, known.plural) == ("autoscaling", "v1", "Scale", "scales")
    path = "/apis/apps/v1/namespaces/mine/deployments/a/scale"
    assert sent(transport) == ("GET", path, {}, None)
    changed = await client.scale("apps/v1/Deployment", "a", 3)
    assert changed["spec"]["replicas"] == 3
    assert sent(transport) == ("PATCH", path, {}, {"spec": {"replicas": 3}})
    assert transport.requests[-1].headers["Content-Type"] == "application/merge-patch+json"
    of_dict = ResourceType[dict[str, Any]]("apps", "v1", "Deployment", "deployments", model=dict)
    dry_run = WriteOptions(dry_run=True)
    changed = await client.scale(of_dict, "a", 0, namespace="n", resource_version="5", options=dry_run)
    assert isinstance(changed, Resource)
    assert sent(transport)[2:] == ({"dryRun": "All"}, {"spec": {"replicas": 0}, "metadata": {"resourceVersion": "5"}})


async def test_evict() -> None:
    refusal = HttpResponse(status=429, body=Status(code=429, reason="TooManyRequests", message="budget").to_json())
    client, transport = client_over(json_answer({"kind": "Status", "status": "Success"}, status=201), refusal)
    await client.evict("a", options=DeleteOptions(grace_period_seconds=0))
    method, path, _, body = sent(transport)
    assert (method, path) == ("POST", "/api/v1/namespaces/mine/pods/a/eviction")
    assert body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "mine"},
        "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
    }
    with pytest.raises(TooManyRequestsError, match="budget"):
        await client.evict("a")
    assert len(transport.requests) == 2


async def test_subresource_is_created() -> None:
    request: dict[str, Any] = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": {},
    }
    client, transport = client_over(json_answer(request, status=201))
    made = await client.create_subresource(kinds.SERVICE_ACCOUNT, "a", "token", request)
    assert made.kind == "TokenRequest"
    assert sent(transport) == ("POST", "/api/v1/namespaces/mine/serviceaccounts/a/token", {}, request)


async def test_subresource_with_type_of_object() -> None:
    client, transport = client_over(json_answer({"metadata": {"name": "a"}}))
    await client.get(kinds.POD, "a", subresource="status")
    assert sent(transport)[1] == "/api/v1/namespaces/mine/pods/a/status"


async def test_logs_line_by_line() -> None:
    client, transport = client_over(Stream((b"one\ntw", Pause(2.0), b"o\n\nlast")))
    async with client.logs("a", options=LogOptions(container="c", follow=True)) as log:
        assert [line async for line in log] == [b"one", b"two", b"", b"last"]
        assert await anext(log, None) is None
    assert asyncio.get_running_loop().time() == 2.0
    (request,) = transport.requests
    assert (request.path, dict(request.query)) == (
        "/api/v1/namespaces/mine/pods/a/log",
        {"container": "c", "follow": "true"},
    )
    assert request.headers == {"Accept": "*/*"}
    assert not request.bounded
    assert transport.open_streams == 0


async def test_logs_as_bytes() -> None:
    client, _ = client_over(Stream((b"one\ntw", b"\xff")))
    async with client.logs("a", namespace="n") as log:
        assert [chunk async for chunk in log.chunks] == [b"one\ntw", b"\xff"]


@settings(max_examples=examples(30))
@given(st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_slices(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(edges)]
    expected = data.split(b"\n")

    async def run() -> list[bytes]:
        client, _ = client_over(Stream(tuple(chunks)))
        async with client.logs("a") as log:
            return [line async for line in log]

    assert run_virtual(run()) == (expected if expected[-1] else expected[:-1])


async def test_rejected_or_broken_log_raises_error() -> None:
    refusal = Stream((Status(code=400, reason="BadRequest", message="container is waiting").to_json(),), status=400)
    broken = StreamEndedError("reset", method="GET", path="/x")
    client, transport = client_over(refusal, Stream((b"one\ntwo", broken)))
    with pytest.raises(BadRequestError, match="container is waiting"):
        async with client.logs("a"):
            pass
    async with client.logs("a") as log:
        assert await anext(log) == b"one"
        with pytest.raises(StreamEndedError):
            await anext(log)
    assert transport.open_streams == 0


async def test_leaving_followed_log_closes_stream() -> None:
    client, transport = client_over(Stream((b"one\n", Pause(1000.0))))
    async with client.logs("a", options=LogOptions(follow=True)) as log:
        assert await anext(log) == b"one"
    assert transport.open_streams == 0
