"""The flags of ``deltaloop apiserver`` that take more than a line to explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WriteKubeconfig = Annotated[
    Path | None, typer.Option(help="Write a kubeconfig here once the server listens; removed when it stops.")
]
IssuedCertificate = Annotated[
    bool, typer.Option("--client-certificate", help="Put a client certificate into the kubeconfig, not the token.")
]
InsecureHttp = Annotated[bool, typer.Option("--insecure-http", help="Serve plain HTTP, and let anybody do everything.")]
Token = Annotated[
    str, typer.Option(help="The bearer token; others see it in the process list, so rather use --token-file.")
]
TokenFile = Annotated[Path | None, typer.Option(help="A file with the bearer token; or set DELTALOOP_TOKEN.")]
TokenAuthFile = Annotated[
    Path | None, typer.Option(help='Other users: a file with lines token,user,uid,"group1,group2".')
]
ServiceAccountSigningKey = Annotated[
    Path | None,
    typer.Option(
        "--service-account-signing-key-file",
        help="The private key (PEM) that tokens of service accounts are signed with.",
    ),
]
ServiceAccountKeys = Annotated[
    list[Path] | None,
    typer.Option(
        "--service-account-key-file",
        help="Keys (PEM, public or private) whose tokens of service accounts are taken, too; may be repeated.",
    ),
]
AuthorizationMode = Annotated[str, typer.Option(help="AlwaysAllow, or RBAC: what roles and bindings allow.")]
DataDirectory = Annotated[
    Path | None, typer.Option(help="Keep objects here over restarts; without it everything is in memory.")
]
Fsync = Annotated[bool, typer.Option("--fsync", help="With --data-dir: each write is on the disk before its answer.")]
Load = Annotated[Path | None, typer.Option(help="Load the manifests of this file or directory at start, CRDs first.")]
Controllers = Annotated[str, typer.Option(help="What runs beside the server, such as gc,namespace,policy-status.")]
EnabledPlugins = Annotated[
    str, typer.Option(help="Admission plugins besides the default ones, such as ServiceAccount, with commas between.")
]
DisabledPlugins = Annotated[
    str, typer.Option(help="Admission plugins to leave out although they are on by default, with commas between.")
]
