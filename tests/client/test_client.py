from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, ExpiredError, NotFoundError, Status
from deltaloop.client import Client, ClientConfig, ClientOptions, DeleteOptions, HttpResponse, Pool
from tests.client.fake_transport import FakeTransport, json_answer, page, pod
from tests.having import having

POD = pod("a", namespace="n")


class Named(msgspec.Struct):
    name: str


class Small(msgspec.Struct):
    metadata: Named


TYPED = ResourceType[Small]("", "v1", "Pod", "pods", namespaced=True, model=Small)


def client_over(*answers: HttpResponse) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport), transport


def refusal(code: int, reason: str) -> HttpResponse:
    return HttpResponse(status=code, body=Status(code=code, reason=reason, message=f"said {reason}").to_json())


def sent(transport: FakeTransport) -> tuple[str, str, Any]:
    request = transport.requests[-1]
    return request.method, request.path, None if request.body is None else json.loads(request.body)


async def test_get() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD), json_answer(POD))
    found = await client.get(kinds.POD, "a")
    assert isinstance(found, Resource)
    assert found.key == "n/a"
    assert found.resource_type is kinds.POD
    assert sent(transport) == ("GET", "/api/v1/namespaces/mine/pods/a", None)
    typed = await client.get(TYPED, "a", namespace="n")
    assert typed.metadata.name == "a"
    assert sent(transport) == ("GET", "/api/v1/namespaces/n/pods/a", None)
    await client.get("v1/Pod", "a", timeout=3.0)
    assert transport.requests[-1].timeout == 3.0


async def test_cluster_scope_needs_no_namespace() -> None:
    client, transport = client_over(json_answer(POD))
    await client.get(kinds.NODE, "a")
    assert sent(transport)[1] == "/api/v1/nodes/a"
    with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
        await client.get(kinds.NODE, "a", namespace="n")


async def test_not_found() -> None:
    client, _ = client_over(refusal(404, "NotFound"))
    with pytest.raises(NotFoundError, match="said NotFound"):
        await client.get(kinds.POD, "a")


@pytest.mark.parametrize("name", ["", "a/b", "..", "."])
async def test_names_with_path_separators_are_rejected(name: str) -> None:
    client, _ = client_over()
    with pytest.raises(InvalidArgumentError):
        await client.get(kinds.POD, name)


async def test_list_is_one_request_over_all_namespaces() -> None:
    client, transport = client_over(page(POD, version="7", continue_="t"), page())
    found = await client.list(kinds.POD, options=ListOptions(limit=1, label_selector="a=b"))
    assert (found.resource_version, found.continue_, len(found)) == ("7", "t", 1)
    assert sent(transport)[1] == "/api/v1/pods"
    assert transport.requests[-1].query == {"limit": "1", "labelSelector": "a=b"}
    await client.list(TYPED, namespace="n")
    assert sent(transport)[1] == "/api/v1/namespaces/n/pods"


async def test_list_all_follows_the_pages() -> None:
    client, transport = client_over(page(pod("a"), version="7", continue_="t"), page(pod("b"), version="7"))
    found = await client.list_all(
        kinds.POD, page_size=1, options=ListOptions(resource_version="5", resource_version_match="Exact")
    )
    assert [item.name for item in found] == ["a", "b"]
    assert found.resource_version == "7"
    assert [request.query for request in transport.requests] == [
        {"limit": "1", "resourceVersion": "5", "resourceVersionMatch": "Exact"},
        {"limit": "1", "continue": "t"},
    ]


async def test_list_all_falls_back_to_the_full_list_when_a_token_expires() -> None:
    client, transport = client_over(
        page(pod("a"), continue_="t"), refusal(410, "Expired"), page(pod("a"), pod("b"), version="12")
    )
    found = await client.list_all("v1/Pod", namespace="n", page_size=1)
    assert [item.name for item in found] == ["a", "b"]
    assert found.resource_version == "12"
    assert transport.requests[-1].query == {}
    assert {request.path for request in transport.requests} == {"/api/v1/namespaces/n/pods"}


