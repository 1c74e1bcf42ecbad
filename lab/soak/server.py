"""The server in a process of its own: ``python -m lab.soak.server FOLDER PORT``, which takes orders."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from deltaloop.apiserver import ApiServer, Fault, ServerOptions
from lab.soak.counts import by_type, counts, disk
from lab.soak.orders import obey


async def main(folder: str, port: str) -> None:
    """Serve until standard input ends."""
    options = ServerOptions(
        data_dir=Path(folder),
        port=int(port),
        controllers=frozenset({"gc", "namespace"}),
        window=2000,
        bookmark_interval=20.0,
    )
    loop = asyncio.get_running_loop()
    async with ApiServer(options) as server:

        async def access() -> object:
            assert server.ca_pem is not None
            return {"url": server.url, "token": server.token.reveal(), "ca": server.ca_pem.decode()}

        async def certificate(user: str) -> object:
            made = server.issue_certificate(user, "system:masters")
            return {"certificate": made.certificate_pem.decode(), "key": made.key_pem.decode()}

        async def sample() -> object:
            return {
                **counts(loop),
                "disk": disk(Path(folder)),
                "revision": server.revision,
                "watches": server.faults.open_watches,
            }

        async def types() -> object:
            return by_type(loop)

        async def strike(**fields: Any) -> object:
            return server.faults.strike_watches(Fault(**fields))

        async def fault(**fields: Any) -> object:
            return server.faults.add(Fault(**fields))

        async def calm() -> object:
            server.faults.clear()
            return None

        async def compact() -> object:
            server.compact()
            return server.revision

        async def restart(seconds: float) -> object:
            await server.faults.restart(seconds)
            return None

        orders: list[Callable[..., Awaitable[object]]] = [
            access,
            certificate,
            sample,
            types,
            strike,
            fault,
            calm,
            compact,
            restart,
        ]
        await obey({order.__name__: order for order in orders})


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(main(*sys.argv[1:]))
