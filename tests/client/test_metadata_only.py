"""Lists and watches of metadata: what is asked for, and what comes, whoever answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import BadRequestError
from deltaloop.apiserver import ServerOptions
from deltaloop.client import Client, ClientConfig, HttpResponse
from deltaloop.client.verbs.resource_list import UnreadableItemsError
from tests.client.fake_transport import FakeTransport, Stream, collect, page, pod
from tests.servers import api_server

LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
WATCH = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
KEYS = {"kind", "apiVersion", "metadata"}


def client_over(*answers: HttpResponse | Stream) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


async def test_full_objects_of_old_server_are_reduced_to_metadata() -> None:
    whole = pod("a") | {"spec": {"nodeName": "n"}}
    client, transport = client_over(page(whole, continue_="more"), Stream((b"",)))
    found = await client.list(kinds.POD, metadata_only=True)
    assert (found.resource_version, found.continue_) == ("10", "more")
    assert [set(obj) for obj in found] == [KEYS]
    assert transport.requests[0].headers == {"Accept": LIST}


async def test_events_of_old_server_are_reduced_to_metadata() -> None:
    lines: list[dict[str, Any]] = [
        {"type": "ADDED", "object": pod("a") | {"spec": {}}},
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}, "spec": {}}},
    ]
    client, transport = client_over(Stream(tuple(json.dumps(line).encode() + b"\n" for line in lines)))
    async with client.watch(kinds.POD, options=ListOptions(timeout_seconds=60), metadata_only=True) as events:
        found = await collect(events)
    assert [set(event.object) for event in found] == [KEYS, KEYS]
    assert found[1].object.resource_version == "9"
    assert transport.requests[0].headers == {"Accept": WATCH}


async def test_without_metadata_only_objects_are_unchanged() -> None:
    client, transport = client_over(page(pod("a") | {"spec": {}}), Stream((b"",)))
    assert [set(obj) for obj in await client.list(kinds.POD)] == [KEYS | {"spec"}]
    async with client.watch(kinds.POD):
        pass
    assert [request.headers["Accept"] for request in transport.requests] == ["application/json"] * 2


async def test_metadata_only_ignores_model_and_names_invalid_items() -> None:
    typed = ResourceType[dict[str, object]]("", "v1", "Pod", "pods", model=dict[str, object])
    client, _ = client_over(page(pod("a") | {"spec": {}}, {"metadata": 7}))
    with pytest.raises(UnreadableItemsError, match="item 1 of a list") as caught:
        await client.list(typed, metadata_only=True)
    assert [set(obj) for obj in caught.value.page] == [KEYS]


@pytest.mark.real_time
async def test_embedded_server_sends_only_metadata() -> None:
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with api_server(options) as server, Client(ClientConfig(server=server.url)) as client:
        config_map: dict[str, Any] = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v" * 1000}}
        made = await client.create(kinds.CONFIG_MAP, config_map, namespace="default")
        found = await client.list("ConfigMap", namespace="default", metadata_only=True)
        (only,) = found
        assert set(only) == KEYS
        assert (only.metadata, only.annotations, only.creation_timestamp) == (
            made.metadata,
            made.annotations,
            made.creation_timestamp,
        )
        assert len(only.raw) < 500
        streamed = ListOptions(
            resource_version_match="NotOlderThan",
            send_initial_events=True,
            allow_watch_bookmarks=True,
            timeout_seconds=30,
        )
        async with client.watch(kinds.CONFIG_MAP, namespace="default", options=streamed, metadata_only=True) as events:
            assert (await anext(events)).object == only
            assert (await anext(events)).ends_initial_events
            await client.patch(kinds.CONFIG_MAP, "a", {"data": {"k": "w"}}, namespace="default")
            changed = (await anext(events)).object
            assert set(changed) == KEYS
            assert changed.resource_version > only.resource_version
            assert events.last_byte_at > 0
        with pytest.raises(BadRequestError):
            await client.update(kinds.CONFIG_MAP, only)
