"""``deltaloop package``: write the manifests or a Helm chart of a program."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from deltaloop.cli.load_controllers import TargetArgument
from deltaloop.cli.option_flags import values_of, with_flags_of
from deltaloop.cli.packaging import declared, files
from deltaloop.cli.packaging.core.changes import changes

T = TypeVar("T")


@with_flags_of(declared.PackageCommand)
def package(
    target: TargetArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the manifests. The manifests are printed by default."),
    ] = None,
    helm: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder for a Helm chart instead of manifests. The release determines the namespace."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print the differences to the existing files instead of writing, and exit with code 1 if any.",
        ),
    ] = False,
    **flags: Any,
) -> None:
    """Generate CRDs, RBAC, a Deployment and related objects of a program, as manifests or as a Helm chart."""
    if helm is not None and (output is not None or flags["install_namespace"]):
        raise typer.BadParameter("--helm cannot be combined with --output or --install-namespace. Use one of them.")
    if check and helm is None and output is None:
        raise typer.BadParameter("--check requires --output FILE or --helm FOLDER.")
    command = declared.PackageCommand(target=target, **values_of(flags))
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
        typer.echo("Run the command without --check to update the files.", err=True)
        raise typer.Exit(1)


def _below(folder: Path, texts: dict[str, T]) -> dict[str, T]:
    return {str(folder / path): text for path, text in texts.items()}
