from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.status import ForbiddenError, NotAcceptableError
from deltaloop.client import Client, ClientConfig, HttpRequest, HttpResponse
from deltaloop.errors import TransportError
from tests.client.fake_transport import FakeTransport, json_answer, logged, text_answer
from tests.having import having


def groups(*names: str) -> HttpResponse:
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


def resources(*entries: dict[str, Any]) -> HttpResponse:
    return json_answer({"kind": "APIResourceList", "resources": list(entries)})


PODS = resources({"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": True, "shortNames": ["po"]})
DEPLOYMENTS = resources({"name": "deployments", "kind": "Deployment", "namespaced": True, "shortNames": ["deploy"]})
FOOS = resources({"name": "foos", "kind": "Foo", "namespaced": True})


class Paths(FakeTransport):
    """Answers by path, whatever the order."""

    def __init__(self, **answers: HttpResponse | Exception) -> None:
        super().__init__()
        self.by_path: dict[str, HttpResponse | Exception] = {
            "/api": json_answer({"versions": ["v1"]}),
            "/apis": groups("apps/v1"),
            "/api/v1": PODS,
            "/apis/apps/v1": DEPLOYMENTS,
        }

    def _next(self, request: HttpRequest) -> HttpResponse | Exception:
        self.requests.append(request)
        return self.by_path.get(request.path, text_answer("404 page not found", status=404))


def make() -> tuple[Client, Paths]:
    transport = Paths()
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


async def test_discovery_runs_once_and_is_cached() -> None:
    client, transport = make()
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
    assert str(await client.resource("po")) == "v1/Pod"
    assert str(await client.resource("deployments.apps")) == "apps/v1/Deployment"
    assert sorted(request.path for request in transport.requests) == ["/api", "/api/v1", "/apis", "/apis/apps/v1"]
    assert len(await client.resources()) == 2


async def test_concurrent_lookups_share_one_discovery() -> None:
    client, transport = make()
    await asyncio.gather(*(client.resource("deploy") for _ in range(20)))
    assert len(transport.requests) == 4


async def test_unknown_name_is_discovered_again_later() -> None:
    client, transport = make()
    await client.resource("deploy")
    with pytest.raises(UnknownResourceError, check=having(name="foo")):
        await client.resource("foo")
    transport.by_path["/apis"] = groups("apps/v1", "samples.example/v1")
    transport.by_path["/apis/samples.example/v1"] = FOOS
    assert str(await client.resource("foo")) == "samples.example/v1/Foo"


async def test_discovery_for_unknown_names_is_limited() -> None:
    client, transport = make()
    await client.resource("deploy")
    for _ in range(20):
        with pytest.raises(UnknownResourceError):
            await client.resource("foo")
    assert len(transport.requests) == 4 * (1 + 3)
    transport.by_path["/apis"] = groups("samples.example/v1")
    transport.by_path["/apis/samples.example/v1"] = FOOS
    await asyncio.sleep(5.0)
    assert str(await client.resource("foo")) == "samples.example/v1/Foo"


async def test_near_matches_are_named() -> None:
    client, _ = make()
    with pytest.raises(UnknownResourceError, check=having(name="deploymnt"), match="apps/v1/Deployment"):
        await client.resource("deploymnt")


@pytest.mark.parametrize(
    "failure",
    [
        text_answer("down", status=503),
        json_answer("odd"),
        TransportError("reset", method="GET", path="/apis/apps/v1", refused=True),
    ],
)
async def test_failed_group_does_not_hide_others(
    failure: HttpResponse | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    client, transport = make()
    transport.by_path["/apis/apps/v1"] = failure
    caplog.set_level(logging.WARNING, "deltaloop.client")
    assert str(await client.resource("pods")) == "v1/Pod"
    assert [record.getMessage() for record in logged(caplog)] == ["discovery of an API group failed"]
    with pytest.raises(UnknownResourceError, match="apps/v1"):
        await client.resource("deploy")


async def test_known_resources_of_a_failed_group_are_kept() -> None:
    client, transport = make()
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
    transport.by_path["/apis/apps/v1"] = text_answer("down", status=503)
    with pytest.raises(UnknownResourceError, match="apps/v1"):
        await client.resource("foo")
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
    assert len(await client.resources()) == 2


async def test_removed_group_is_not_failure() -> None:
    client, transport = make()
    del transport.by_path["/apis/apps/v1"]
    assert (await client.resources()).failed_groups == ()


async def test_server_without_core_group_is_accepted() -> None:
    client, transport = make()
    del transport.by_path["/api"]
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"


async def test_discovery_error_is_raised_and_not_cached() -> None:
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


# --- Aggregated ---

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def aggregated(*items: dict[str, Any], content_type: str = AGGREGATED) -> HttpResponse:
    fields = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(items)}
    return json_answer(fields, headers=[("Content-Type", content_type)])


