"""``deltaloop migrate-storage``: rewrite objects in the current storage version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from deltaloop.cli.connection import ContextFlag, KubeconfigFlag, make_client
from deltaloop.cli.generate.crd import load_definitions

if TYPE_CHECKING:
    from deltaloop.client import Client


def migrate_storage(
    definitions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEFINITION", help="Names of CustomResourceDefinitions, for example databases.example.com."
        ),
    ] = None,
    *,
    module: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="MODULE[:CLASS]",
            help="Module with classes of the definitions, like for `deltaloop generate crd`.",
        ),
    ] = "",
    concurrency: Annotated[int, typer.Option(help="Number of concurrent writes.", min=1)] = 8,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
) -> None:
    """Rewrite all objects of CustomResourceDefinitions in the storage version, and update status.storedVersions.

    After an interruption, run the same command again. The exit code is 1 if objects could not be written.
    """
    names = [*(definitions or ())]
    if module:
        names += [each["metadata"]["name"] for each in load_definitions(module)]
    if not names:
        raise typer.BadParameter("requires a DEFINITION or --from MODULE.")
    client = make_client(kubeconfig=kubeconfig, context=context, namespace=None)
    if not asyncio.run(migrate_all(client, names, concurrency=concurrency, show=typer.echo)):
        raise typer.Exit(1)


async def migrate_all(client: Client, names: list[str], *, concurrency: int, show: Callable[[str], object]) -> bool:
    """Migrate CRDs one after another, close the client, and return whether all were migrated."""
    from deltaloop.webhooks import StorageMigration, migrate_storage

    def progress(so_far: StorageMigration) -> None:
        left = "" if so_far.remaining is None else f", {so_far.remaining} left"
        show(f"{so_far.definition}: {so_far.written} written as {so_far.version}{left}")

    done = True
    async with client:
        for name in names:
            ended = await migrate_storage(client, name, concurrency=concurrency, on_progress=progress)
            others = ", ".join(ended.others)
            if not ended.done:
                done = False
                for failure in ended.failures:
                    show(f"{name}: {failure.key}: {failure.reason}")
                show(f"{name}: {ended.failed} objects could not be written, and may still be stored as {others}")
            elif others:
                show(f"{name}: all objects are stored as {ended.version}; you can remove {others} from the definition")
            else:
                show(f"{name}: all objects were already stored as {ended.version}")
                if ended.written:
                    show(f"{name}: updated the versions in managedFields of {ended.written} objects to {ended.version}")
    return done
