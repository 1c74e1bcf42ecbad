"""``deltaloop apiserver``: the embedded API server as a program of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, StaticUser, read_manifests, read_token_table
from deltaloop.cli.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.cli.private_file import open_to_append

TOKEN_VARIABLE: Final = "DELTALOOP_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerCommand:
    """What the command was asked to do.

    Attributes:
        server: Options of the server.
        kubeconfig: Where to write a kubeconfig once the server listens; None writes none.
        client_certificate: Whether the kubeconfig has a client certificate instead of the token.
        load: File or directory with manifests to load at start.

    Raises:
        ValueError: If nobody could use the server, or there is no place for the client certificate.
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
    """Serve until cancelled; say one line when ready.

    The kubeconfig is written after the server listens and everything is loaded, and removed when it stops, so its
    presence means that the server can be used.

    Raises:
        DeltaloopError: If the port or the data directory is in use, the kubeconfig belongs to somebody else, or a
            manifest cannot be loaded.
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
    """Return the token that was asked for: by flag, in a file, or in the environment; None for none.

    Raises:
        ValueError: If there are two, or the file is empty or cannot be read.
    """
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
    """Read the token table of ``--token-auth-file``.

    Raises:
        ValueError: If it cannot be read.
    """
    if file is None:
        return ()
    try:
        return read_token_table(file.read_text(), source=str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--token-auth-file {file} cannot be read: {type(error).__name__}") from None


def read_key(file: Path | None, flag: str) -> SecretText | None:
    """Read a file with keys in PEM; None for none.

    Raises:
        ValueError: If it cannot be read, naming the flag.
    """
    if file is None:
        return None
    try:
        return SecretText(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{flag} {file} cannot be read: {type(error).__name__}") from None


def audit_to(target: str) -> Callable[[str], None] | None:
    """Return what takes audit lines: ``-`` is standard output, else a file that is appended to; empty is none.

    Raises:
        ValueError: If the file cannot be written.
    """
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
