"""``deltaloop generate types``: stubs of custom resources for type checkers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltaloop.cli.connection import ContextFlag, KubeconfigFlag, make_client

if TYPE_CHECKING:
    from deltaloop.client import Client


def types(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|GROUP", help="File with CRDs, or API group on the server, for example cert-manager.io."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the modules.")] = Path(),
    check: Annotated[
        bool, typer.Option("--check", help="Write no files, and exit with code 1 if a file would change.")
    ] = False,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
) -> None:
    """Write the types of custom resources.

    For each API version, this is a module with a constant for each kind, and its stub for type checkers.
    """
    from deltaloop.schemas.type_stubs import module_text, modules

    path = Path(source)
    if path.exists():
        found = _in_file(path)
    else:
        found = asyncio.run(of_group(make_client(kubeconfig=kubeconfig, context=context, namespace=None), source))
    if not found:
        raise typer.BadParameter(f"{source} has no CustomResourceDefinition, as a file or as a group on the server")
    wanted: dict[Path, str] = {}
    for module, constants in modules(found):
        wanted[output / f"{module.name}.py"] = constants
        wanted[output / f"{module.name}.pyi"] = module_text(module, package="deltaloop.types")
    for path, text in wanted.items():
        compile(text, str(path), "exec", dont_inherit=True)  # never write a module with a syntax error
    other = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    if not check:
        output.mkdir(parents=True, exist_ok=True)
        for path in other:
            path.write_text(wanted[path], encoding="utf-8")
    for path in other:
        typer.echo(f"{path}{' differs' if check else ''}")
    raise typer.Exit(1 if check and other else 0)


def _in_file(path: Path) -> list[dict[str, Any]]:
    from deltaloop.api.json_values import items, mapping
    from deltaloop.api.yaml_reader import read_yaml_documents

    found: list[dict[str, Any]] = []
    for document in read_yaml_documents(path.read_bytes(), source=str(path)):
        fields = mapping(document)
        each = items(fields.get("items")) if fields.get("kind") == "List" else [fields]
        found += [mapping(one) for one in each if mapping(one).get("kind") == "CustomResourceDefinition"]
    return found


async def of_group(client: Client, group: str) -> list[dict[str, Any]]:
    """Return a group's CRDs on the server, and close the client."""
    async with client:
        found = await client.list_all("apiextensions.k8s.io/v1/CustomResourceDefinition")
    return [each.to_dict() for each in found if each["spec"]["group"] == group]
