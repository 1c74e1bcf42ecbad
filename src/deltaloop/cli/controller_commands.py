"""The commands that take a module with controllers; what they do is in ``run.py``, ``rbac.py`` and ``explain.py``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deltaloop.api.logs import configure_logging
from deltaloop.cli import run_flags as flags
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag

if TYPE_CHECKING:
    from deltaloop.events import EventApi


def run(
    target: flags.TargetArgument,
    *,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    namespace: flags.OnlyNamespaceFlag = "",
    embedded: flags.EmbeddedFlag = False,
    load: flags.LoadFlag = None,
    write_kubeconfig: flags.WriteKubeconfigFlag = None,
    leader_elect: flags.LeaderElectFlag = False,
    leader_election_id: flags.LeaseNameFlag = "",
    leader_election_namespace: flags.LeaseNamespaceFlag = "",
    identity: flags.IdentityFlag = "",
    lease_duration: flags.LeaseDurationFlag = 15.0,
    renew_deadline: flags.RenewDeadlineFlag = 10.0,
    retry_period: flags.RetryPeriodFlag = 2.0,
    event_api: flags.EventApiFlag = "v1",
    metrics_bind_address: flags.MetricsAddressFlag = "",
    health_probe_bind_address: flags.HealthAddressFlag = flags.DEFAULT_HEALTH,
    metrics_cert: flags.MetricsCertFlag = None,
    metrics_key: flags.MetricsKeyFlag = None,
    metrics_token_review: flags.TokenReviewFlag = False,
    drain_timeout: flags.DrainTimeoutFlag = 20.0,
    shutdown_timeout: flags.ShutdownTimeoutFlag = 30.0,
    preflight: flags.PreflightFlag = True,
    record_access: flags.RecordAccessFlag = None,
    log_format: flags.LogFormatFlag = "text",
    log_level: flags.LogLevelFlag = "INFO",
) -> None:
    """Run the controllers of a module until SIGINT or SIGTERM; a second one ends at once."""
    from deltaloop.cli.load_controllers import load_controllers
    from deltaloop.cli.run import Cluster, LeaderElection, RunCommand
    from deltaloop.cli.run import run as run_controllers
    from deltaloop.leaderelection import LeaderElectionConfig
    from deltaloop.runtime.health_server import Listen

    _configure(log_format, log_level)
    try:
        cluster = Cluster(
            kubeconfig=kubeconfig,
            context=context,
            embedded=embedded,
            load=tuple(load or ()),
            write_kubeconfig=write_kubeconfig,
        )
        config = LeaderElectionConfig(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        metrics = Listen.parse(
            metrics_bind_address or flags.DEFAULT_METRICS,
            certificate=metrics_cert,
            key=metrics_key,
            token_review=metrics_token_review,
        )
        health = Listen.parse(health_probe_bind_address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    events = _event_api(event_api)
    controllers = load_controllers(target)
    lease = leader_election_id or "-".join(controller.name for controller in controllers)
    election = LeaderElection(name=lease, namespace=leader_election_namespace, identity=identity, config=config)
    command = RunCommand(
        controllers=controllers,
        cluster=cluster,
        namespace=namespace or None,
        election=election if leader_elect else None,
        event_api=events,
        metrics=metrics,
        metrics_required=bool(metrics_bind_address),
        health=health,
        drain_timeout=drain_timeout,
        shutdown_timeout=shutdown_timeout,
        preflight=preflight,
        record_access=record_access,
    )
    asyncio.run(run_controllers(command, typer.echo))


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
) -> None:
    """Print the roles that controllers need: for what they watch and declare to write, or for what a run did."""
    from deltaloop.cli.access_file import read_access
    from deltaloop.cli.load_controllers import load_controllers
    from deltaloop.cli.rbac import Program, print_recorded, print_roles

    if (recorded is None) == (not target):
        raise typer.BadParameter("give either a module, or --from FILE")
    program = Program(
        namespace=namespace or None,
        lease_namespace=leader_election_namespace or None,
        event_api=_event_api(event_api),
        token_review=metrics_token_review,
    )
    if recorded is not None:
        if leader_elect or program != Program(namespace=program.namespace):
            raise typer.BadParameter(
                "--from knows what the run did; of the other flags it takes --name and --namespace"
            )
        typer.echo(
            print_recorded(read_access(recorded), name=name or "deltaloop", namespace=program.namespace), nl=False
        )
        return
    if leader_elect and not leader_election_namespace:
        raise typer.BadParameter("--leader-elect needs --leader-election-namespace: the role is for the Lease there")
    controllers = load_controllers(target)
    joined = "-".join(controller.name for controller in controllers)
    typer.echo(print_roles(controllers, name=name or joined, program=program), nl=False)


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

    from deltaloop.cli.explain import ask, lines

    kind, _, name = obj.rpartition("/")
    if not name:
        raise typer.BadParameter(f"{obj!r} names no object; write KIND/NAME or NAME")
    if output not in ("text", "json"):
        raise typer.BadParameter(f"--output {output!r} is not text or json")
    found = ask(address, kind=kind, namespace=namespace, name=name)
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


def _configure(log_format: str, log_level: str) -> None:
    if log_format not in ("text", "json"):
        raise typer.BadParameter(f"--log-format {log_format!r} is not text or json")
    try:
        configure_logging(output="json" if log_format == "json" else "text", level=log_level.upper())
    except ValueError:
        raise typer.BadParameter(f"{log_level!r} is not a level: DEBUG, INFO, WARNING or ERROR") from None


def _event_api(name: str) -> EventApi:
    from deltaloop.events import EventApi

    try:
        return EventApi(name.removeprefix("core/"))
    except ValueError:
        known = " or ".join(api.value for api in EventApi)
        raise typer.BadParameter(f"--event-api {name!r} is not {known}") from None
