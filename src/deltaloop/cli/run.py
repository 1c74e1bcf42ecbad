"""``deltaloop run``: controllers of a module as one program, with metrics, health, leader election and a good end."""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError, MissingExtraError
from deltaloop.api.json_values import at
from deltaloop.api.plain_text import indented
from deltaloop.cache import InformerOptions
from deltaloop.cli.access_file import save_access
from deltaloop.cli.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.cli.late_objects import create_all, run_with, split
from deltaloop.cli.object_names import check_name, check_namespace
from deltaloop.cli.run_webhooks import RunWebhooks
from deltaloop.client import Client, ClientOptions, connect
from deltaloop.client.transport.opening import Http
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime import Access, Controller, Manager, ManagerOptions
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.errors import ShutdownTimeoutError
from deltaloop.runtime.program.access import Program, program_access, restricted, rules_of
from deltaloop.runtime.program.pages import Listen
from deltaloop.webhooks import WebhookAddress, WebhookSet

if TYPE_CHECKING:
    from deltaloop.apiserver.core.controllers.manifests import Manifest

_log: Final = logging.getLogger("deltaloop.cli")

_FLUSH_PATIENCE: Final = 2.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFlags:
    """Where to run.

    Attributes:
        kubeconfig: File; None looks where kubectl does, then into the pod.
        context: Context of the kubeconfig; None takes its current one.
        embedded: Run against an embedded API server, which ends with the program.
        rbac: Whether the embedded server lets the program do what ``deltaloop rbac`` prints, and no more.
        load: Files or folders of manifests that the embedded server begins with, such as CRDs.
        write_kubeconfig: Where the embedded server's kubeconfig goes; None nowhere.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    embedded: bool = False
    rbac: bool = False
    load: tuple[Path, ...] = ()
    write_kubeconfig: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        given_flags = (("--load", self.load), ("--write-kubeconfig", self.write_kubeconfig), ("--rbac", self.rbac))
        for flag, given in given_flags:
            if given and not self.embedded:
                raise InvalidArgumentError(f"{flag} is for --embedded only")
        if self.embedded and (self.kubeconfig is not None or self.context):
            raise InvalidArgumentError("--embedded brings its own cluster; leave --kubeconfig and --context out")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Only the holder of a Lease works.

    Attributes:
        name: The Lease's name.
        namespace: Its namespace; empty means that of the connection.
        identity: This candidate's name; empty makes one up.
        config: How long a lease lasts, and how often it is renewed.
    """

    name: str
    namespace: str = ""
    identity: str = ""
    config: LeaderElectionConfig = field(default_factory=LeaderElectionConfig)

    def __post_init__(self) -> None:
        """Refuse names that no server takes: the elector would try them for ever."""
        check_name("--leader-election-id", self.name)
        check_namespace("--leader-election-namespace", self.namespace)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """What ``deltaloop run`` was asked to do.

    Attributes:
        controllers: The controllers that the module declares.
        cluster: Which cluster, or the embedded server.
        definitions: Definitions of the program's own kinds, with which an embedded server begins, unless it loads them.
        namespace: Watch this namespace only; None means all.
        election: Who works, among several processes; None has no election.
        event_api: What Events are written in.
        metrics: Where ``/metrics`` is served; None nowhere.
        metrics_required: Whether it is an error that the extra for metrics is not installed.
        health: Where ``/healthz`` and ``/readyz`` are served; None nowhere.
        drain_timeout: Seconds that reconciles have at the end.
        shutdown_timeout: Seconds that the end may take.
        preflight: Whether to ask first what this account may do.
        record_access: Where to write down what the run did, for ``deltaloop rbac --from``; None nowhere.
        http: What speaks HTTP.
        webhooks: What is served to the API server, and how.
    """

    controllers: tuple[Controller, ...]
    cluster: ClusterFlags = field(default_factory=ClusterFlags)
    definitions: tuple[dict[str, Any], ...] = ()
    namespace: str | None = None
    election: LeaderElection | None = None
    event_api: EventApi = EventApi.CORE_V1
    metrics: Listen | None = None
    metrics_required: bool = False
    health: Listen | None = None
    drain_timeout: float = 20.0
    shutdown_timeout: float = 30.0
    preflight: bool = True
    record_access: Path | None = None
    http: Http = "aiohttp"
    webhooks: RunWebhooks = field(default_factory=RunWebhooks)

    def __post_init__(self) -> None:
        """Refuse what cannot be, before anything is connected to."""
        check_namespace("--namespace", self.namespace or "")
        for flag, seconds in (("--drain-timeout", self.drain_timeout), ("--shutdown-timeout", self.shutdown_timeout)):
            if not (seconds >= 0 and math.isfinite(seconds)):
                raise InvalidArgumentError(f"{flag} is {seconds:g}; a number of seconds, 0 or more, is needed")


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
        webhooks, certificates, address = command.webhooks, None, None
        if command.cluster.embedded:
            webhooks, certificates, address = webhooks.on_embedded_server()
        connected = _connected(command, metrics, recorded, show, address)
        client, load = await stack.enter_async_context(connected)
        chosen = "" if command.election is None else command.election.identity
        identity = chosen or f"{socket.gethostname()}_{uuid.uuid4()}"
        recorder = await stack.enter_async_context(
            EventRecorder(
                client,
                component=command.controllers[0].name if command.controllers else webhooks.name,
                instance=identity.encode()[:128].decode(errors="ignore"),  # events.k8s.io takes no more bytes
                options=EventRecorderOptions(api=command.event_api),
            )
        )
        manager = Manager(
            client,
            command.controllers,
            elector=_elector(command, client, identity, metrics),
            recorder=recorder,
            metrics=None if metrics is None else metrics.controllers,
            metrics_page=None if metrics is None else metrics.render,
            webhooks=webhooks.webhooks,
            certificates=certificates or webhooks.certificates(client),
            webhook_metrics=None if metrics is None else metrics.reviews,
            options=ManagerOptions(
                namespace=command.namespace,
                preflight=command.preflight,
                drain_timeout=command.drain_timeout,
                shutdown_timeout=command.shutdown_timeout,
                health=command.health,
                metrics=command.metrics if metrics is not None else None,
                webhooks=webhooks.listen,
                undeclared=UndeclaredAccess.REFUSE if command.cluster.embedded else UndeclaredAccess.WARN,
                access=_needs(command, client),
                informers=InformerOptions(metrics=None if metrics is None else metrics.caches),
            ),
        )
        try:
            await run_with(manager, load)
        except ShutdownTimeoutError as error:
            # What was left behind would keep the interpreter from ending.
            with suppress(DeltaloopError, RuntimeError):
                await recorder.flush(_FLUSH_PATIENCE)
            print(f"error: {indented(str(error))}", file=sys.stderr, flush=True)
            if command.record_access is not None:
                save_access(command.record_access, recorded)
            if command.cluster.embedded and command.cluster.write_kubeconfig is not None:
                remove_kubeconfig(command.cluster.write_kubeconfig)
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


