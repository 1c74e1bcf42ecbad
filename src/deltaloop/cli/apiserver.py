"""``deltaloop apiserver``: run the embedded API server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, read_manifests, read_token_table
from deltaloop.cli.logging_flags import LogLevelFlag, set_up_logging
from deltaloop.cli.option_flags import flag_name, values_of, with_flags_of
from deltaloop.cli.until_signal import run_until_signal
from deltaloop.runtime.program.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.runtime.program.private_file import open_to_append

TOKEN_VARIABLE: Final = "DELTALOOP_TOKEN"
_FLAGS: Final = {
    "accepted_service_account_keys": "service_account_key_file",
    "service_account_key": "service_account_signing_key_file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerFlags:
    """Flags of ``deltaloop apiserver``.

    Attributes:
        host: Address to listen on.
        port: Port to listen on. 0 chooses a free port.
        write_kubeconfig: File for a kubeconfig of an administrator, removed when the server stops.
        client_certificate: Whether to write a client certificate into the kubeconfig instead of the token.
        insecure_http: Whether to serve plain HTTP, and to allow all requests.
        token: Bearer token. Prefer ``token_file``, because other users can see the command line.
        token_file: File with the bearer token. Defaults to the value of DELTALOOP_TOKEN.
        token_auth_file: File of more users. Each line is token,user,uid,"group1,group2".
        service_account_signing_key_file: Private key in PEM format that signs the tokens of service accounts.
            Defaults to a new key.
        service_account_key_file: Public or private keys in PEM format. Tokens of service accounts that they signed are
            also accepted. Repeatable.
        authorization_mode: AlwaysAllow or RBAC.
        data_dir: Folder to keep the objects in. Objects are kept in memory by default.
        fsync: Whether to flush each write to the disk before the response. Requires ``data_dir``.
        load: File or folder of manifests to load at the start. CRDs are loaded first.
        audit: File for the audit log, one JSON object per line, or - for standard output.
        controllers: Controllers to run in the server, separated by commas, for example gc,namespace,policy-status.
        enable_admission_plugins: Admission plugins to enable, separated by commas, for example ServiceAccount.
        disable_admission_plugins: Admission plugins to disable, separated by commas.
    """

    host: str = "127.0.0.1"
    port: int = 0
    write_kubeconfig: Path | None = None
    client_certificate: bool = False
    insecure_http: bool = False
    token: str = ""
    token_file: Path | None = None
    token_auth_file: Path | None = None
    service_account_signing_key_file: Path | None = None
    service_account_key_file: tuple[Path, ...] = ()
    authorization_mode: str = "AlwaysAllow"
    data_dir: Path | None = None
    fsync: bool = False
    load: Path | None = None
    audit: str = ""
    controllers: str = ""
    enable_admission_plugins: str = ""
    disable_admission_plugins: str = ""


@with_flags_of(ApiServerFlags)
def apiserver(*, log_level: LogLevelFlag = "WARNING", **flags: Any) -> None:
    """Run the embedded API server until Ctrl-C. It keeps objects in memory by default."""
    set_up_logging(log_level)
    try:
        given = ApiServerFlags(**values_of(flags))
        options = server_options(given)
    except ValueError as error:
        shown = re.sub(
            r"ServerOptions\.(\w+)(\[\d+\])?", lambda found: flag_name(_FLAGS.get(found[1], found[1])), str(error)
        )
        raise typer.BadParameter(shown) from None
    run_until_signal(serve(options, given, typer.echo), interrupted=0)


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(",") if name.strip())


def server_options(given: ApiServerFlags) -> ServerOptions:
    """Return the options of the server, or raise ValueError, for example if no client could authenticate."""
    token = None
    if not given.insecure_http or given.token or given.token_file:
        token = read_token(given.token, given.token_file)
    if given.write_kubeconfig is None and not given.insecure_http and token is None:
        raise ValueError(
            "--write-kubeconfig, a token or --insecure-http is required, so that clients can use the server."
        )
    if given.client_certificate and (given.write_kubeconfig is None or given.insecure_http):
        raise ValueError("--client-certificate requires --write-kubeconfig, and excludes --insecure-http.")
    signing, users = given.service_account_signing_key_file, given.token_auth_file
    keys = [_text_of(file, "--service-account-key-file") for file in given.service_account_key_file]
    return ServerOptions(
        host=given.host,
        port=given.port,
        insecure_http=given.insecure_http,
        token=token,
        users=read_token_table(_text_of(users, "--token-auth-file"), source=str(users)) if users is not None else (),
        service_account_key=(
            SecretText(_text_of(signing, "--service-account-signing-key-file")) if signing is not None else None
        ),
        accepted_service_account_keys=tuple(map(SecretText, keys)),
        authorization_mode=given.authorization_mode,
        controllers=_names(given.controllers),
        enable_admission_plugins=_names(given.enable_admission_plugins),
        disable_admission_plugins=_names(given.disable_admission_plugins),
        data_dir=given.data_dir,
        fsync=given.fsync,
        audit=audit_to(given.audit),
    )


async def serve(options: ServerOptions, given: ApiServerFlags, say: Callable[[str], None]) -> None:
    """Run the server until it is canceled, and print one line when it is ready.

    The kubeconfig is written after the server listens and all manifests are loaded, and removed when it stops, so you
    can wait for the file. Raises DeltaloopError.
    """
    if given.write_kubeconfig is not None:
        check_may_write(given.write_kubeconfig)
    manifests: list[Manifest] = read_manifests(given.load) if given.load is not None else []
    async with ApiServer(options) as server:
        server.load(manifests)
        if given.write_kubeconfig is None:
            say(f"deltaloop apiserver is ready at {server.url}")
            await asyncio.Event().wait()
            return
        certificate = server.admin_certificate() if given.client_certificate else None
        write_kubeconfig(given.write_kubeconfig, server.kubeconfig(certificate=certificate))
        try:
            say(
                f"deltaloop apiserver is ready at {server.url}; use it with: export KUBECONFIG={given.write_kubeconfig}"
            )
            await asyncio.Event().wait()
        finally:
            remove_kubeconfig(given.write_kubeconfig)


def read_token(given: str, file: Path | None) -> SecretText | None:
    """Return the token from the flag, the file or the environment, or None; raises ValueError."""
    if given and file is not None:
        raise ValueError("--token and --token-file cannot be combined. Use one of them.")
    if file is not None:
        given = _text_of(file, "--token-file").strip()
        if not given:
            raise ValueError(f"--token-file {file} must contain a token, got an empty file.")
    given = given or os.environ.get(TOKEN_VARIABLE, "")
    return SecretText(given) if given else None


def _text_of(file: Path, flag: str) -> str:
    try:
        return file.read_text()
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
            link = ". Replace the symbolic link by its target." if Path(target).is_symlink() else ""
            raise ValueError(f"--audit {target} cannot be written: {error.strerror}{link}") from None
        stream = os.fdopen(descriptor, "a", buffering=1)

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return write