async def test_list_all_raises_expiry_of_first_page() -> None:
    client, _ = client_over(refusal(410, "Expired"))
    with pytest.raises(ExpiredError):
        await client.list_all(kinds.POD)


@pytest.mark.parametrize(
    ("obj", "namespace", "path"),
    [
        ({"metadata": {"name": "a"}}, None, "/api/v1/namespaces/mine/pods"),
        ({"metadata": {"name": "a", "namespace": "n"}}, None, "/api/v1/namespaces/n/pods"),
        ({"metadata": {"generateName": "a-"}}, "given", "/api/v1/namespaces/given/pods"),
        (Resource.from_dict(POD), None, "/api/v1/namespaces/n/pods"),
    ],
)
async def test_create(obj: Any, namespace: str | None, path: str) -> None:
    client, transport = client_over(json_answer(POD, status=201))
    created = await client.create(kinds.POD, obj, namespace=namespace)
    assert created.name == "a"
    method, where, body = sent(transport)
    assert (method, where) == ("POST", path)
    assert (body["apiVersion"], body["kind"]) == ("v1", "Pod")
    assert transport.requests[0].headers["Content-Type"] == "application/json"


async def test_typed_object_is_created() -> None:
    client, transport = client_over(json_answer(POD, status=201))
    created = await client.create(TYPED, Small(Named("a")))
    assert created == Small(Named("a"))
    assert sent(transport)[2] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


async def test_update_and_update_status() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD), json_answer(POD))
    await client.update(kinds.POD, POD)
    assert sent(transport) == ("PUT", "/api/v1/namespaces/n/pods/a", POD)
    await client.update_status(kinds.POD, Resource.from_dict(POD))
    assert sent(transport) == ("PUT", "/api/v1/namespaces/n/pods/a/status", POD)
    await client.update("v1/Node", {"metadata": {"name": "x"}})
    assert sent(transport)[1] == "/api/v1/nodes/x"


async def test_update_needs_a_name() -> None:
    client, _ = client_over()
    with pytest.raises(MalformedObjectError, check=having(path="metadata.name")):
        await client.update(kinds.POD, {"metadata": {"generateName": "x"}})


async def test_conflict_is_not_retried() -> None:
    client, transport = client_over(refusal(409, "Conflict"))
    with pytest.raises(ConflictError):
        await client.update(kinds.POD, POD)
    assert len(transport.requests) == 1


async def test_patch() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD))
    await client.patch(kinds.POD, "a", {"metadata": {"labels": {"x": None}}})
    assert sent(transport) == ("PATCH", "/api/v1/namespaces/mine/pods/a", {"metadata": {"labels": {"x": None}}})
    assert transport.requests[0].headers["Content-Type"] == "application/merge-patch+json"
    await client.patch("v1/Pod", "a", {"status": {}}, namespace="n", subresource="status")
    assert sent(transport)[1] == "/api/v1/namespaces/n/pods/a/status"


async def test_delete() -> None:
    gone = json_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
    client, transport = client_over(gone, json_answer(POD), gone)
    assert await client.delete(kinds.POD, "a") is None
    assert sent(transport) == ("DELETE", "/api/v1/namespaces/mine/pods/a", None)
    held = await client.delete(kinds.POD, "a", namespace="n")
    assert held is not None
    assert held.name == "a"
    options = DeleteOptions(grace_period_seconds=0, propagation_policy="Foreground", uid="u", resource_version="5")
    await client.delete(kinds.POD, "a", options=options)
    assert sent(transport)[2] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
    }


def test_delete_options() -> None:
    assert DeleteOptions().to_dict() == {"apiVersion": "v1", "kind": "DeleteOptions"}
    with pytest.raises(InvalidArgumentError, check=having(argument="DeleteOptions.grace_period_seconds")):
        DeleteOptions(grace_period_seconds=-1)


