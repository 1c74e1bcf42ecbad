"""Facts of a real server: asked once, kept in a file of one line each, and read by the tests of the embedded one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.target import Api


@asynccontextmanager
async def real_server() -> AsyncGenerator[Api]:
    """Start a real server, with a namespace for what is asked."""
    # Imported here: the conformance target takes the server's library along, which reading facts has no need of.
    from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
    from tests.conformance.target import RealTarget

    assets = find_assets()
    assert assets is not None, "no kube-apiserver: run `make -C lab kube`"
    with ControlPlane(assets) as server:
        async with RealTarget(server).open() as api:
            await api.post("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
            yield api


def write_facts(file: Path, facts: Mapping[str, object]) -> None:
    """Write facts by their names, a line each."""
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(fact, ensure_ascii=False)}"
        for name, fact in facts.items()
    ]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read_facts(file: Path) -> dict[str, Any]:
    """Read them."""
    facts: dict[str, Any] = json.loads(file.read_text())
    return facts
