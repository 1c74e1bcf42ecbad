"""The commands that take a module with controllers, and their flags; what they do is in ``run.py`` and ``rbac.py``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer

from deltaloop.api.logs import configure_logging
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag

_Target = Annotated[
    str,
    typer.Argument(
        metavar="MODULE[:OBJECT]",
        help="Module or file, whose controllers all run; or one controller, list or function in it.",
    ),
]
_DEFAULT_METRICS: Final = "127.0.0.1:8080"
_DEFAULT_HEALTH: Final = "127.0.0.1:8081"


def run(
    target: _Target,
    *,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Watch this namespace only; all by default.")
    ] = "",
    embedded: Annotated[bool, typer.Option("--embedded", help="Run against an embedded API server.")] = False,
    load: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="With --embedded: manifests to begin with, such as CRDs. Repeatable."),
    ] = None,
    write_kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --embedded: write a kubeconfig for kubectl here.")
    ] = None,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Work only while holding a Lease; standbys keep their caches warm.")
    ] = False,
    leader_election_id: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the Lease; the controllers' names by default.")
    ] = "",
    leader_election_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the Lease; that of the connection by default.")
    ] = "",
    identity: Annotated[str, typer.Option("--id", help="Name of this candidate; made up by default.")] = "",
    lease_duration: Annotated[float, typer.Option(help="Seconds that others wait before they take over.")] = 15.0,
    renew_deadline: Annotated[float, typer.Option(help="Seconds that a leader leads without a renewal.")] = 10.0,
    retry_period: Annotated[float, typer.Option(help="Seconds from one try to the next.")] = 2.0,
    metrics_bind_address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help=f"Where /metrics is; {_DEFAULT_METRICS} by default, 0 for none.")
    ] = "",
    health_probe_bind_address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where /healthz and /readyz are; 0 for none.")
    ] = _DEFAULT_HEALTH,
    metrics_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate of /metrics, as PEM.")] = None,
    metrics_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, as PEM.")] = None,
    metrics_token_review: Annotated[
        bool,
        typer.Option(
            "--metrics-token-review", help="Answer /metrics only to those whom the API server allows to get it."
        ),
    ] = False,
    drain_timeout: Annotated[float, typer.Option(help="Seconds that reconciles have to end by themselves.")] = 20.0,
    shutdown_timeout: Annotated[float, typer.Option(help="Seconds that the whole end may take.")] = 30.0,
    preflight: Annotated[
        bool, typer.Option("--preflight/--no-preflight", help="Ask first what this account may list and watch.")
    ] = True,
    record_access: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="At the end, write down what was done, for `deltaloop rbac --from`."),
    ] = None,
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Run the controllers of a module until SIGINT or SIGTERM; a second one ends at once."""
    from deltaloop.cli.load_controllers import load_controllers
    from deltaloop.cli.run import RunCommand
    from deltaloop.cli.run import run as run_controllers
    from deltaloop.leaderelection import LeaderElectionConfig
    from deltaloop.runtime.health_server import Listen

    _configure(log_format, log_level)
    for flag, given in (("--load", load), ("--write-kubeconfig", write_kubeconfig)):
        if given and not embedded:
            raise typer.BadParameter(f"{flag} is for --embedded only")
    if embedded and (kubeconfig is not None or context):
        raise typer.BadParameter("--embedded brings its own cluster; leave --kubeconfig and --context out")
    try:
        election = LeaderElectionConfig(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        metrics = Listen.parse(
            metrics_bind_address or _DEFAULT_METRICS,
            certificate=metrics_cert,
            key=metrics_key,
            token_review=metrics_token_review,
        )
        health = Listen.parse(health_probe_bind_address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    controllers = load_controllers(target)
    command = RunCommand(
        controllers=controllers,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace or None,
        embedded=embedded,
        load=tuple(load or ()),
        write_kubeconfig=write_kubeconfig,
        leader_elect=leader_elect,
        lease_name=leader_election_id or "-".join(controller.name for controller in controllers),
        lease_namespace=leader_election_namespace,
        identity=identity,
        election=election,
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
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="The only namespace that is watched; all by default."),
    ] = "",
    leader_election_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the Lease; empty without leader election.")
    ] = "",
) -> None:
    """Print the roles that controllers need: for what they watch and declare to write, or for what a run did."""
    from deltaloop.cli.access_file import read_access
    from deltaloop.cli.load_controllers import load_controllers
    from deltaloop.cli.rbac import print_recorded, print_roles

    if (recorded is None) == (not target):
        raise typer.BadParameter("give either a module, or --from FILE")
    if recorded is not None:
        typer.echo(
            print_recorded(read_access(recorded), name=name or "deltaloop", namespace=namespace or None), nl=False
        )
        return
    controllers = load_controllers(target)
    typer.echo(
        print_roles(
            controllers,
            name=name or "-".join(controller.name for controller in controllers),
            namespace=namespace or None,
            lease_namespace=leader_election_namespace or None,
        ),
        nl=False,
    )


def explain(
    obj: Annotated[
        str, typer.Argument(metavar="[KIND/]NAME", help="Such as `foo/web`; without a kind, one that is reconciled.")
    ],
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Of the object.")] = "default",
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Health server of the running controllers.")
    ] = _DEFAULT_HEALTH,
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
