"""Has the tests of a module run over each of the transports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltaloop.client import AiohttpTransport, AsyncioTransport, ClientConfig
from deltaloop.client import client as client_module
from deltaloop.client.transport.http_transport import HttpTransport

TRANSPORTS: dict[str, Callable[[ClientConfig], HttpTransport]] = {
    "aiohttp": AiohttpTransport,
    "asyncio": AsyncioTransport,
}

_chosen = {"http": "aiohttp"}


def open_transport(config: ClientConfig, http: str = "") -> HttpTransport:
    """Make the transport that the test is about; it takes the place of the client's own choice."""
    del http
    return TRANSPORTS[_chosen["http"]](config)


@pytest.fixture(params=list(TRANSPORTS))
def each_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test over each transport, clients included."""
    name: str = request.param
    monkeypatch.setattr(client_module, "open_transport", open_transport)
    monkeypatch.setitem(_chosen, "http", name)
    return name
