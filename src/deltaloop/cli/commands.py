"""The commands and their flags; what they do is in the modules beside this one."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Coroutine
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from deltaloop.api.logs import configure_logging
from deltaloop.cli import apiserver_flags as flags
from deltaloop.cli import cel_commands, controller_commands, migrate_commands, package_commands, type_commands
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag

T = TypeVar("T")

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_LogLevel = Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(distribution_version("deltaloop"))
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[  # what it asks for is done while it is read
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Controllers for Kubernetes in Python: run them, see why they ran, and try them on an embedded API server."""


@app.command()
def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave it running at the end, for kubectl.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
    port: Annotated[int, typer.Option(help="Port of the server; 0 takes a free one.", min=0, max=65535)] = 0,
    log_folder: Annotated[Path | None, typer.Option(help="Keep the replicas' whole logs in this folder.")] = None,
    log_level: _LogLevel = "WARNING",
) -> None:
    """Run the sample controller against an embedded API server: two replicas, a failover, and repairs.

    Ends by itself within 30 seconds, with exit code 0 if everything happened and 1 if a step did not.
    """
    from deltaloop.cli.demo.run import DemoOptions, run_demo
    from deltaloop.cli.demo.screen import Json, Terminal

    _configure(log_level)
    if log_folder is not None:
        _make_folder(log_folder)
    options = DemoOptions(keep=keep, port=port, log_folder=log_folder)
    summary = _run(run_demo(options, Json(typer.echo) if json else Terminal()), interrupted=130)
    raise typer.Exit(0 if summary.ok else 1)


