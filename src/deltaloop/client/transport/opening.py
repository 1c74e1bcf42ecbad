"""Opens the way to a server: chooses what speaks HTTP, and imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from deltaloop.client.config import ClientConfig

if TYPE_CHECKING:
    from deltaloop.client.transport.http_transport import HttpTransport

Http: TypeAlias = Literal["aiohttp", "asyncio"]
"""What speaks HTTP: the library aiohttp, or connections of our own over asyncio."""


def open_transport(config: ClientConfig, http: Http = "aiohttp") -> HttpTransport:
    """Make a transport; nothing is sent yet.

    Args:
        config: Where the server is and who is asking.
        http: What speaks HTTP.

    Raises:
        ConfigError: If certificates or keys cannot be used.
    """
    if http == "asyncio":
        from deltaloop.client.transport.asyncio_transport import AsyncioTransport

        return AsyncioTransport(config)
    from deltaloop.client.transport.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(config)
