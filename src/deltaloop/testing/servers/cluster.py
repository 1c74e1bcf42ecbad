"""Cluster of a test, embedded or real, with a namespace for the test."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast, final
from urllib.parse import urlsplit

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.apiserver import ServerOptions
from deltaloop.apiserver.embedding import CLUSTER_CONTROLLERS
from deltaloop.client import Client

_PATHS: Final = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}
_LONGEST_STEM: Final = 40
_CLOSES_WITHIN: Final = 5.0


@final
@dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster of a test.

    Attributes:
        kubeconfig: Kubeconfig as a mapping, with absolute paths; the current context is used.
        embedded: Whether it is the embedded server; tests must leave no objects behind on other clusters.
        shared: Whether other tests use it as well, so each test must stay in its namespace.
    """

    kubeconfig: Mapping[str, Any] = field(repr=False)
    embedded: bool
    shared: bool

    @property
    def server(self) -> str:
        """URL of the server."""
        context = _named(self.kubeconfig, "contexts", str(self.kubeconfig.get("current-context", "")))
        cluster = _named(self.kubeconfig, "clusters", str(context["context"].get("cluster", "")))
        return str(cluster["cluster"].get("server", ""))

    def in_namespace(self, namespace: str) -> dict[str, Any]:
        """Return the kubeconfig with a different default namespace."""
        current = self.kubeconfig.get("current-context")
        contexts = [
            {**entry, "context": {**entry["context"], "namespace": namespace}} if entry["name"] == current else entry
            for entry in cast("list[dict[str, Any]]", self.kubeconfig["contexts"])
        ]
        return {**self.kubeconfig, "contexts": contexts}

    def with_server_name(self) -> dict[str, Any]:
        """Return the kubeconfig with the server's host as ``tls-server-name``, for access through a relay."""
        clusters: list[dict[str, Any]] = []
        for entry in cast("list[dict[str, Any]]", self.kubeconfig["clusters"]):
            found = urlsplit(str(entry["cluster"].get("server", "")))
            name = {"tls-server-name": found.hostname} if found.scheme == "https" else {}
            clusters.append({**entry, "cluster": {**name, **entry["cluster"]}})
        return {**self.kubeconfig, "clusters": clusters}


def default_server_options() -> ServerOptions:
    """Return the default options of a test's server: plain HTTP, and clean-up controllers."""
    return ServerOptions(insecure_http=True, controllers=CLUSTER_CONTROLLERS)


def real_cluster(path: str, context: str | None) -> Cluster:
    """Read a kubeconfig file and choose a context, or raise InvalidArgumentError."""
    file = Path(path).expanduser().absolute()
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(
            f"must be readable, got {file}: {error.strerror}.", argument="--deltaloop-kubeconfig"
        ) from None
    if not isinstance(content, dict):
        raise InvalidArgumentError(f"must be a kubeconfig, got {file}.", argument="--deltaloop-kubeconfig")
    config = cast("dict[str, Any]", content)
    current = context or str(config.get("current-context", ""))
    _named(config, "contexts", current)
    for section, (part, names) in _PATHS.items():
        for entry in cast("list[dict[str, Any]]", config.get(section) or []):
            inner = cast("dict[str, Any]", entry.get(part) or {})
            inner.update({name: str(file.parent / str(inner[name])) for name in names if inner.get(name)})
            plugin = cast("dict[str, Any]", inner.get("exec") or {})
            if os.sep in str(plugin.get("command", "")):  # a bare name is searched in PATH
                plugin["command"] = str(file.parent / str(plugin["command"]))
    return Cluster({**config, "current-context": current}, embedded=False, shared=True)


def _named(config: Mapping[str, Any], section: str, name: str) -> dict[str, Any]:
    entries = cast("list[dict[str, Any]]", config.get(section) or [])
    for entry in entries:
        if entry.get("name") == name:
            return entry
    known = ", ".join(repr(entry.get("name")) for entry in entries) or "none"
    raise InvalidArgumentError(f"must be one of {known}, got {name!r}.", argument=section)


def namespace_for(test: str) -> str:
    """Return a unique namespace that contains the name of the test."""
    stem = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST_STEM].strip("-")
    return f"{stem or 'test'}-{secrets.token_hex(4)}"


@asynccontextmanager
async def own_namespace(client: Client, name: str, *, keep: bool) -> AsyncGenerator[str, None]:
    """Create a namespace, and delete it at the end without waiting, unless ``keep``; then close the client."""
    async with client:
        await client.create(kinds.NAMESPACE, {"metadata": {"name": name}})
        try:
            yield name
        finally:
            if not keep:
                await client.delete(kinds.NAMESPACE, name)


@asynccontextmanager
async def closing_in_time(client: Client) -> AsyncGenerator[Client, None]:
    """Close a client at the end of the block, even if one of its connections never ends."""
    try:
        yield client
    finally:
        await close_in_time(client.close(), _CLOSES_WITHIN)


async def close_in_time(closing: Coroutine[Any, Any, None], seconds: float) -> None:
    """Wait some seconds until a resource is closed, and then cancel; cut connections' protocols are not notified."""
    task = asyncio.ensure_future(closing)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        await task
        return
    task.cancel()
    await asyncio.wait({task}, timeout=seconds)


def write_kubeconfig(path: Path, config: Mapping[str, Any]) -> None:
    """Write a kubeconfig file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(write_yaml([dict(config)]))
