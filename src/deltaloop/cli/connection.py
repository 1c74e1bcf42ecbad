"""Flags for the connection to a cluster. By default, commands use the cluster that kubectl would use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from deltaloop.client import Client

KubeconfigFlag: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig file. Defaults to KUBECONFIG, ~/.kube/config, or the service account of the pod.",
        show_default=False,
    ),
]
ContextFlag: TypeAlias = Annotated[
    str | None,
    typer.Option("--context", help="Context in the kubeconfig. Defaults to the current context."),
]
NamespaceFlag: TypeAlias = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace. Defaults to the namespace of the context, or 'default'."),
]


def make_client(*, kubeconfig: Path | None, context: str | None, namespace: str | None) -> Client:
    """Create the client for the flags without sending a request; raises ConfigError. Empty flags count as missing."""
    from deltaloop.client import connect

    return connect(kubeconfig=kubeconfig, context=context or None, namespace=namespace or None)
