"""``deltaloop apiserver``: the embedded API server as a program of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cli.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerCommand:
    """What the command was asked to do.

    Attributes:
        server: Options of the server.
        kubeconfig: Where to write a kubeconfig once the server listens; None writes none.
    """

    server: ServerOptions
    kubeconfig: Path | None = None


async def serve(command: ApiServerCommand, say: Callable[[str], None]) -> None:
    """Serve until cancelled; say one line when ready.

    The kubeconfig is written after the server listens and removed when it stops, so its presence means that the
    server can be used.

    Raises:
        DeltaloopError: If the port is in use, or the kubeconfig belongs to somebody else.
    """
    if command.kubeconfig is not None:
        check_may_write(command.kubeconfig)
    async with ApiServer(command.server) as server:
        if command.kubeconfig is None:
            say(f"deltaloop apiserver is ready at {server.url}")
            await asyncio.Event().wait()
            return
        write_kubeconfig(command.kubeconfig, server.kubeconfig())
        try:
            say(f"deltaloop apiserver is ready at {server.url}; use it with: export KUBECONFIG={command.kubeconfig}")
            await asyncio.Event().wait()
        finally:
            remove_kubeconfig(command.kubeconfig)
