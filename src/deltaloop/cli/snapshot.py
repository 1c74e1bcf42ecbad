"""``deltaloop snapshot``: write the objects that a program may read to a file, for plans without the cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag
from deltaloop.cli.load_controllers import TargetArgument, load_declared
from deltaloop.cli.option_flags import option_of
from deltaloop.cli.plan import StageProgress
from deltaloop.client.config import ClientConfig
from deltaloop.client.connecting import load_config
from deltaloop.planning.cluster import cluster_objects, reading_client
from deltaloop.planning.snapshot_file import write_snapshot
from deltaloop.runtime import Controller
from deltaloop.runtime.program.options import RunOptions
from deltaloop.webhooks.declaring import Webhook


def snapshot(
    target: TargetArgument,
    file: Annotated[Path, typer.Argument(help="File to write.")],
    *,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Keep the values of Secrets instead of placeholders.")
    ] = False,
    namespace: Annotated[str | None, option_of(RunOptions, "namespace")] = None,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
) -> None:
    """Write the objects that the controllers of a module may read to a file, for `deltaloop plan --from`.

    The command sends only lists to the cluster, and replaces values of Secrets by placeholders.
    """
    if not file.absolute().parent.is_dir():
        raise InvalidArgumentError(f"must be in an existing folder, got {file}.", argument="FILE")
    _, controllers, webhooks = load_declared(target)
    config = load_config(kubeconfig=kubeconfig, context=context or None)
    count = asyncio.run(_written(config, controllers, webhooks, file, with_secrets, namespace or None))
    typer.echo(f"{file}: {count} objects")


async def _written(
    config: ClientConfig,
    controllers: tuple[Controller, ...],
    webhooks: tuple[Webhook, ...],
    file: Path,
    with_secrets: bool,
    namespace: str | None,
) -> int:
    told = StageProgress(sys.stderr.isatty())
    async with reading_client(config) as client:
        found = cluster_objects(client, controllers, webhooks, namespace=namespace)
        count = await write_snapshot(file, found, with_secrets=with_secrets, progress=told)
    told.end()
    return count
