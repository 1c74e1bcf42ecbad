"""``deltaloop package``: write manifests or a Helm chart of a program."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from deltaloop.cli.option_flags import option_of
from deltaloop.cli.packaging import declared, files
from deltaloop.cli.packaging.core.changes import changes
from deltaloop.events import EventApi
from deltaloop.runtime.program.options import RunOptions

T = TypeVar("T")


def package(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:OBJECT]", help="Module or object, as for `run`. Definitions are made of its classes."
        ),
    ],
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the program. By default the name of the module.")
    ] = "",
    version: Annotated[str, typer.Option(metavar="VERSION", help="Version of the program.")] = "0.1.0",
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Container image. By default NAME:VERSION; the default tag is VERSION.")
    ] = "",
    install_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the program. By default NAME.")
    ] = "",
    namespace: Annotated[str | None, option_of(RunOptions, "namespace")] = None,
    event_api: Annotated[EventApi, option_of(RunOptions, "event_api")] = EventApi.CORE_V1,
    crd: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="CRDs of its kinds that have no class. Repeatable."),
    ] = None,
    service_monitor: Annotated[bool, typer.Option("--service-monitor", help="Also create a ServiceMonitor.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File for the manifests. By default they are printed."),
    ] = None,
    helm: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder for a Helm chart instead of manifests; the release decides the namespace."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing, print the differences; exit code 1 if there are any.")
    ] = False,
) -> None:
    """Generate all manifests of a program: CRDs, RBAC, a Deployment and related objects, or a Helm chart."""
    if helm is not None and (output is not None or install_namespace):
        raise typer.BadParameter("--helm cannot be combined with --output or --install-namespace. Use one of them.")
    if check and helm is None and output is None:
        raise typer.BadParameter("--check requires --output FILE or --helm FOLDER.")
    command = declared.PackageCommand(
        target=target,
        name=name,
        version=version,
        image=image,
        install_namespace=install_namespace,
        namespace=namespace or None,
        event_api=event_api,
        definitions=tuple(crd or ()),
        service_monitor=service_monitor,
    )
    program = declared.declared_program(command)
    for note in program.notes:
        typer.echo(f"note: {note}", err=True)
    if helm is not None:
        folder, texts = helm, program.chart(partial(files.written, helm))
    elif output is not None:
        folder, texts = output.parent, {output.name: program.manifests()}
    else:
        typer.echo(program.manifests(), nl=False)
        return
    if not check:
        files.write(folder, texts)
        return
    there = files.written(folder, texts)
    if lines := changes(_below(folder, there), _below(folder, texts), program.definitions):
        typer.echo("\n".join(lines), err=True)
        typer.echo("the same command without --check updates it", err=True)
        raise typer.Exit(1)


def _below(folder: Path, texts: dict[str, T]) -> dict[str, T]:
    """Return texts by the paths that people know them by."""
    return {str(folder / path): text for path, text in texts.items()}