def group(name: str, version: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "versions": [{"version": version, "resources": list(resources), "freshness": freshness}],
    }


def served(plural: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced",
        "singularResource": kind.lower(),
        "verbs": ["get", "list"],
        **more,
    }


CORE = group("", "v1", served("pods", "Pod", shortNames=["po"], subresources=[{"subresource": "log"}]))
APPS = group("apps", "v1", served("deployments", "Deployment", shortNames=["deploy"], categories=["all"]))


def make_aggregated(**answers: HttpResponse | Exception) -> tuple[Client, Paths]:
    client, transport = make()
    transport.by_path = {"/api": aggregated(CORE), "/apis": aggregated(APPS), **answers}
    return client, transport


async def test_aggregated_discovery_needs_two_requests() -> None:
    client, transport = make_aggregated()
    assert str(await client.resource("po")) == "v1/Pod"
    assert str(await client.resource("deployments.v1.apps")) == "apps/v1/Deployment"
    assert [request.path for request in transport.requests] == ["/api", "/apis"]
    assert transport.requests[0].headers["Accept"].startswith(AGGREGATED + ",")
    pods, deployments = (await client.resources()).resources
    assert (pods.subresources, pods.verbs, pods.singular) == (("log",), ("get", "list"), "pod")
    assert deployments.categories == ("all",)


async def test_stale_group_is_requested_separately() -> None:
    stale = group("metrics.k8s.io", "v1beta1", freshness="Stale")
    client, transport = make_aggregated()
    transport.by_path["/apis"] = aggregated(stale, APPS)
    transport.by_path["/apis/metrics.k8s.io/v1beta1"] = resources({"name": "nodes", "kind": "NodeMetrics"})
    assert str(await client.resource("nodes.metrics.k8s.io")) == "metrics.k8s.io/v1beta1/NodeMetrics"
    assert (await client.resources()).failed_groups == ()


async def test_broken_aggregated_server_does_not_hide_others(caplog: pytest.LogCaptureFixture) -> None:
    stale = group("metrics.k8s.io", "v1beta1", served("nodes", "NodeMetrics"), freshness="Stale")
    client, transport = make_aggregated()
    transport.by_path["/apis"] = aggregated(stale, APPS)
    transport.by_path["/apis/metrics.k8s.io/v1beta1"] = text_answer("service unavailable", status=503)
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"
    (warned,) = logged(caplog)
    assert warned.__dict__["group_version"] == "metrics.k8s.io/v1beta1"
    assert (await client.resources()).failed_groups == ("metrics.k8s.io/v1beta1",)
    assert str(await client.resource("NodeMetrics")) == "metrics.k8s.io/v1beta1/NodeMetrics", "as last known"


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_legacy_discovery_on_one_path_is_accepted(path: str) -> None:
    client, transport = make()
    legacy = transport.by_path
    transport.by_path = {**legacy, "/api": aggregated(CORE), "/apis": aggregated(APPS), path: legacy[path]}
    assert str(await client.resource("po")) == "v1/Pod"
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"