def _needs(command: RunCommand, client: Client) -> tuple[Access, ...]:
    """Return what cannot be done without; Events can."""
    election = command.election
    return program_access(
        lease_namespace=None if election is None else election.namespace or client.namespace,
        token_review=command.metrics is not None and command.metrics.token_review,
    )


def _elector(
    command: RunCommand, client: Client, identity: str, metrics: ProgramMetrics | None
) -> LeaderElector | None:
    election = command.election
    if election is None:
        return None
    lock = LeaseLock(client, namespace=election.namespace or client.namespace, name=election.name, identity=identity)
    return LeaderElector(lock, election.config, client=client, metrics=None if metrics is None else metrics.elections)


@asynccontextmanager
async def _connected(
    command: RunCommand,
    metrics: ProgramMetrics | None,
    recorded: RecordedAccess,
    show: Callable[[str], object],
    webhooks: WebhookAddress | None,
) -> AsyncGenerator[tuple[Client, Callable[[], Awaitable[None]]], None]:
    """Yield a client, and the function that creates the objects that wait for webhooks."""
    options = ClientOptions(on_request=None if command.record_access is None else recorded.sent, http=command.http)
    if metrics is not None:
        options = options.replace(metrics=metrics.requests)
    cluster = command.cluster
    if not cluster.embedded:
        async with connect(kubeconfig=cluster.kubeconfig, context=cluster.context or None, options=options) as client:
            yield client, partial(create_all, client, ())
        return
    from deltaloop.apiserver import ApiServer, ServerOptions, read_manifests
    from deltaloop.apiserver.options import CLUSTER_CONTROLLERS

    if cluster.write_kubeconfig is not None:
        check_may_write(cluster.write_kubeconfig)
    manifests = [manifest for path in cluster.load for manifest in read_manifests(path)]
    early, late = split(manifests, served=webhooks is not None)
    mode = "RBAC" if cluster.rbac else "AlwaysAllow"
    server_options = ServerOptions(controllers=CLUSTER_CONTROLLERS, authorization_mode=mode)
    async with ApiServer(server_options) as server, AsyncExitStack() as stack:
        server.load([*_unless_loaded(command.definitions, manifests), *early])
        hint = ""
        if cluster.write_kubeconfig is not None:
            write_kubeconfig(cluster.write_kubeconfig, server.kubeconfig())
            stack.callback(remove_kubeconfig, cluster.write_kubeconfig)
            hint = f"; use it with: export KUBECONFIG={cluster.write_kubeconfig}"
        show(f"embedded API server is ready at {server.url}{hint}")
        admin = await stack.enter_async_context(connect(kubeconfig=server.kubeconfig()))
        load = partial(create_all, admin, late)
        if webhooks is not None:
            await command.webhooks.register(admin, webhooks)
        if not cluster.rbac:
            yield await stack.enter_async_context(connect(kubeconfig=server.kubeconfig(), options=options)), load
            return
        election = command.election
        program = Program(
            namespace=command.namespace,
            lease_namespace=None if election is None else election.namespace or admin.namespace,
            event_api=command.event_api,
            token_review=command.metrics is not None and command.metrics.token_review,
            reads=WebhookSet(command.webhooks.webhooks).reads,
        )
        rules, _ = rules_of(command.controllers, program=program)
        names = "-".join(each.name for each in command.controllers) or command.webhooks.name
        config = await restricted(admin, rules, name=names)
        yield await stack.enter_async_context(Client(config, options=options)), load


def _unless_loaded(definitions: Sequence[dict[str, Any]], manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return definitions without those that are among manifests."""
    from deltaloop.apiserver.core.controllers.manifests import manifests_of

    def name(fields: Mapping[str, object]) -> tuple[object, object]:
        return fields.get("kind"), at(fields, "metadata", "name")

    loaded = {name(each.fields) for each in manifests}
    return [each for each in manifests_of(definitions, source="classes") if name(each.fields) not in loaded]
