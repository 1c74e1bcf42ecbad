from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.status import ForbiddenError
from deltaloop.client import Client, ClientConfig, Request, Response, TransportError
from tests.client.fake_transport import FakeTransport, json_answer, logged, text_answer


def groups(*names: str) -> Response:
    return json_answer(
        {
            "groups": [
                {
                    "name": name.partition("/")[0],
                    "versions": [{"groupVersion": name}],
                    "preferredVersion": {"groupVersion": name},
                }
                for name in names
            ]
        }
    )


def resources(*entries: dict[str, Any]) -> Response:
    return json_answer({"kind": "APIResourceList", "resources": list(entries)})


PODS = resources({"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": True, "shortNames": ["po"]})
DEPLOYMENTS = resources({"name": "deployments", "kind": "Deployment", "namespaced": True, "shortNames": ["deploy"]})
FOOS = resources({"name": "foos", "kind": "Foo", "namespaced": True})


class Paths(FakeTransport):
    """Answers by path, whatever the order."""

    def __init__(self, **answers: Response | Exception) -> None:
        super().__init__()
        self.by_path: dict[str, Response | Exception] = {
            "/api": json_answer({"versions": ["v1"]}),
            "/apis": groups("apps/v1"),
            "/api/v1": PODS,
            "/apis/apps/v1": DEPLOYMENTS,
        }

    def _next(self, request: Request) -> Response | Exception:
        self.requests.append(request)
        return self.by_path.get(request.path, text_answer("404 page not found", status=404))


def make() -> tuple[Client, Paths]:
    transport = Paths()
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


async def test_everything_is_asked_once_and_kept() -> None:
    client, transport = make()
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
    assert str(await client.resource("po")) == "v1/Pod"
    assert str(await client.resource("deployments.apps")) == "apps/v1/Deployment"
    assert sorted(request.path for request in transport.requests) == ["/api", "/api/v1", "/apis", "/apis/apps/v1"]
    assert len(await client.resources()) == 2


async def test_many_at_once_ask_once() -> None:
    client, transport = make()
    await asyncio.gather(*(client.resource("deploy") for _ in range(20)))
    assert len(transport.requests) == 4


async def test_an_unknown_name_is_looked_for_again() -> None:
    client, transport = make()
    await client.resource("deploy")
    with pytest.raises(UnknownResourceError, match="CustomResourceDefinition"):
        await client.resource("foo")
    transport.by_path["/apis"] = groups("apps/v1", "samples.example/v1")
    transport.by_path["/apis/samples.example/v1"] = FOOS
    assert str(await client.resource("foo")) == "samples.example/v1/Foo"


async def test_near_matches_are_named() -> None:
    client, _ = make()
    with pytest.raises(UnknownResourceError, match=r"near matches: .*deployment"):
        await client.resource("deploymnt")


@pytest.mark.parametrize(
    "failure",
    [
        text_answer("down", status=503),
        json_answer("odd"),
        TransportError("reset", method="GET", path="/apis/apps/v1", refused=True),
    ],
)
async def test_one_group_that_fails_hides_no_other(
    failure: Response | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    client, transport = make()
    transport.by_path["/apis/apps/v1"] = failure
    caplog.set_level(logging.WARNING, "deltaloop.client")
    assert str(await client.resource("pods")) == "v1/Pod"
    assert [record.getMessage() for record in logged(caplog)] == ["discovery of an API group failed"]
    with pytest.raises(UnknownResourceError, match="discovery failed for apps/v1"):
        await client.resource("deploy")


async def test_a_group_that_went_away_is_no_failure() -> None:
    client, transport = make()
    del transport.by_path["/apis/apps/v1"]
    assert (await client.resources()).failed_groups == ()


async def test_a_server_without_a_core_group() -> None:
    client, transport = make()
    del transport.by_path["/api"]
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"


async def test_a_refusal_is_raised_and_not_kept() -> None:
    client, transport = make()
    transport.by_path["/apis"] = text_answer("no", status=403)
    with pytest.raises(ForbiddenError):
        await client.resource("deploy")
    transport.by_path["/apis"] = groups("apps/v1")
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"


async def test_cancelling_one_caller_does_not_break_the_next() -> None:
    client, _ = make()
    first = asyncio.create_task(client.resource("deploy"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