class Refusing(Paths):
    """Answers the aggregated form with a 406, or with something else."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__()
        self.answer = answer

    def _next(self, request: HttpRequest) -> HttpResponse | Exception:
        found = super()._next(request)
        return self.answer if "apidiscovery" in request.headers["Accept"] else found


@pytest.mark.parametrize(
    "answer",
    [
        text_answer("only JSON", status=406),
        json_answer({"items": 5}, headers=[("Content-Type", AGGREGATED)]),
        json_answer(
            "odd",
            headers=[("Content-Type", "application/json; g=apidiscovery.k8s.io; v=v2beta1; as=APIGroupDiscoveryList")],
        ),
    ],
)
async def test_unreadable_discovery_is_requested_in_legacy_form(answer: HttpResponse) -> None:
    client = Client(ClientConfig(server="http://fake"), transport=Refusing(answer))
    assert str(await client.resource("deploy")) == "apps/v1/Deployment"


async def test_another_content_type_is_legacy() -> None:
    client, transport = make()
    newer = AGGREGATED.replace("v=v2", "v=v9")
    transport.by_path["/apis"] = json_answer({"groups": []}, headers=[("Content-Type", newer)])
    assert str(await client.resource("po")) == "v1/Pod"


# --- Texts in verbs ---


async def test_name_of_custom_kind_is_discovered() -> None:
    client, transport = make()
    transport.by_path["/apis/apps/v1/namespaces/default/deployments/a"] = json_answer({"metadata": {"name": "a"}})
    assert (await client.get("deploy", "a")).name == "a"
    asked = len(transport.requests)
    await client.get("apps/v1/Deployment", "a")
    assert len(transport.requests) == asked + 1, "built-in names need no question"
    with pytest.raises(UnknownResourceError):
        async with client.watch("foo"):
            pass


# --- How much is asked, and what is said ---


def names(count: int) -> list[str]:
    return [f"g{number}.example/v1" for number in range(count)]


async def test_discovery_requests_sixteen_groups_concurrently() -> None:
    class Slow(Paths):
        under_way = most = 0

        async def request(self, request: HttpRequest) -> HttpResponse:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(1.0)
            self.under_way -= 1
            return await super().request(request)

    transport = Slow()
    transport.by_path["/apis"] = groups(*names(40))
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    await client.resources()
    assert transport.most == 16
    assert asyncio.get_running_loop().time() == 2 + 3, "two lists, then 41 groups in three turns"


async def test_unknown_name_is_discovered_at_most_once_in_five_seconds() -> None:
    client, transport = make()
    await client.resource("deploy")
    for wait, asked in ((0.0, 16), (4.9, 16), (0.1, 20), (4.9, 20), (0.1, 24)):
        await asyncio.sleep(wait)
        for _ in range(4):
            with pytest.raises(UnknownResourceError):
                await client.resource("foo")
        assert len(transport.requests) == asked


async def test_known_resources_are_not_requested_again() -> None:
    client, transport = make()
    known = await client.resources()
    assert await client.resources() is known
    assert len(transport.requests) == 4


async def test_concurrent_lookups_of_unknown_name_share_one_discovery() -> None:
    client, transport = make()
    await client.resource("deploy")
    transport.by_path["/apis"] = groups("apps/v1", "samples.example/v1")
    transport.by_path["/apis/samples.example/v1"] = FOOS
    found = await asyncio.gather(*(client.resource("foo") for _ in range(20)))
    assert {str(each) for each in found} == {"samples.example/v1/Foo"}
    assert len(transport.requests) == 4 + 5


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_discovery_tries_each_form_once(path: str) -> None:
    client, transport = make()
    transport.by_path[path] = text_answer("no", status=406)
    with pytest.raises(NotAcceptableError):
        await client.resources()
    assert [request.headers["Accept"] for request in transport.requests if request.path == path][1:] == [
        "application/json"
    ]


async def test_failed_group_is_reported_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    client, transport = make()
    transport.by_path["/apis/apps/v1"] = TransportError("refused", method="GET", path="/x", refused=True)
    assert (await client.resources()).failed_groups == ("apps/v1",)
    warned, told = (record for record in logged(caplog) if "discovery" in record.getMessage())
    assert (warned.levelname, warned.__dict__["group_version"]) == ("WARNING", "apps/v1")
    assert warned.__dict__["error_type"] == "TransportError"
    assert (told.levelname, told.__dict__["resources"], told.__dict__["failed_groups"]) == ("DEBUG", 1, ["apps/v1"])


async def test_unreadable_discovery_is_logged_with_path(caplog: pytest.LogCaptureFixture) -> None:
    broken = json_answer({"items": 5}, headers=[("Content-Type", AGGREGATED)])
    client = Client(ClientConfig(server="http://fake"), transport=Refusing(broken))
    await client.resources()
    assert [(record.levelname, record.__dict__["path"]) for record in logged(caplog)] == [
        ("WARNING", "/api"),
        ("WARNING", "/apis"),
    ]


async def test_stale_core_group_is_requested_at_its_path() -> None:
    client, transport = make_aggregated()
    transport.by_path["/api"] = aggregated(group("", "v1", freshness="Stale"))
    transport.by_path["/api/v1"] = PODS
    assert str(await client.resource("po")) == "v1/Pod"
    assert [request.path for request in transport.requests] == ["/api", "/apis", "/api/v1"]


async def test_server_without_resources_is_accepted() -> None:
    client, transport = make()
    transport.by_path.clear()
    assert len(await client.resources()) == 0
    assert [request.path for request in transport.requests] == ["/api", "/apis"]
