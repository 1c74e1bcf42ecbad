"""Runs one example to its end and says what it did; the exit code is 1 if something did not happen.

What a cluster has no means for (an API server alone collects no garbage) is named, and is no failure.

    python -m examples.run workqueue
    KUBECONFIG=FILE python -m examples.run provisioner      # on a real cluster, in a namespace of its own

Without KUBECONFIG an embedded API server is started for it.
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
    """What an example has to work with.

    Attributes:
        client: Client of the cluster, whose namespace is the example's own.
        kubeconfig: Of the embedded server; None on a real cluster, which is the environment's.
        show: Prints a line.
        objects: How many objects to use; None is the example's own number.
        missing: What did not happen; the example adds to it.
        not_shown: What this cluster cannot show, and why.
    """

    client: dl.Client
    kubeconfig: Any
    show: Callable[[str], object] = print
    objects: int | None = None
    missing: list[str] = field(default_factory=list[str])
    not_shown: list[str] = field(default_factory=list[str])

    @property
    def namespace(self) -> str:
        """The example's own namespace, which is removed at the end."""
        return self.client.namespace

    def expect(self, holds: object, what: str) -> None:
        """Say what happened, or note that it did not."""
        if holds:
            self.show(f"  ok   {what}")
        else:
            self.show(f"  FAIL {what}")
            self.missing.append(what)

    def cannot_show(self, what: str, why: str) -> None:
        """Say what this cluster has no means for; that is no failure of the example, and no success either."""
        self.show(f"  --   {what}: not shown here, {why}")
        self.not_shown.append(what)


async def until(condition: Callable[[], object], *, timeout: float, every: float = 0.02) -> bool:
    """Wait until something holds; False if it did not in time."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(every)
    return True


@asynccontextmanager
async def scene(*, objects: int | None = None, show: Callable[[str], object] = print) -> AsyncGenerator[Scene, None]:
    """Connect to the cluster that ``KUBECONFIG`` names, or to an embedded one, and make a namespace there.

    Args:
        objects: How many objects the example is to use.
        show: Prints a line.
    """
    namespace = f"deltaloop-example-{secrets.token_hex(4)}"
    given = os.environ.get("KUBECONFIG")
    async with AsyncExitStack() as stack:
        config: Any = None  # is looked for where kubectl does
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
            here.missing.append(f"it did not end within {LIMIT:g} s")
        seconds = time.monotonic() - started_at
    if here.missing:
        show(f"{name}: did not happen: {'; '.join(here.missing)}")
        return 1
    if here.not_shown:
        not_shown = "; ".join(here.not_shown)
        show(f"{name}: everything happened that can happen here, in {seconds:.1f} s; not shown: {not_shown}")
        return 0
    show(f"{name}: everything happened, in {seconds:.1f} s")
    return 0


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Run one example to its end.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--objects", type=int, help="how many objects; the example's own number by default")
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
