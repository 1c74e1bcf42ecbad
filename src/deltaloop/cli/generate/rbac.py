"""``deltaloop generate rbac``: roles for the controllers of a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.generate.webhooks import certificate_rights
from deltaloop.cli.load_controllers import load_declared, target_name
from deltaloop.cli.option_flags import option_of
from deltaloop.events import EventApi
from deltaloop.runtime import Controller
from deltaloop.runtime.core.access import roles
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.access import Program, rules_of
from deltaloop.runtime.program.access_file import read_access
from deltaloop.runtime.program.options import RunOptions
from deltaloop.webhooks import WebhookSet


def rbac(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:OBJECT]",
            help="Module or object, like for `deltaloop run`. Omit it with --from.",
            show_default=False,
        ),
    ] = "",
    *,
    recorded: Annotated[
        Path | None,
        typer.Option("--from", help="File that `deltaloop run --record-access FILE` wrote, instead of a module."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the roles. Defaults to the names of the controllers.")] = "",
    namespace: Annotated[str | None, option_of(RunOptions, "namespace")] = None,
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect", help="Add permissions for `run --leader-elect`. Requires --leader-election-namespace."
        ),
    ] = False,
    leader_election_namespace: Annotated[str, typer.Option(help="Namespace of the Lease, for leader election.")] = "",
    shards: Annotated[
        bool,
        typer.Option("--shards", help="Add permissions for `run --shards`. Requires --leader-election-namespace."),
    ] = False,
    event_api: Annotated[EventApi, option_of(RunOptions, "event_api")] = EventApi.CORE_V1,
    metrics_token_review: Annotated[
        bool, typer.Option("--metrics-token-review", help="Add permissions for `run --metrics-token-review`.")
    ] = False,
    webhooks_namespace: Annotated[
        str, typer.Option(help="Namespace of the Secret with the webhook certificates, for programs with webhooks.")
    ] = "",
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the read-only role for `deltaloop plan` and `deltaloop snapshot`.")
    ] = False,
) -> None:
    """Print the roles that controllers need, from their declarations or from a recorded run."""
    if (recorded is None) == (not target):
        raise typer.BadParameter("requires either MODULE or --from FILE. Use one of them.")
    program = Program(
        namespace=namespace or None,
        lease_namespace=leader_election_namespace or None,
        shards=shards,
        event_api=event_api,
        token_review=metrics_token_review,
    )
    if recorded is not None:
        if leader_elect or webhooks_namespace or plan or program != Program(namespace=program.namespace):
            raise typer.BadParameter(
                "--from can be combined only with --name and --namespace, because the file contains the other settings."
            )
        typer.echo(
            print_recorded(read_access(recorded), name=name or "deltaloop", namespace=program.namespace), nl=False
        )
        return
    if (leader_elect or shards) and not leader_election_namespace:
        raise typer.BadParameter(
            f"{'--shards' if shards else '--leader-elect'} requires --leader-election-namespace, because the role is "
            "for the Leases there."
        )
    if plan:
        from deltaloop.planning.reading import reading_rules

        _, declared, served = load_declared(target)
        rules = reading_rules(declared, served, namespace=program.namespace)
        role = f"{name or target_name(target)}-plan"
        typer.echo(write_yaml(list(roles(rules, name=role)), short_in_one_line=True), nl=False)
        return
    if webhooks_namespace:
        program = replace(program, certificates=certificate_rights(target, name=name, namespace=webhooks_namespace))
    controllers, hooks = load_declared(target)[1:]
    program = replace(program, reads=WebhookSet(hooks).reads)
    joined = "-".join(controller.name for controller in controllers) or target_name(target)
    typer.echo(print_roles(controllers, name=name or joined, program=program), nl=False)


def print_roles(controllers: Sequence[Controller], *, name: str, program: Program) -> str:
    """Return the roles as YAML, with a comment for each guessed plural."""
    rules, guessed = rules_of(controllers, program=program)
    comments = [f"# The plural of {kind} is a guess. Declare a ResourceType to set it.\n" for kind in guessed]
    documents: list[Mapping[str, Any]] = list(roles(rules, name=name))
    return "".join(comments) + write_yaml(documents, short_in_one_line=True)


def print_recorded(recorded: RecordedAccess, *, name: str, namespace: str | None) -> str:
    """Return the roles for a recorded run as YAML; namespace None creates ClusterRoles."""
    comment = "# Permissions that one run used. Permissions for other code paths are missing.\n"
    documents: list[Mapping[str, Any]] = list(roles(recorded.rules(), name=name, namespace=namespace))
    return comment + write_yaml(documents, short_in_one_line=True)
