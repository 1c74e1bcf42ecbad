"""The commands that take a module with controllers; what they do is in modules beside it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deltaloop.cli import run_flags as flags


@flags.with_flags_of(flags.RunFlags)
def run(**values: Any) -> None:
    """Run the controllers of a module until SIGINT or SIGTERM; a second one ends at once."""
    asked = flags.RunFlags(**values)
    flags.configure(asked.log_format, asked.log_level)
    command = asked.command()
    from deltaloop.cli.run import run as run_controllers

    asyncio.run(run_controllers(command, typer.echo))


def crd(
    target: Annotated[
        str, typer.Argument(metavar="MODULE[:CLASS]", help="Classes that @dl.custom_resource decorates.")
    ],
    *,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Print nothing but where FILE differs, and what of that breaks stored objects.",
        ),
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions of a module's classes; with --check, exit 1 if a file has others."""
    from deltaloop.cli.crd import check_definitions, load_definitions, print_definitions

    definitions = load_definitions(target)
    if check is None:
        typer.echo(print_definitions(definitions), nl=False)
        return
    if lines := check_definitions(definitions, check, target):
        typer.echo("\n".join(lines), err=True)
        raise typer.Exit(1)


def webhooks(
    target: Annotated[str, typer.Argument(metavar="MODULE[:OBJECT]", help="As for `run`.")],
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the configurations; the module's by default.")] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="Where the program and its Service are; nobody asks about objects there.",
        ),
    ] = "",
    service: Annotated[str, typer.Option(metavar="NAME", help="Name of the Service; NAME-webhooks by default.")] = "",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of the Service.", min=1, max=65535)] = 443,
    url: Annotated[
        str, typer.Option(metavar="URL", help="In place of a Service: https://HOST:PORT, which the cluster can reach.")
    ] = "",
    ca_bundle: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Authorities of the certificate, as PEM, to put in.")
    ] = None,
) -> None:
    """Print what makes a cluster ask a module's webhooks: configurations, and the conversions of its definitions."""
    from deltaloop.cli.webhooks import address_of, print_registrations

    address = address_of(target, name=name, namespace=namespace, service=service, port=port, url=url, ca=ca_bundle)
    typer.echo(print_registrations(target, address, name=name, own_namespace=namespace), nl=False)


def rbac(
    target: Annotated[
        str, typer.Argument(metavar="[MODULE[:OBJECT]]", help="As for `run`; left out with --from.", show_default=False)
    ] = "",
    *,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="What `deltaloop run --record-access FILE` wrote, instead of a module."
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the roles; the controllers' by default.")] = "",
    namespace: flags.OnlyNamespaceFlag = "",
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="The program runs with --leader-elect; say where the Lease is, too.")
    ] = False,
    leader_election_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the Lease; empty without leader election.")
    ] = "",
    event_api: flags.EventApiFlag = "v1",
    metrics_token_review: Annotated[
        bool, typer.Option("--metrics-token-review", help="The program runs with --metrics-token-review.")
    ] = False,
    webhooks_namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Namespace of the Secret, where the program keeps the certificates of its webhooks."
        ),
    ] = "",
) -> None:
    """Print the roles that controllers need: for what they watch and declare to write, or for what a run did."""
    from deltaloop.cli.access_file import read_access
    from deltaloop.cli.load_controllers import load_declared
    from deltaloop.cli.rbac import print_recorded, print_roles
    from deltaloop.cli.webhooks import certificate_rights, program_name
    from deltaloop.runtime.program.access import Program
    from deltaloop.webhooks import WebhookSet

    if (recorded is None) == (not target):
        raise typer.BadParameter("give either a module, or --from FILE")
    program = Program(
        namespace=namespace or None,
        lease_namespace=leader_election_namespace or None,
        event_api=flags.event_api(event_api),
        token_review=metrics_token_review,
    )
    if recorded is not None:
        if leader_elect or webhooks_namespace or program != Program(namespace=program.namespace):
            raise typer.BadParameter(
                "--from knows what the run did; of the other flags it takes --name and --namespace"
            )
        typer.echo(
            print_recorded(read_access(recorded), name=name or "deltaloop", namespace=program.namespace), nl=False
        )
        return
    if leader_elect and not leader_election_namespace:
        raise typer.BadParameter("--leader-elect needs --leader-election-namespace: the role is for the Lease there")
    if webhooks_namespace:
        program = replace(program, certificates=certificate_rights(target, name=name, namespace=webhooks_namespace))
    controllers, hooks = load_declared(target)[1:]
    program = replace(program, reads=WebhookSet(hooks).reads)
    joined = "-".join(controller.name for controller in controllers) or program_name(target)
    typer.echo(print_roles(controllers, name=name or joined, program=program), nl=False)


