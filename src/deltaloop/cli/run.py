"""``deltaloop run``: controllers of a module as one program, with metrics, health, leader election and a good end."""

from __future__ import annotations

import logging
import os
import socket
import sys
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from deltaloop.api.errors import MissingExtraError
from deltaloop.cache import InformerOptions
from deltaloop.cli.access_file import save_access
from deltaloop.cli.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.client import Client, ClientOptions, connect
from deltaloop.errors import DeltaloopError
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime import Controller, Manager, ManagerOptions, ShutdownTimeoutError
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.health_server import Listen

_log: Final = logging.getLogger("deltaloop.cli")

_FLUSH_PATIENCE: Final = 2.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """What ``deltaloop run`` was asked to do.

    Attributes:
        controllers: What runs.
        kubeconfig: File; None looks where kubectl does, then into the pod.
        context: Context of the kubeconfig; None takes its current one.
        namespace: Watch this namespace only; None means all.
        embedded: Run against an embedded API server, which ends with the program.
        load: Files or folders of manifests that the embedded server begins with, such as CRDs.
        write_kubeconfig: Where the embedded server's kubeconfig goes; None nowhere.
        leader_elect: Whether only the holder of a Lease works.
        lease_name: The Lease's name.
        lease_namespace: Its namespace; empty means that of the connection.
        identity: This candidate's name; empty makes one up.
        election: Durations.
        metrics: Where ``/metrics`` is served; None nowhere.
        metrics_required: Whether it is an error that the extra for metrics is not installed.
        health: Where ``/healthz`` and ``/readyz`` are served; None nowhere.
        drain_timeout: Seconds that reconciles have at the end.
        shutdown_timeout: Seconds that the end may take.
        preflight: Whether to ask first what this account may do.
        record_access: Where to write down what the run did, for ``deltaloop rbac --from``; None nowhere.
    """

    controllers: tuple[Controller, ...]
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    embedded: bool = False
    load: tuple[Path, ...] = ()
    write_kubeconfig: Path | None = None
    leader_elect: bool = False
    lease_name: str = "deltaloop"
    lease_namespace: str = ""
    identity: str = ""
    election: LeaderElectionConfig = field(default_factory=LeaderElectionConfig)
    metrics: Listen | None = None
    metrics_required: bool = False
    health: Listen | None = None
    drain_timeout: float = 20.0
    shutdown_timeout: float = 30.0
    preflight: bool = True
    record_access: Path | None = None


async def run(command: RunCommand, show: Callable[[str], object]) -> int:
    """Run until SIGINT or SIGTERM; a second one ends at once.

    Returns:
        The exit code: 0, or 1 if reconciles had to be left behind.

    Raises:
        DeltaloopError: If something cannot be used, or goes wrong for good.
    """
    metrics = _metrics(command)
    recorded = RecordedAccess(namespace=command.namespace)
    async with AsyncExitStack() as stack:
        if command.record_access is not None:
            save_access(command.record_access, recorded)  # to find out now if it cannot be written
        client = await stack.enter_async_context(_connected(command, metrics, recorded, show))
        identity = command.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        recorder = await stack.enter_async_context(
            EventRecorder(client, component=command.controllers[0].name, instance=identity)
        )
        manager = Manager(
            client,
            command.controllers,
            elector=_elector(command, client, identity, metrics),
            recorder=recorder,
            metrics=None if metrics is None else metrics.controllers,
            metrics_page=None if metrics is None else metrics.render,
            options=ManagerOptions(
                namespace=command.namespace,
                preflight=command.preflight,
                drain_timeout=command.drain_timeout,
                shutdown_timeout=command.shutdown_timeout,
                health=command.health,
                metrics=command.metrics if metrics is not None else None,
                informers=InformerOptions(metrics=None if metrics is None else metrics.caches),
            ),
        )
        try:
            await manager.run(handle_signals=True)
        except ShutdownTimeoutError as error:
            # What was left behind would keep the interpreter from ending.
            with suppress(DeltaloopError, RuntimeError):
                await recorder.flush(_FLUSH_PATIENCE)
            print(f"error: {error}", file=sys.stderr, flush=True)
            if command.record_access is not None:
                save_access(command.record_access, recorded)
            os._exit(1)
        finally:
            if command.record_access is not None:
                save_access(command.record_access, recorded)
    return 0


def _metrics(command: RunCommand) -> ProgramMetrics | None:
    if command.metrics is None:
        return None
    try:
        return ProgramMetrics()
    except MissingExtraError:
        if command.metrics_required:
            raise
        _log.warning("metrics are not served: the extra 'metrics' is not installed")
        return None


def _elector(
    command: RunCommand, client: Client, identity: str, metrics: ProgramMetrics | None
) -> LeaderElector | None:
    if not command.leader_elect:
        return None
    lock = LeaseLock(
        client,
        namespace=command.lease_namespace or client.namespace,
        name=command.lease_name,
        identity=identity,
    )
    return LeaderElector(lock, command.election, client=client, metrics=None if metrics is None else metrics.elections)


@asynccontextmanager
async def _connected(
    command: RunCommand, metrics: ProgramMetrics | None, recorded: RecordedAccess, show: Callable[[str], object]
) -> AsyncGenerator[Client, None]:
    options = ClientOptions(on_request=None if command.record_access is None else recorded.sent)
    if metrics is not None:
        options = options.replace(metrics=metrics.requests)
    if not command.embedded:
        async with connect(kubeconfig=command.kubeconfig, context=command.context or None, options=options) as client:
            yield client
        return
    from deltaloop.apiserver import ApiServer, read_manifests

    if command.write_kubeconfig is not None:
        check_may_write(command.write_kubeconfig)
    manifests = [manifest for path in command.load for manifest in read_manifests(path)]
    async with ApiServer() as server, AsyncExitStack() as stack:
        server.load(manifests)
        hint = ""
        if command.write_kubeconfig is not None:
            write_kubeconfig(command.write_kubeconfig, server.kubeconfig())
            stack.callback(remove_kubeconfig, command.write_kubeconfig)
            hint = f"; use it with: export KUBECONFIG={command.write_kubeconfig}"
        show(f"embedded API server is ready at {server.url}{hint}")
        yield await stack.enter_async_context(connect(kubeconfig=server.kubeconfig(), options=options))
