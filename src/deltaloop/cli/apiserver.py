"""``deltaloop apiserver``: run the embedded API server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, StaticUser, read_manifests, read_token_table
from deltaloop.cli.logging_flags import LogLevelFlag, set_up_logging
from deltaloop.cli.until_signal import run_until_signal
from deltaloop.runtime.program.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.runtime.program.private_file import open_to_append

TOKEN_VARIABLE: Final = "DELTALOOP_TOKEN"


_WriteKubeconfig: TypeAlias = Annotated[
    Path | None, typer.Option(help="File for the kubeconfig, removed when the server stops.")
]
_IssuedCertificate: TypeAlias = Annotated[
    bool, typer.Option("--client-certificate", help="Use a client certificate in the kubeconfig instead of the token.")
]
_InsecureHttp: TypeAlias = Annotated[
    bool, typer.Option("--insecure-http", help="Serve plain HTTP, and allow every request.")
]
_Token: TypeAlias = Annotated[
    str, typer.Option(help="Bearer token. Other users can see it in the process list: prefer --token-file.")
]
_TokenFile: TypeAlias = Annotated[
    Path | None, typer.Option(help="File with the bearer token. Alternatively set DELTALOOP_TOKEN.")
]
_TokenAuthFile: TypeAlias = Annotated[
    Path | None, typer.Option(help='File of more users, with lines token,user,uid,"group1,group2".')
]
_ServiceAccountSigningKey: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--service-account-signing-key-file",
        help="Private key (PEM) that signs tokens of service accounts.",
    ),
]
_ServiceAccountKeys: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--service-account-key-file",
        help="Keys (PEM, public or private) whose tokens of service accounts are also accepted. Repeatable.",
    ),
]
_AuthorizationMode: TypeAlias = Annotated[str, typer.Option(help="AlwaysAllow or RBAC.")]
_DataDirectory: TypeAlias = Annotated[
    Path | None, typer.Option(help="Folder that keeps the objects. By default they are kept in memory only.")
]
_Fsync: TypeAlias = Annotated[
    bool, typer.Option("--fsync", help="Sync each write to the disk before the response. Requires --data-dir.")
]
_Load: TypeAlias = Annotated[
    Path | None, typer.Option(help="File or folder of manifests to load at the start, CRDs first.")
]
_Controllers: TypeAlias = Annotated[
    str, typer.Option(help="Controllers to run in the server, such as gc,namespace,policy-status.")
]
_EnabledPlugins: TypeAlias = Annotated[
    str, typer.Option(help="Admission plugins to enable, separated by commas, such as ServiceAccount.")
]
_DisabledPlugins: TypeAlias = Annotated[str, typer.Option(help="Admission plugins to disable, separated by commas.")]


def apiserver(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on. By default a free port.", min=0, max=65535)] = 0,
    write_kubeconfig: _WriteKubeconfig = None,
    client_certificate: _IssuedCertificate = False,
    insecure_http: _InsecureHttp = False,
    token: _Token = "",
    token_file: _TokenFile = None,
    token_auth_file: _TokenAuthFile = None,
    service_account_signing_key_file: _ServiceAccountSigningKey = None,
    service_account_key_file: _ServiceAccountKeys = None,
    authorization_mode: _AuthorizationMode = "AlwaysAllow",
    data_dir: _DataDirectory = None,
    fsync: _Fsync = False,
    load: _Load = None,
    audit: Annotated[
        str, typer.Option(metavar="FILE", help="File for the audit log, one JSON object per line; - is stdout.")
    ] = "",
    controllers: _Controllers = "",
    enable_admission_plugins: _EnabledPlugins = "",
    disable_admission_plugins: _DisabledPlugins = "",
    log_level: LogLevelFlag = "WARNING",
) -> None:
    """Run the embedded API server until Ctrl-C. By default it keeps objects in memory."""
    set_up_logging(log_level)
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
    run_until_signal(serve(command, typer.echo), interrupted=0)


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerCommand:
    """Options of the command.

    Attributes:
        server: Options of the server.
        kubeconfig: File for the kubeconfig. None writes none.
        client_certificate: Whether the kubeconfig contains a client certificate instead of the token.
        load: File or directory with manifests to load at the start.

    Raises:
        ValueError: If no client could authenticate, or the client certificate has no kubeconfig.
    """

    server: ServerOptions
    kubeconfig: Path | None = None
    client_certificate: bool = False
    load: Path | None = None

    def __post_init__(self) -> None:
        if self.kubeconfig is None and not self.server.insecure_http and self.server.token is None:
            raise ValueError(
                "give --write-kubeconfig FILE, or a token: nobody can use the server otherwise (or --insecure-http)"
            )
        if self.client_certificate and (self.kubeconfig is None or self.server.insecure_http):
            raise ValueError("--client-certificate needs --write-kubeconfig, and TLS")


async def serve(command: ApiServerCommand, say: Callable[[str], None]) -> None:
    """Run the server until it is canceled, and print one line when it is ready.

    The kubeconfig is written after the server listens and all manifests are loaded, and removed when it stops, so you
    can wait for the file. Raises DeltaloopError.
    """
    if command.kubeconfig is not None:
        check_may_write(command.kubeconfig)
    manifests: list[Manifest] = read_manifests(command.load) if command.load is not None else []
    async with ApiServer(command.server) as server:
        server.load(manifests)
        if command.kubeconfig is None:
            say(f"deltaloop apiserver is ready at {server.url}")
            await asyncio.Event().wait()
            return
        certificate = server.admin_certificate() if command.client_certificate else None
        write_kubeconfig(command.kubeconfig, server.kubeconfig(certificate=certificate))
        try:
            say(f"deltaloop apiserver is ready at {server.url}; use it with: export KUBECONFIG={command.kubeconfig}")
            await asyncio.Event().wait()
        finally:
            remove_kubeconfig(command.kubeconfig)


def read_token(given: str, file: Path | None) -> SecretText | None:
    """Return the token from the flag, the file or the environment, or None; raises ValueError."""
    if given and file is not None:
        raise ValueError("--token and --token-file are two tokens; give one")
    if file is not None:
        try:
            given = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--token-file {file} cannot be read: {type(error).__name__}") from None
        if not given:
            raise ValueError(f"--token-file {file} is empty")
    given = given or os.environ.get(TOKEN_VARIABLE, "")
    return SecretText(given) if given else None


def read_users(file: Path | None) -> tuple[StaticUser, ...]:
    """Read the token table of ``--token-auth-file``. It raises ValueError if the file is unreadable."""
    if file is None:
        return ()
    try:
        return read_token_table(file.read_text(), source=str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--token-auth-file {file} cannot be read: {type(error).__name__}") from None


def read_key(file: Path | None, flag: str) -> SecretText | None:
    """Read a PEM file with keys. It raises ValueError if the file is unreadable."""
    if file is None:
        return None
    try:
        return SecretText(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{flag} {file} cannot be read: {type(error).__name__}") from None


def audit_to(target: str) -> Callable[[str], None] | None:
    """Return the writer of audit lines for a file, which it appends to, or ``-`` for standard output."""
    if not target:
        return None
    if target == "-":
        stream = sys.stdout
    else:
        try:
            descriptor = open_to_append(Path(target))
        except OSError as error:
            link = "; it is a symbolic link, name the file itself" if Path(target).is_symlink() else ""
            raise ValueError(f"--audit {target} cannot be written: {error.strerror}{link}") from None
        stream = os.fdopen(descriptor, "a", buffering=1)

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return write
