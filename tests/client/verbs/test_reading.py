"""What the verbs that read promise beyond their request: memory, reading ahead, what is taken off, how a wait goes."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import ExpiredError, Status
from deltaloop.client import Client, ClientConfig, HttpResponse
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError, UnreadableItemsError
from deltaloop.errors import WaitTimeoutError
from deltaloop.wait import created
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, json_answer, page, pod
from tests.having import having


def client_over(*answers: HttpResponse | Exception | After | Stream) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport), transport


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def managed(name: str) -> dict[str, Any]:
    found = pod(name)
    found["metadata"]["managedFields"] = [{"manager": "m"}]
    return found


EXPIRED = HttpResponse(status=410, body=Status(code=410, reason="Expired", message="token").to_json())


@pytest.mark.parametrize("drop", [True, False])
async def test_managed_fields_of_old_server_are_removed(drop: bool) -> None:
    client, _ = client_over(page(managed("a")), Stream((line("ADDED", managed("a")),)))
    options = ListOptions(drop_managed_fields=drop)
    (listed,) = await client.list(kinds.POD, options=options)
    async with client.watch(kinds.POD, options=options) as events:
        seen = (await anext(events)).object
    for found in (listed, seen):
        assert ("managedFields" in found["metadata"]) == (not drop)


async def test_error_of_invalid_item_has_other_items() -> None:
    listed = json_answer({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [managed("a"), 5]})
    client, _ = client_over(listed, listed)
    for metadata_only in (False, True):
        with pytest.raises(UnreadableItemsError) as caught:
            await client.list("v1/Pod", metadata_only=metadata_only)
        (found,) = caught.value.page
        assert found.name == "a"


@pytest.mark.parametrize("page_buffer", [0, 1])
async def test_iteration_over_list_does_not_keep_items(page_buffer: int) -> None:
    pages = [page(pod(f"held-{number}"), continue_=f"{number}" if number < 29 else "") for number in range(30)]
    client, _ = client_over(*pages)
    async with aclosing(client.iter_list(kinds.POD, page_size=1, page_buffer=page_buffer)) as items:
        first = await anext(items)
        for _ in range(20):
            await anext(items)
        alone = Resource.from_dict(pod("alone"), kinds.POD)
        assert sys.getrefcount(first) == sys.getrefcount(alone), "somebody holds it"


async def test_iteration_raises_error_when_token_expires() -> None:
    client, transport = client_over(page(pod("a"), continue_="t"), EXPIRED)
    items = client.iter_list(kinds.POD, page_size=1)
    assert (await anext(items)).name == "a"
    with pytest.raises(ExpiredError):
        await anext(items)
    assert len(transport.requests) == 2


@pytest.mark.parametrize("page_buffer", [0, 1])
async def test_leaving_a_list_early_ends_its_task(page_buffer: int) -> None:
    client, transport = client_over(page(pod("a"), pod("b"), continue_="t"), After(60.0, page(pod("c"))))
    async with aclosing(client.iter_list(kinds.POD, page_buffer=page_buffer)) as items:
        async for _ in items:
            await asyncio.sleep(1.0)
            break
    assert len(asyncio.all_tasks()) == 1
    assert transport.open_streams == 0


async def test_default_page_size_and_read_ahead_of_list() -> None:
    client, transport = client_over(*(page(pod("a"), continue_=str(number)) for number in range(30)))
    async with aclosing(client.iter_list(kinds.POD)) as items:
        await anext(items)
        await asyncio.sleep(60.0)
        assert len(transport.requests) == 11
    assert {request.query["limit"] for request in transport.requests} == {"500"}
    client, transport = client_over(page(pod("a")))
    await client.list_all(kinds.POD)
    assert transport.requests[0].query == {"limit": "500"}


async def test_list_options_apply_to_iter_list() -> None:
    client, transport = client_over(page(pod("a")), page(pod("a")))
    options = ListOptions(label_selector="a=b")
    assert [item.name async for item in client.iter_list("v1/Pod", options=options, page_size=7)] == ["a"]
    await client.list_all(kinds.POD, options=options, page_size=7)
    for request in transport.requests:
        assert request.query == {"labelSelector": "a=b", "limit": "7"}


async def test_wait_requests_its_namespace_with_remaining_time() -> None:
    client, transport = client_over(
        After(5.0, page(version="7")), Stream((Pause(3.0), line("ADDED", pod("a", namespace="mine"))))
    )
    found = await client.wait_for(kinds.POD, "a", created(), timeout=20.0)
    assert found.name == "a"
    assert [request.timeout for request in transport.requests] == [20.0, 15.0]
    assert [request.path for request in transport.requests] == ["/api/v1/namespaces/mine/pods"] * 2
    assert transport.requests[1].query == {
        "fieldSelector": "metadata.name=a",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "15",
        "watch": "true",
    }


@pytest.mark.parametrize(("timeout", "limit"), [(None, 30.0), (2.5, 2.5)])
async def test_timeout_error_names_condition_and_duration(timeout: float | None, limit: float) -> None:
    client, transport = client_over(page(version="7"), Stream((Pause(1000.0),)))
    with pytest.raises(
        WaitTimeoutError, check=having(condition="creation", last_seen="the object does not exist")
    ) as caught:
        await client.wait_for(kinds.POD, "a", created(), timeout=timeout)
    assert asyncio.get_running_loop().time() == limit
    assert caught.value.condition in str(caught.value)
    assert str(caught.value).endswith(f"last seen: {caught.value.last_seen}")
    assert transport.open_streams == 0


def unreadable(*keys: str | None) -> ResourceList[Any]:
    return ResourceList(
        items=(1, 2),
        resource_version="7",
        unreadable=tuple(UnreadableItemError(f"item {key} is no object", key=key) for key in keys),
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("n/a",), "item n/a is no object"),
        (("n/a", None), r"item n/a is no object \(and 1 more items\)"),
        (("n/a", None, "c"), r"item n/a is no object \(and 2 more items\)"),
    ],
)
def test_unreadable_items_of_a_list_are_reported(keys: tuple[str | None, ...], message: str) -> None:
    listed = unreadable(*keys)
    error = UnreadableItemsError(listed)
    with pytest.raises(UnreadableItemsError, match=f"^{message}$"):
        raise error
    assert error.page is listed
    assert [each.key for each in listed.unreadable] == list(keys)
    assert (list(listed), len(listed)) == ([1, 2], 2)
    assert UnreadableItemError("x").key is None


def test_new_list_has_empty_fields() -> None:
    empty: ResourceList[Any] = ResourceList(items=())
    assert (empty.resource_version, empty.continue_, empty.remaining_item_count, empty.unreadable) == ("", "", None, ())