def simulate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:SCENARIO]",
            help="An `async def scenario(world)` in a module or a file; else one is made of its classes.",
        ),
    ],
    *,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Without a scenario: run the module's controllers, and create, change and delete what these hold.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Decides all chance.")] = 0,
    runs: Annotated[int, typer.Option(metavar="NUMBER", help="Most runs.", min=1)] = 1000,
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="After these no further run begins.", min=0)
    ] = None,
    combinations: Annotated[bool, typer.Option(help="Go on with two and three faults at once, after one each.")] = True,
    faults: Annotated[
        str | None,
        typer.Option(metavar="KINDS", help="Try only these, such as crash-before,stale,order."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="FAULTS", help="Make this run only, with its log, as `again` says."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="text, json, or github (annotations for its log).")
    ] = "text",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that tells what was found.")] = None,
    write_test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a test for each failure, which makes its run again.")
    ] = None,
) -> None:
    """Run a scenario with crashes, lost answers and refusals at every write; exit code 1 if any changes its end."""
    import os

    from deltaloop.cli import simulate as command

    if output not in ("text", "json", "github"):
        raise typer.BadParameter(f"--output {output!r} is not text, json or github")
    if manifests and write_test is not None:
        raise typer.BadParameter("--write-test needs a scenario that a test can import, and --manifests makes one")
    for file in (html, write_test):
        if file is not None and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"{file}: there is no folder {file.parent}")
    command.with_fixed_hash_seed(os.environ)
    from deltaloop.simulation import SimulationOptions, parse_replay
    from deltaloop.simulation.core.schedules import ALL_KINDS, parse_kinds

    kinds = ALL_KINDS if faults is None else parse_kinds(faults)
    said, schedule = (None, None) if replay is None else parse_replay(replay)
    seed = seed if said is None else said
    options = SimulationOptions(seed=seed, runs=runs, seconds=seconds, combinations=combinations, faults=kinds)
    telling = command.Telling(output=output, html=html, test=write_test)
    if manifests:
        scenario = command.scenario_of(target, manifests)
    else:
        scenario = command.load_scenario(target, may_be_made=write_test is None)  # a test has to import it
    if not command.simulate(scenario, options, schedule, typer.echo, telling):
        raise typer.Exit(1)


def explain(
    obj: Annotated[
        str, typer.Argument(metavar="[KIND/]NAME", help="Such as `foo/web`; without a kind, one that is reconciled.")
    ],
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Of the object.")] = "default",
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Health server of the running controllers.")
    ] = flags.DEFAULT_HEALTH,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> None:
    """Ask running controllers why an object was reconciled lately, and what they wrote; values are never shown."""
    import json

    from deltaloop.cli.explain import ask, lines, standby_note

    kind, _, name = obj.rpartition("/")
    if not name:
        raise typer.BadParameter(f"{obj!r} names no object; write KIND/NAME or NAME")
    if output not in ("text", "json"):
        raise typer.BadParameter(f"--output {output!r} is not text or json")
    found, standby_of = ask(address, kind=kind, namespace=namespace, name=name)
    if standby_of is not None:
        typer.echo(f"note: {standby_note(standby_of)}", err=True)
    if not found:
        typer.echo(
            f"error: nothing is known of {obj} in namespace {namespace}: it was not reconciled lately, or is named"
            " otherwise (KIND/NAME also finds what triggered a reconcile, or was written by one)",
            err=True,
        )
        raise typer.Exit(1)
    if output == "json":
        typer.echo(json.dumps(found, indent=1))
        return
    for line in lines(found):
        typer.echo(line)
