"""The flags of every command that connects to a cluster, and the client that they mean.

A command takes ``kubeconfig: KubeconfigFlag = None, context: ContextFlag = None, namespace: NamespaceFlag = None`` and
gives them to ``make_client``. Without any of them it is the cluster that kubectl would use here.
"""

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
        metavar="FILE",
        help="Kubeconfig to use; else KUBECONFIG, ~/.kube/config, or the pod's own.",
        show_default=False,
    ),
]
ContextFlag: TypeAlias = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context of the kubeconfig; else its current one."),
]
NamespaceFlag: TypeAlias = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace; else that of the context, or 'default'."),
]


def make_client(*, kubeconfig: Path | None, context: str | None, namespace: str | None) -> Client:
    """Make the client that the flags mean; nothing is sent yet. An empty flag is as good as none.

    Raises:
        ConfigError: If there is no configuration, or it cannot be used; the command prints it and ends with code 2.
    """
    from deltaloop.client import connect

    return connect(kubeconfig=kubeconfig, context=context or None, namespace=namespace or None)