async def test_response_that_is_not_object_raises_error() -> None:
    client, _ = client_over(HttpResponse(status=200, body=b"<html>s3cret</html>"))
    with pytest.raises(MalformedObjectError) as caught:
        await client.get(kinds.POD, "a")
    assert "s3cret" not in str(caught.value)


async def test_pools() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD))
    elected = client.with_pool(Pool.LEADER_ELECTION)
    await elected.get(kinds.POD, "a")
    await client.get(kinds.POD, "a")
    assert [request.pool for request in transport.requests] == [Pool.LEADER_ELECTION, Pool.REQUESTS]
    assert elected.namespace == client.namespace == "mine"


async def test_leaving_closes_the_transport() -> None:
    client, transport = client_over()
    async with client as entered:
        assert entered is client
    assert transport.closed


def test_repr() -> None:
    client, _ = client_over()
    assert repr(client) == "<Client http://fake namespace=mine>"


class Hosts:
    """Keeps what the requests were counted under."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def request_done(self, *, code: str, method: str, host: str) -> None:
        del code, method
        self.seen.add(host)

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        pass

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        pass

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        pass


async def test_client_options_apply_to_requests() -> None:
    metrics = Hosts()
    transport = FakeTransport(json_answer(POD), json_answer(POD))
    client = Client(
        ClientConfig(server="http://fake:8080/prefix"),
        transport=transport,
        options=ClientOptions(qps=0.5, burst=1, metrics=metrics),
    )
    await client.get(kinds.POD, "a")
    await client.get(kinds.POD, "a")
    assert transport.sent_at == [0.0, 2.0]
    assert metrics.seen == {"fake:8080"}


async def test_client_with_own_connections_keeps_options() -> None:
    config, options = ClientConfig(server="http://127.0.0.1:9"), ClientOptions(field_manager="me")
    client = Client(config, options=options)
    other = client.with_own_connections()
    assert other is not None
    assert (other.config, other.options) == (config, options)
    async with client, other:
        pass
    given, _ = client_over()
    assert given.with_own_connections() is None, "nothing says how to make another transport"
    assert given.with_pool(Pool.LEADER_ELECTION).with_own_connections() is None


@pytest.mark.parametrize(
    ("user_agent", "manager"), [("me/1 (x)", "me"), ("me", "me"), ("/1", "deltaloop"), ("", "deltaloop")]
)
async def test_apply_has_default_manager_from_user_agent(user_agent: str, manager: str) -> None:
    transport = FakeTransport(json_answer(POD))
    config = ClientConfig(server="http://fake", user_agent=user_agent)
    await Client(config, transport=transport).apply(kinds.POD, POD)
    assert transport.requests[0].query == {"fieldManager": manager}


async def test_views_do_not_change_original_client() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD))
    await client.with_field_manager("other").create(kinds.POD, POD)
    await client.create(kinds.POD, POD)
    assert [dict(request.query) for request in transport.requests] == [{"fieldManager": "other"}, {}]
    with pytest.raises(InvalidArgumentError, check=having(argument="ClientOptions.field_manager")):
        client.with_field_manager("x" * 129)


async def test_two_write_checks_are_called_in_order() -> None:
    asked: list[str] = []
    client, _ = client_over(json_answer(POD))
    checked = client.with_write_check(lambda action: asked.append(f"1 {action}"))
    await checked.with_write_check(lambda action: asked.append(f"2 {action}")).create(kinds.POD, POD)
    path = "POST /api/v1/namespaces/n/pods"
    assert asked == [f"1 {path}", f"2 {path}"]


def test_client_has_config_and_options() -> None:
    client, _ = client_over()
    assert client.drops_managed_fields
    assert client.config.server == "http://fake"
    assert client.options == ClientOptions()
