"""Run one example and check its result. The exit code is 1 if a step fails.

Steps that the cluster does not support are skipped. For example, a kube-apiserver alone has no garbage collector.

    python -m examples.run workqueue
    KUBECONFIG=FILE python -m examples.run provisioner      # on a real cluster, in a new namespace

Without KUBECONFIG, the example runs on an embedded API server.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import deltaloop as dl

NAMES = ("workqueue", "sample_controller", "provisioner", "replicator", "database")
LIMIT = 900.0


@dataclass(slots=True, kw_only=True)
class Scene:
    """Environment of an example.

    Attributes:
        client: Client of the cluster. Its namespace is the namespace of the example.
        kubeconfig: Kubeconfig of the embedded server, or None on a real cluster.
        show: Function that prints a line.
        objects: Number of objects to use. None means the default of the example.
        failed: Steps that failed.
        skipped: Steps that this cluster does not support.
    """

    client: dl.Client
    kubeconfig: Any
    show: Callable[[str], object] = print
    objects: int | None = None
    failed: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])

    @property
    def namespace(self) -> str:
        """Namespace of the example, which is deleted at the end."""
        return self.client.namespace

    def expect(self, succeeded: object, step: str) -> None:
        """Print whether a step succeeded, and record failures."""
        if succeeded:
            self.show(f"  ok   {step}")
        else:
            self.show(f"  FAIL {step}")
            self.failed.append(step)

    def skip(self, step: str, reason: str) -> None:
        """Print and record a step that this cluster does not support."""
        self.show(f"  --   {step}: skipped, {reason}")
        self.skipped.append(step)


async def until(condition: Callable[[], object], *, timeout: float, every: float = 0.02) -> bool:
    """Wait until the condition is true, and return whether it became true in time."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(every)
    return True


@asynccontextmanager
async def scene(*, objects: int | None = None, show: Callable[[str], object] = print) -> AsyncGenerator[Scene, None]:
    """Connect to the cluster of ``KUBECONFIG``, or to an embedded server, and create a namespace.

    Args:
        objects: Number of objects that the example uses.
        show: Function that prints a line.
    """
    namespace = f"deltaloop-example-{secrets.token_hex(4)}"
    given = os.environ.get("KUBECONFIG")
    async with AsyncExitStack() as stack:
        config: Any = None  # same search order as kubectl
        if given:
            show(f"on the cluster of {given}, in namespace {namespace}")
        else:
            from deltaloop.apiserver import ApiServer, ServerOptions

            server = await stack.enter_async_context(
                ApiServer(ServerOptions(controllers=frozenset({"gc", "namespace"})))
            )
            config = server.kubeconfig()
            show(f"on an embedded API server, in namespace {namespace}")
        client = await stack.enter_async_context(dl.connect(kubeconfig=config, namespace=namespace))
        await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": namespace}})
        try:
            yield Scene(client=client, kubeconfig=config, show=show, objects=objects)
        finally:
            await client.delete(dl.kinds.NAMESPACE, namespace)


async def run(name: str, *, objects: int | None = None, show: Callable[[str], object] = print) -> int:
    """Run an example; return the exit code."""
    program: Callable[[Scene], Awaitable[None]] = importlib.import_module(f"examples.show_{name}").show
    async with scene(objects=objects, show=show) as here:
        started_at = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT):
                await program(here)
        except TimeoutError:
            here.failed.append(f"the example did not end within {LIMIT:g} s")
        seconds = time.monotonic() - started_at
    if here.failed:
        show(f"{name}: failed steps: {'; '.join(here.failed)}")
        return 1
    skipped = f", skipped steps: {'; '.join(here.skipped)}" if here.skipped else ""
    show(f"{name}: completed in {seconds:.1f} s{skipped}")
    return 0


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Run one example and check its result.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--objects", type=int, help="number of objects (default: depends on the example)")
    arguments = parser.parse_args()
    dl.configure_logging(level="ERROR")
    try:
        code = asyncio.run(run(arguments.name, objects=arguments.objects))
    except dl.DeltaloopError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    raise SystemExit(code)


if __name__ == "__main__":
    main()
