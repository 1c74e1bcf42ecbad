"""What holds for every verb: where it goes, how long it may take, over which connections, who hears of warnings."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from deltaloop.api.errors import InvalidArgumentError, InvalidSelectorError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.selectors import LabelSelector
from deltaloop.client import (
    Client,
    ClientConfig,
    ClientOptions,
    DeleteOptions,
    Headers,
    HttpRequest,
    HttpResponse,
    Pool,
    ServerWarning,
    StreamResponse,
    WriteOptions,
)
from tests.client.fake_transport import pod
from tests.client.test_write_check import CALLS, DISCOVERED, LIST
from tests.having import having

WARNED = Headers([("Warning", '299 - "old"')])
STREAMS = {"watch", "logs"}
OF_THE_SERVER = {"resource", "resources"}
NAMED_RESOURCE = set(CALLS) - OF_THE_SERVER - {"edit", "evict", "logs"}
TAKE_WRITE_OPTIONS = {
    *(
        "add_finalizer",
        "apply",
        "create",
        "create_or_update",
        "create_subresource",
        "edit",
        "patch",
        "remove_finalizer",
    ),
    *("scale", "update", "update_status"),
}
TAKE_DELETE_OPTIONS = {"delete", "delete_collection", "evict"}


class AnswersAll:
    """Answers whatever is asked, with a warning, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def request(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return HttpResponse(status=200, headers=WARNED, body=msgspec.json.encode(answer(request)))

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        self.requests.append(request)

        async def chunks() -> AsyncGenerator[bytes, None]:
            if "watch" in request.query:
                yield msgspec.json.encode({"type": "ADDED", "object": pod("x")}) + b"\n"
            else:
                yield msgspec.json.encode(answer(request))

        yield StreamResponse(status=200, headers=WARNED, chunks=chunks())

    async def close(self) -> None:
        pass

    def verbs(self) -> list[HttpRequest]:
        """The requests but those of discovery."""
        return [request for request in self.requests if request.path not in ("/api", "/apis", "/api/v1")]


def answer(request: HttpRequest) -> Any:
    if request.path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if request.path == "/apis":
        return {"kind": "APIGroupList", "groups": []}
    if request.path == "/api/v1":
        return DISCOVERED
    return LIST if request.path.endswith("/pods") and request.method in ("GET", "DELETE") else pod("x")


async def call(client: Client, verb: str, **more: Any) -> None:
    """Call a verb with more keywords; what names a resource has it found by discovery."""
    arguments, keywords = CALLS[verb]
    if verb in NAMED_RESOURCE:
        arguments = ("pods", *arguments[1:])
    given = getattr(client, verb)(*arguments, **{**keywords, **more})
    if hasattr(given, "__aenter__"):
        async with given as stream:
            async for _ in stream:
                break
    elif hasattr(given, "__aiter__"):
        async for _ in given:
            pass
    else:
        await given


def make(transport: AnswersAll, **options: Any) -> Client:
    config = ClientConfig(server="http://fake", namespace="mine")
    return Client(config, transport=transport, options=ClientOptions(**options))


@pytest.mark.parametrize("verb", CALLS)
async def test_timeout_applies_to_every_request(verb: str) -> None:
    transport = AnswersAll()
    await call(make(transport), verb, timeout=3.0)
    assert len(transport.requests) >= (4 if verb in NAMED_RESOURCE else 1)
    assert {request.timeout for request in transport.requests} == {3.0}


@pytest.mark.parametrize("verb", CALLS)
async def test_default_timeout_is_of_configuration(verb: str) -> None:
    transport = AnswersAll()
    await call(make(transport), verb)
    assert {request.timeout for request in transport.requests} == {30.0}


@pytest.mark.parametrize("verb", sorted(set(CALLS) - OF_THE_SERVER))
async def test_given_namespace_is_requested(verb: str) -> None:
    transport = AnswersAll()
    await call(make(transport), verb, namespace="given")
    assert transport.verbs()
    for request in transport.verbs():
        assert request.path.startswith(
            "/apis/example.com/v1/namespaces/given/editeds/x" if verb == "edit" else "/api/v1/namespaces/given/pods"
        )


@pytest.mark.parametrize("verb", sorted(set(CALLS) - OF_THE_SERVER))
async def test_verbs_use_pool_of_client(verb: str) -> None:
    for pool in Pool:
        transport = AnswersAll()
        await call(make(transport).with_pool(pool), verb)
        pools = {request.pool for request in transport.verbs() if "watch" not in request.query}
        assert pools == (set() if verb == "watch" else {Pool.REQUESTS} if verb == "logs" else {pool})


@pytest.mark.parametrize("verb", sorted(set(CALLS) - OF_THE_SERVER))
async def test_warnings_of_every_verb_reach_the_handler(verb: str) -> None:
    transport = AnswersAll()
    seen: list[ServerWarning] = []
    await call(make(transport).with_warnings(seen.append), verb)
    assert seen == [ServerWarning("old", request.method, request.path) for request in transport.verbs()]
    of_client: list[ServerWarning] = []
    client = make(AnswersAll(), on_warning=of_client.append)
    await call(client, verb)
    assert of_client == seen
    await call(client.with_warnings(None), verb)
    assert of_client == seen, "the handler was taken away"


@pytest.mark.parametrize("verb", sorted(TAKE_WRITE_OPTIONS))
async def test_write_options_reach_every_write(verb: str) -> None:
    transport = AnswersAll()
    options = WriteOptions(dry_run=True, field_manager="me", field_validation="Strict")
    await call(make(transport), verb, options=options)
    (request,) = [each for each in transport.verbs() if each.method != "GET"]
    assert request.query == {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"}


@pytest.mark.parametrize("verb", sorted(TAKE_DELETE_OPTIONS))
async def test_delete_options_reach_every_delete(verb: str) -> None:
    transport = AnswersAll()
    options = DeleteOptions(uid="u")
    await call(make(transport), verb, options=options)
    (request,) = transport.verbs()
    assert request.body is not None
    sent = msgspec.json.decode(request.body)
    assert sent.get("deleteOptions", sent) == options.to_dict()


@pytest.mark.parametrize(
    ("verb", "method", "path"),
    [
        ("add_finalizer", "PATCH", "/x"),
        ("apply", "PATCH", "/x"),
        ("create", "POST", ""),
        ("create_subresource", "POST", "/x/token"),
        ("delete", "DELETE", "/x"),
        ("delete_collection", "DELETE", ""),
        ("iter_list", "GET", ""),
        ("evict", "POST", "/x/eviction"),
        ("find", "GET", "/x"),
        ("get", "GET", "/x"),
        ("get_scale", "GET", "/x/scale"),
        ("list", "GET", ""),
        ("list_all", "GET", ""),
        ("logs", "GET", "/x/log"),
        ("patch", "PATCH", "/x"),
        ("remove_finalizer", "PATCH", "/x"),
        ("scale", "PATCH", "/x/scale"),
        ("update", "PUT", "/x"),
        ("update_status", "PUT", "/x/status"),
        ("wait_for", "GET", ""),
        ("watch", "GET", ""),
    ],
)
async def test_request_of_each_verb(verb: str, method: str, path: str) -> None:
    transport = AnswersAll()
    await call(make(transport), verb, namespace="n")
    (request,) = transport.verbs()
    assert (request.method, request.path) == (method, f"/api/v1/namespaces/n/pods{path}")
    assert request.bounded == (verb in ("iter_list", "list", "list_all", "wait_for"))


@pytest.mark.parametrize("verb", CALLS)
async def test_misspelt_keyword_is_rejected_before_sending(verb: str) -> None:
    transport = AnswersAll()
    with pytest.raises(TypeError, match=r"(?i)unexpected keyword argument 'namspace'"):
        await call(make(transport), verb, namspace="n")
    assert transport.verbs() == []


@pytest.mark.parametrize("verb", ["delete_collection", "iter_list", "list", "list_all", "watch"])
async def test_label_selector_is_text_or_object_and_given_once(verb: str) -> None:
    parsed = LabelSelector.parse("a=b,c")
    for selector in ("a=b,c", parsed):
        transport = AnswersAll()
        await call(make(transport), verb, selector=selector)
        (request,) = transport.verbs()
        assert request.query["labelSelector"] == str(parsed)
        assert "resourceVersion" in request.query or verb != "watch", "options stay"
    options = "selection" if verb == "delete_collection" else "options"
    transport = AnswersAll()
    with pytest.raises(InvalidArgumentError, check=having(argument="selector")):
        await call(make(transport), verb, selector="a", **{options: ListOptions(label_selector="b")})
    with pytest.raises(InvalidSelectorError):
        await call(make(transport), verb, selector="a=(")
    assert transport.verbs() == []


@pytest.mark.parametrize("verb", ["apply", "patch"])
@pytest.mark.parametrize("subresource", ["status", "ephemeralcontainers"])
async def test_subresource_is_patched(verb: str, subresource: str) -> None:
    transport = AnswersAll()
    await call(make(transport), verb, subresource=subresource)
    assert transport.verbs()[0].path.endswith(f"/pods/x/{subresource}")
