"""``kubectl deltaloop``: ``deltaloop doctor`` and ``deltaloop why`` for a program in the cluster of kubectl."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, items, text
from deltaloop.api.status import ForbiddenError
from deltaloop.cli import doctor as doctor_command
from deltaloop.cli import why as why_command
from deltaloop.cli.app import group
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag, NamespaceFlag, make_client
from deltaloop.cli.running_program import NoAnswerError

Object: TypeAlias = Mapping[str, Any]

_LABELS: Final = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app")
_PORT: Final = 8081
_OUTPUT: Final = typer.Option("--output", "-o", metavar="text|json", help="Output format.")
_PROGRAM: Final = typer.Option(
    metavar="NAME", help="Pod, Lease or app label of the program. Not necessary if the namespace has only one program."
)


def doctor(
    action: Annotated[str, typer.Argument(help="Action like that of deltaloop doctor.")] = "",
    controller: Annotated[str, typer.Argument(help="Controller of the action.")] = "",
    key: Annotated[str, typer.Argument(help="Key of the action.")] = "",
    *,
    program: Annotated[str, _PROGRAM] = "",
    namespace: NamespaceFlag = None,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    output: Annotated[str, _OUTPUT] = "text",
) -> None:
    """Show the stuck parts of a program in the cluster, the most urgent first."""
    pod = asyncio.run(find_pod(program, namespace=namespace, kubeconfig=kubeconfig, context=context))
    doctor_command.doctor(action, controller, key, pod=pod, kubeconfig=kubeconfig, context=context, output=output)


def why(
    obj: Annotated[str, typer.Argument(metavar="[KIND/]NAME", help="Object, for example foo/web.")],
    *,
    program: Annotated[str, _PROGRAM] = "",
    program_namespace: Annotated[
        str | None, typer.Option("--program-namespace", help="Namespace of the program. Defaults to all namespaces.")
    ] = None,
    namespace: NamespaceFlag = None,
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    output: Annotated[str, _OUTPUT] = "text",
) -> None:
    """Show why a program in the cluster reconciled an object recently, and which fields it wrote."""
    pod = asyncio.run(
        find_pod(program, namespace=program_namespace, kubeconfig=kubeconfig, context=context, everywhere=True)
    )
    if namespace is None:
        namespace = make_client(kubeconfig=kubeconfig, context=context, namespace=None).namespace
    why_command.why(obj, namespace=namespace, pod=pod, kubeconfig=kubeconfig, context=context, output=output)


async def find_pod(
    program: str, *, namespace: str | None, kubeconfig: Path | None, context: str | None, everywhere: bool = False
) -> str:
    """Return NAMESPACE/POD:PORT of a program, or raise NoAnswerError."""
    from deltaloop.api.kinds import LEASE, POD

    async with make_client(kubeconfig=kubeconfig, context=context, namespace=namespace) as client:
        where = None if everywhere and namespace is None else client.namespace
        try:
            pods = [pod.to_dict() for pod in await client.list(POD, namespace=where)]
            leases = [lease.to_dict() for lease in await client.list(LEASE, namespace=where)]
        except ForbiddenError as error:
            if where is not None:
                raise
            error.add_note("set --program-namespace to read the Pods of one namespace only")
            raise
    return choose_pod(pods, leases, program)


def choose_pod(pods: Sequence[Object], leases: Sequence[Object], program: str) -> str:
    """Return NAMESPACE/POD:PORT of a program's leader, or of any of its running Pods without leader election.

    Without a name, a program is a Pod with a port called ``health``.
    """
    holders = {(_meta(each, "namespace"), _holder(each)): _meta(each, "name") for each in leases}
    lease_of = {_place(pod): holders.get(_place(pod), "") for pod in pods}
    running = [pod for pod in pods if text(at(pod, "status", "phase")) in ("Running", "")]
    found = [
        pod
        for pod in running
        if (program in _names(pod, lease_of[_place(pod)]) if program else _health_port(pod) is not None)
    ]
    exact = [pod for pod in found if _meta(pod, "name") == program]
    chosen = exact or [pod for pod in found if lease_of[_place(pod)]] or found
    programs = sorted({f"{_meta(pod, 'namespace')}/{_app(pod)}" for pod in chosen})
    if not chosen:
        what = f"program {program}" if program else "Pod with a port called health"
        raise NoAnswerError(
            f"no {what} runs here. Set --program to a Pod, a Lease or an app label, and the namespace.",
            reason="unreachable",
        )
    if len(programs) > 1:
        raise InvalidArgumentError(
            f"must be set, because several programs run here: {', '.join(programs)}.", argument="--program"
        )
    pod = min(chosen, key=lambda each: _meta(each, "name"))
    return f"{_meta(pod, 'namespace')}/{_meta(pod, 'name')}:{_health_port(pod) or _PORT}"


def _meta(obj: Object, field: str) -> str:
    return text(at(obj, "metadata", field))


def _place(pod: Object) -> tuple[str, str]:
    return _meta(pod, "namespace"), _meta(pod, "name")


def _holder(lease: Object) -> str:
    return text(at(lease, "spec", "holderIdentity")).partition("_")[0]  # the host name, which is the name of the Pod


def _app(pod: Object) -> str:
    labels = at(pod, "metadata", "labels")
    found = (text(at(labels, label)) for label in _LABELS)
    return next((value for value in found if value), _meta(pod, "name"))


def _names(pod: Object, lease: str) -> set[str]:
    labels = at(pod, "metadata", "labels")
    return {_meta(pod, "name"), lease, *(text(at(labels, label)) for label in _LABELS)}


def _health_port(pod: Object) -> int | None:
    for container in items(at(pod, "spec", "containers")):
        for port in items(at(container, "ports")):
            number = at(port, "containerPort")
            if text(at(port, "name")) == "health" and isinstance(number, int):
                return number
    return None


app: typer.Typer = group({"doctor": "kubectl_plugin:doctor", "why": "kubectl_plugin:why"})


@app.callback()
def options() -> None:
    """Query a running deltaloop program in the cluster of kubectl."""
