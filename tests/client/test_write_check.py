"""A client with a write check: every verb that sends anything but a read asks it first; the verbs sort themselves."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from deltaloop import ObjectMeta, custom_resource, wait
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.client import Client, ClientConfig, Headers, HttpRequest, HttpResponse, StreamResponse
from deltaloop.errors import RequestTimeoutError, TransportError
from tests.client.fake_transport import After, FakeTransport, json_answer, pod, text_answer


class RefusedError(Exception):
    pass


def refuse(action: str) -> None:
    raise RefusedError(action)


LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": [pod("x")]}
DISCOVERED = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "verbs": ["get"]}],
}


class AnswersAll:
    """Answers whatever is asked, and notes the methods."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def request(self, request: HttpRequest) -> HttpResponse:
        self.methods.append(request.method)
        return json_answer(_answer(request))

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        self.methods.append(request.method)

        async def chunks() -> AsyncGenerator[bytes, None]:
            if "watch" in request.query:
                yield msgspec.json.encode({"type": "ADDED", "object": pod("x")}) + b"\n"
            else:
                yield msgspec.json.encode(_answer(request))

        yield StreamResponse(status=200, headers=Headers(), chunks=chunks())

    async def close(self) -> None:
        self.methods.append("close")


def _answer(request: HttpRequest) -> dict[str, Any]:
    if request.path in ("/api", "/apis"):
        return {"kind": "APIVersions", "versions": ["v1"]} if request.path == "/api" else {"groups": []}
    if request.path == "/api/v1":
        return DISCOVERED
    return LIST if request.path.endswith("/pods") and request.method in ("GET", "DELETE") else pod("x")


def change(fields: dict[str, Any]) -> None:
    fields["changed"] = True


class EditedSpec(msgspec.Struct):
    node: str | None = msgspec.field(name="nodeName", default=None)


@custom_resource(group="example.com", version="v1")
class Edited(msgspec.Struct, kw_only=True):
    metadata: ObjectMeta
    spec: EditedSpec = msgspec.field(default_factory=EditedSpec)


def moved(obj: Edited) -> None:
    obj.spec.node = "elsewhere"


HELD = {**pod("x"), "metadata": {**pod("x")["metadata"], "finalizers": ["f"]}}
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "add_finalizer": (("v1/Pod", Resource.from_dict(pod("x")), "f"), {}),
    "apply": (("v1/Pod", pod("x")), {}),
    "create": (("v1/Pod", pod("x")), {}),
    "create_or_update": (("v1/Pod", "x", change), {}),
    "create_subresource": (("v1/ServiceAccount", "x", "token", pod("x")), {}),
    "delete": (("v1/Pod", "x"), {}),
    "delete_collection": (("v1/Pod",), {"namespace": "default"}),
    "edit": ((Edited, "x", moved), {}),
    "iter_list": (("v1/Pod",), {}),
    "evict": (("x",), {}),
    "find": (("v1/Pod", "x"), {}),
    "get": (("v1/Pod", "x"), {}),
    "get_scale": (("apps/v1/Deployment", "x"), {}),
    "list": (("v1/Pod",), {}),
    "list_all": (("v1/Pod",), {}),
    "logs": (("x",), {}),
    "patch": (("v1/Pod", "x", {}), {}),
    "remove_finalizer": (("v1/Pod", Resource.from_dict(HELD), "f"), {}),
    "resource": (("pods",), {}),
    "resources": ((), {}),
    "scale": (("apps/v1/Deployment", "x", 3), {}),
    "update": (("v1/Pod", pod("x")), {}),
    "update_status": (("v1/Pod", pod("x")), {}),
    "wait_for": (("v1/Pod", "x", wait.created()), {}),
    "watch": (("v1/Pod",), {"options": ListOptions(resource_version="5")}),
}
WRITES = {
    *("add_finalizer", "apply", "create", "create_or_update", "create_subresource", "delete", "delete_collection"),
    *("edit", "evict", "patch", "remove_finalizer", "scale", "update", "update_status"),
}
NO_VERBS = {"close", "config", "drops_managed_fields", "namespace", "options", "statistics"}


def make(transport: Any) -> Client:
    return Client(ClientConfig(server="http://fake"), transport=transport)


async def call(client: Client, verb: str) -> None:
    """Call a verb and take all that it gives."""
    arguments, options = CALLS[verb]
    given = getattr(client, verb)(*arguments, **options)
    if inspect.isawaitable(given):
        await given
    elif hasattr(given, "__aenter__"):
        async with given as stream:
            async for _ in stream:
                break
    else:
        async for _ in given:
            pass


def test_all_public_verbs_are_covered() -> None:
    verbs = {name for name in dir(Client) if not name.startswith(("_", "with_"))} - NO_VERBS
    assert verbs == set(CALLS), "a new verb: add how it is called; whether it writes shows by what it sends"


@pytest.mark.parametrize("verb", CALLS)
async def test_write_check_applies_to_writing_verbs_only(verb: str) -> None:
    free = AnswersAll()
    await call(make(free), verb)
    assert free.methods, f"{verb} sent nothing: nothing is shown"
    writes = any(method != "GET" for method in free.methods)
    assert writes == (verb in WRITES)
    checked = AnswersAll()
    client = make(checked).with_write_check(refuse)
    if writes:
        with pytest.raises(RefusedError, match=r"^(POST|PUT|PATCH|DELETE) /api"):
            await call(client, verb)
        assert set(checked.methods) <= {"GET"}, "it was sent"
    else:
        await call(client, verb)
        assert checked.methods == free.methods


async def test_original_client_is_not_checked() -> None:
    transport = AnswersAll()
    client = make(transport)
    client.with_write_check(refuse)
    await client.create("v1/Pod", pod("x"))
    assert transport.methods == ["POST"]


def allow(_: str) -> None:
    pass


@pytest.mark.parametrize(
    ("view", "argument"),
    [("with_pool", "requests"), ("with_warnings", None), ("with_field_manager", "me"), ("with_write_check", allow)],
)
async def test_write_check_applies_to_views(view: str, argument: Any) -> None:
    transport = AnswersAll()
    client = getattr(make(transport).with_write_check(refuse), view)(argument)
    with pytest.raises(RefusedError):
        await client.create("v1/Pod", pod("x"))
    assert transport.methods == []


async def test_check_is_kept_with_separate_connections() -> None:
    client = Client(ClientConfig(server="http://127.0.0.1:9"))
    other = client.with_write_check(refuse).with_own_connections()
    assert other is not None
    async with client, other:
        with pytest.raises(RefusedError):
            await other.create("v1/Pod", pod("x"))


async def test_each_try_is_checked() -> None:
    asked: list[str] = []

    def once(action: str) -> None:
        asked.append(action)
        if len(asked) > 1:
            raise RefusedError(action)

    busy = text_answer("busy", status=429, headers=[("Retry-After", "1")])
    transport = FakeTransport(busy, json_answer(pod("x")))
    with pytest.raises(RefusedError):
        await make(transport).with_write_check(once).delete("v1/Pod", "x")
    assert asked == ["DELETE /api/v1/namespaces/default/pods/x"] * 2
    assert len(transport.requests) == 1


async def test_verb_raises_its_other_errors() -> None:
    late = After(0.0, RequestTimeoutError("late", method="POST", path="/"))
    with pytest.raises(TransportError):
        await make(FakeTransport(late)).with_write_check(allow).create("v1/Pod", pod("x"))
    assert isinstance(await make(AnswersAll()).with_write_check(allow).create("v1/Pod", pod("x")), Resource)