@app.command()
def apiserver(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    write_kubeconfig: flags.WriteKubeconfig = None,
    client_certificate: flags.IssuedCertificate = False,
    insecure_http: flags.InsecureHttp = False,
    token: flags.Token = "",
    token_file: flags.TokenFile = None,
    token_auth_file: flags.TokenAuthFile = None,
    service_account_signing_key_file: flags.ServiceAccountSigningKey = None,
    service_account_key_file: flags.ServiceAccountKeys = None,
    authorization_mode: flags.AuthorizationMode = "AlwaysAllow",
    data_dir: flags.DataDirectory = None,
    fsync: flags.Fsync = False,
    load: flags.Load = None,
    audit: Annotated[str, typer.Option(help="Append a line of JSON per request to this file; - is stdout.")] = "",
    controllers: flags.Controllers = "",
    enable_admission_plugins: flags.EnabledPlugins = "",
    disable_admission_plugins: flags.DisabledPlugins = "",
    log_level: _LogLevel = "WARNING",
) -> None:
    """Run the embedded API server until Ctrl-C. It keeps everything in memory, unless --data-dir is given."""
    from deltaloop.apiserver import ServerOptions
    from deltaloop.cli.apiserver import ApiServerCommand, audit_to, read_key, read_token, read_users, serve

    _configure(log_level)
    try:
        accepted = [read_key(file, "--service-account-key-file") for file in service_account_key_file or ()]
        options = ServerOptions(
            host=host,
            port=port,
            insecure_http=insecure_http,
            token=None if insecure_http and not (token or token_file) else read_token(token, token_file),
            users=read_users(token_auth_file),
            service_account_key=read_key(service_account_signing_key_file, "--service-account-signing-key-file"),
            accepted_service_account_keys=tuple(key for key in accepted if key is not None),
            authorization_mode=authorization_mode,
            controllers=_names(controllers),
            enable_admission_plugins=_names(enable_admission_plugins),
            disable_admission_plugins=_names(disable_admission_plugins),
            data_dir=data_dir,
            fsync=fsync,
            audit=audit_to(audit),
        )
        command = ApiServerCommand(
            server=options, kubeconfig=write_kubeconfig, client_certificate=client_certificate, load=load
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _run(serve(command, typer.echo), interrupted=0)


@app.command("leader-elect")
def leader_elect(
    *,
    lease_lock_name: Annotated[str, typer.Option(help="Name of the lock's object.")],
    lease_lock_namespace: Annotated[
        str, typer.Option("--lease-lock-namespace", "--namespace", "-n", help="Namespace of the lock's object.")
    ],
    identity: Annotated[str, typer.Option("--id", help="Name of this candidate; a uuid by default.")] = "",
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    verbosity: Annotated[int, typer.Option("-v", help="4 prints each failed try, too.", min=0)] = 0,
    logtostderr: Annotated[
        bool, typer.Option("--logtostderr", help="Accepted, as in client-go's example: the log goes there anyway.")
    ] = True,
    lock: Annotated[
        str, typer.Option(help="lease, configmaps, endpoints, configmapsleases or endpointsleases.")
    ] = "lease",
    lease_duration: Annotated[float, typer.Option(help="Seconds that others wait before they take over.")] = 60.0,
    renew_deadline: Annotated[float, typer.Option(help="Seconds that a leader leads without a renewal.")] = 15.0,
    retry_period: Annotated[float, typer.Option(help="Seconds from one try to the next.")] = 5.0,
    command: Annotated[
        list[str] | None, typer.Argument(help="After `--`: a command that runs only while this candidate leads.")
    ] = None,
) -> None:
    """Take part in a leader election until SIGINT or SIGTERM, and run a command only while leading.

    Alone, it is client-go's example program: it prints what happens, and ends once leadership is lost. With a command,
    it contends again after a loss; the command gets SIGTERM, and SIGKILL before the lease can expire. The exit code is
    the command's.
    """
    from deltaloop.cli.leader_elect import LOCKS, LeaderElectCommand, print_as_klog
    from deltaloop.cli.leader_elect import leader_elect as elect
    from deltaloop.leaderelection import LeaderElectionConfig

    _ = logtostderr
    if lock not in LOCKS:
        raise typer.BadParameter(f"--lock {lock!r} is not one of {', '.join(LOCKS)}")
    for flag, value in (("--lease-lock-name", lease_lock_name), ("--lease-lock-namespace", lease_lock_namespace)):
        if not value:
            raise typer.BadParameter(f"{flag} is empty")
    try:
        election = LeaderElectionConfig(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    print_as_klog(verbosity)
    asked = LeaderElectCommand(
        name=lease_lock_name,
        namespace=lease_lock_namespace,
        identity=identity or str(uuid.uuid4()),
        kubeconfig=kubeconfig,
        context=context,
        lock=lock,
        election=election,
        command=tuple(command or ()),
    )
    raise typer.Exit(asyncio.run(elect(asked)))


app.command("run")(controller_commands.run)
app.command("rbac")(controller_commands.rbac)
app.command("crd")(controller_commands.crd)
app.command("webhooks")(controller_commands.webhooks)
app.command("explain")(controller_commands.explain)
app.command("simulate")(controller_commands.simulate)
app.command("new")(package_commands.new)
app.command("package")(package_commands.package)
app.command("migrate-storage")(migrate_commands.migrate_storage)
app.command("types")(type_commands.types)
app.add_typer(cel_commands.app, name="cel")


def _configure(log_level: str) -> None:
    try:
        configure_logging(level=log_level.upper())
    except ValueError:
        raise typer.BadParameter(f"{log_level!r} is not a level: DEBUG, INFO, WARNING or ERROR") from None


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{folder} cannot be made: {error.strerror}") from None


def _run(work: Coroutine[Any, Any, T], *, interrupted: int) -> T:
    """Run to the end; SIGINT and SIGTERM cancel the work, which cleans up, and end the program with ``interrupted``."""
    received: list[int] = []

    async def until_signal() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            received.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        return await task

    try:
        return asyncio.run(until_signal())
    except asyncio.CancelledError:
        if not received:
            raise
        raise typer.Exit(interrupted) from None
