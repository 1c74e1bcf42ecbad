"""Lists and watches without managedFields: what is asked for; the objects come as the server sends them."""

from __future__ import annotations

import pytest

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.client.core.accept import list_accept, watch_accept
from tests.client.fake_transport import FakeTransport, Stream, page, pod


async def test_dropping_managed_fields_is_requested_in_accept_header() -> None:
    transport = FakeTransport(page(pod("a")), Stream((b"",)), page(pod("a")))
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    options = ListOptions(drop_managed_fields=True)
    await client.list(kinds.POD, options=options)
    async with client.watch(kinds.POD, options=options):
        pass
    await client.list(kinds.POD, options=options, metadata_only=True)
    asked = [request.headers["Accept"] for request in transport.requests]
    assert asked == [
        list_accept(metadata_only=False, drop_managed_fields=True),
        watch_accept(metadata_only=False, drop_managed_fields=True),
        list_accept(metadata_only=True, drop_managed_fields=True),
    ]
    assert "drop" not in "".join(str(request.query) for request in transport.requests)


@pytest.mark.real_time
async def test_embedded_server_drops_managed_fields() -> None:
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with ApiServer(options) as server, Client(ClientConfig(server=server.url)) as client:
        made = await client.create(kinds.CONFIG_MAP, {"metadata": {"name": "a"}}, namespace="default")
        asked = ListOptions(drop_managed_fields=True, resource_version="0", timeout_seconds=30)
        (found,) = await client.list(kinds.CONFIG_MAP, namespace="default", options=asked)
        assert found.metadata == made.metadata
        async with client.watch(kinds.CONFIG_MAP, namespace="default", options=asked) as events:
            assert (await anext(events)).object.metadata == made.metadata
