"""The commands that make a program (``new``) and what surrounds it (``package``)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from deltaloop.cli import run_flags as flags

T = TypeVar("T")


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the project, such as greeter or paint-operator.")],
    *,
    kind: Annotated[str, typer.Option(metavar="KIND", help="Of its objects; what the name says by default.")] = "",
    group: Annotated[
        str, typer.Option(metavar="GROUP", help="API group of the kind: a domain of yours.")
    ] = "example.com",
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where it goes; a folder of its name by default.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A wheel of deltaloop to install from: it is copied there.")
    ] = None,
) -> None:
    """Write a new project: a kind as a class, its controller, tests, chart, Containerfile, and a file for CI."""
    from deltaloop.cli.project.core.naming import ProjectNames
    from deltaloop.cli.project.making import make_project

    where = folder if folder is not None else Path(name)
    for path in make_project(ProjectNames.of(name, kind=kind, group=group), where, wheel=wheel):
        typer.echo(where / path)


def package(
    target: Annotated[str, typer.Argument(metavar="MODULE[:OBJECT]", help="As for `run`; kinds of its classes, too.")],
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the program. [default: the module's]")] = "",
    version: Annotated[str, typer.Option(metavar="VERSION", help="Of the program.")] = "0.1.0",
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="What runs it: NAME:VERSION by default; without a tag, :VERSION.")
    ] = "",
    install_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Where it runs; a namespace of its name by default.")
    ] = "",
    namespace: flags.OnlyNamespaceFlag = "",
    event_api: flags.EventApiFlag = "v1",
    crd: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Definitions of its kinds that no class makes. Repeatable."),
    ] = None,
    service_monitor: Annotated[
        bool, typer.Option("--service-monitor", help="Tell Prometheus' operator of it.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write manifests here; printed by default.")
    ] = None,
    helm: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a Helm chart here; namespaces are the release's.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say what differs, with exit code 1 if something does.")
    ] = False,
) -> None:
    """Write what a cluster needs to run a module's controllers: definitions, roles, a Deployment and its company."""
    from deltaloop.cli.packaging import declared, files
    from deltaloop.cli.packaging.core.changes import changes

    if helm is not None and (output is not None or install_namespace):
        raise typer.BadParameter("--helm makes a chart, of which neither --output nor --install-namespace is asked")
    if check and helm is None and output is None:
        raise typer.BadParameter("--check needs --output FILE or --helm FOLDER: what is to be checked")
    command = declared.PackageCommand(
        target=target,
        name=name,
        version=version,
        image=image,
        install_namespace=install_namespace,
        namespace=namespace or None,
        event_api=flags.event_api(event_api),
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
        typer.echo("the same command without --check writes it anew", err=True)
        raise typer.Exit(1)


def _below(folder: Path, texts: dict[str, T]) -> dict[str, T]:
    """Return texts by the paths that people know them by."""
    return {str(folder / path): text for path, text in texts.items()}
