"""Run controllers and webhooks as one program, from the connection to a graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError, MissingExtraError
from deltaloop.api.plain_text import indented
from deltaloop.cache import InformerOptions
from deltaloop.client import Client, ClientOptions, connect
from deltaloop.events import EventRecorder, EventRecorderOptions
from deltaloop.leaderelection import LeaderElector, LeaseLock
from deltaloop.runtime.controller import Controller, require_controllers
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.access import program_access
from deltaloop.runtime.program.access_file import save_access
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.definitions import program_definitions
from deltaloop.runtime.program.errors import ShutdownTimeoutError
from deltaloop.runtime.program.kubeconfig_file import remove_kubeconfig
from deltaloop.runtime.program.manager import Manager
from deltaloop.runtime.program.manager_options import ManagerOptions
from deltaloop.runtime.program.options import (
    RunOptions,
    election_timing,
    is_sharded,
    lease_namespace,
    metrics_address,
)
from deltaloop.runtime.program.webhooks import ProgramWebhooks
from deltaloop.sharding import ShardMember, ShardOptions
from deltaloop.webhooks.declaring import AdmissionWebhook, ConversionFunction, Webhook

if TYPE_CHECKING:
    from deltaloop.metrics import ProgramMetrics
    from deltaloop.runtime.program.embedded import KeptServer

_log: Final = logging.getLogger("deltaloop.runtime")

_FLUSH_TIMEOUT: Final = 2.0
_POLL: Final = 0.05


async def run(
    *declared: Controller | Webhook, options: RunOptions | None = None, modules: Iterable[ModuleType] = ()
) -> None:
    """Run controllers and webhooks until SIGINT or SIGTERM.

    Use it as the program's ``main``. It connects, serves health, metrics and webhooks, checks the permissions of the
    account, takes part in the leader election and shuts down gracefully, also if it is canceled. It does not configure
    logging, so call ``dl.configure_logging()`` first. Outside the main thread it handles no signals; cancel it instead.

    If reconciles do not end within ``shutdown_timeout``, or a second signal arrives, the process exits with code 1,
    because threads that still run would keep it alive.

    Args:
        declared: Controllers and webhooks, at least one.
        options: Options of the program.
        modules: Additional modules whose kinds an embedded server defines at the start.

    Raises:
        InvalidArgumentError: If an argument is neither a controller nor a webhook, or there is none.
        RunOptionError: If an option does not fit the webhooks.
        ConfigError: If there is no cluster configuration.
        DeltaloopError: If an option cannot be used, or the manager fails.
    """
    await run_program(declared, options or RunOptions(), modules=modules)


async def run_program(
    declared: Sequence[Controller | Webhook],
    options: RunOptions,
    *,
    modules: Iterable[ModuleType] = (),
    kept: KeptServer | None = None,
) -> None:
    """Run a program like ``run``, optionally on the embedded server of another process."""
    process = None
    if options.processes > 1:
        from deltaloop.runtime.program.processes import this_process

        process = this_process()
        options = options if process is None else process.options(options)
    controllers = tuple(each for each in declared if isinstance(each, Controller))
    webhooks = tuple(each for each in declared if isinstance(each, AdmissionWebhook | ConversionFunction))
    require_controllers(
        [each for each in declared if not isinstance(each, AdmissionWebhook | ConversionFunction)], "run"
    )
    if not declared:
        raise InvalidArgumentError("must contain a controller or webhook, got none.", argument="arguments of run()")
    names = dict.fromkeys(str(getattr(each.function, "__module__", "")) for each in declared)
    own_modules = [sys.modules[name] for name in names if name in sys.modules]
    name = program_name(own_modules[0]) if own_modules else "program"
    served = ProgramWebhooks.of(webhooks, options, name=options.webhook_name or name)
    if options.processes > 1 and process is None:
        from deltaloop.runtime.program.processes import supervise

        definitions = program_definitions([*modules, *own_modules], controllers, webhooks) if options.embedded else []
        await supervise(options, controllers, served, definitions)
        return
    metrics = _metrics(options)
    recorded = RecordedAccess(namespace=options.namespace or None)
    if options.record_access is not None:
        save_access(Path(options.record_access), recorded)  # fail now if the file cannot be written
    async with AsyncExitStack() as stack:
        definitions = program_definitions([*modules, *own_modules], controllers, webhooks) if options.embedded else []
        connected = _connected(options, controllers, served, definitions, metrics, recorded, kept)
        client, load = await stack.enter_async_context(connected)
        identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        recorder = await stack.enter_async_context(
            EventRecorder(
                client,
                component=controllers[0].name if controllers else served.name,
                instance=identity.encode()[:128].decode(errors="ignore"),  # limit of events.k8s.io in bytes
                options=EventRecorderOptions(api=options.event_api),
            )
        )
        lease = lease_namespace(options, client)
        elector, member = None, None
        if lease is not None:
            lease_name = options.leader_election_id or "-".join(each.name for each in controllers) or served.name
            counters = None if metrics is None else metrics.elections
            if is_sharded(options):
                shards = ShardOptions(
                    name=lease_name,
                    namespace=lease,
                    key="name" if options.shard_by_name else "namespace",
                    label=options.shard_by_label or "",
                    election=election_timing(options),
                    drain_timeout=options.drain_timeout,
                )
                member = ShardMember(client, shards, identity=identity, metrics=counters)
            else:
                lock = LeaseLock(client, namespace=lease, name=lease_name, identity=identity)
                elector = LeaderElector(lock, election_timing(options), client=client, metrics=counters)
        manager = Manager(
            client,
            controllers,
            elector=elector,
            shards=member,
            recorder=recorder,
            metrics=None if metrics is None else metrics.controllers,
            metrics_page=None if metrics is None else metrics.render,
            webhooks=webhooks,
            certificates=served.certificates(client),
            webhook_metrics=None if metrics is None else metrics.reviews,
            webhook_targets=served.targets() if webhooks else (),
            options=ManagerOptions(
                namespace=options.namespace or None,
                preflight=options.preflight,
                drain_timeout=options.drain_timeout,
                shutdown_timeout=options.shutdown_timeout,
                health=BindAddress.parse(options.health_probe_bind_address),
                doctor_actions=options.doctor_actions,
                record=None if options.record is None else Path(options.record),
                metrics=None if metrics is None else metrics_address(options),
                webhooks=served.listen,
                undeclared_access=UndeclaredAccess.REJECT if options.embedded else UndeclaredAccess.WARN,
                permissions=program_access(
                    lease_namespace=lease, shards=member is not None, token_review=options.metrics_token_review
                ),
                informers=InformerOptions(metrics=None if metrics is None else metrics.caches),
            ),
        )
        if metrics is not None and member is not None:
            metrics.shards.state = lambda: manager.shard_state
        try:
            if process is not None:
                stack.push_async_callback(process.follow(manager))
            await _run_with(manager, load, kept)
        except ShutdownTimeoutError as error:
            with suppress(DeltaloopError, RuntimeError):
                await recorder.flush(_FLUSH_TIMEOUT)
            sys.stderr.write(f"error: {indented(str(error))}\n")
            sys.stderr.flush()
            if options.record_access is not None:
                save_access(Path(options.record_access), recorded)
            if options.write_kubeconfig is not None:
                remove_kubeconfig(Path(options.write_kubeconfig))
            os._exit(1)  # abandoned reconciles would keep the interpreter running
        finally:
            if options.record_access is not None:
                save_access(Path(options.record_access), recorded)


async def _run_with(manager: Manager, load: Callable[[], Awaitable[None]], kept: KeptServer | None) -> None:
    """Run a manager until SIGINT or SIGTERM, and call ``load`` when it is ready. If ``load`` fails, raise its error."""

    async def when_ready() -> None:
        while not all(check.ok for check in manager.readiness()):  # noqa: ASYNC110 - readiness has no event
            await asyncio.sleep(_POLL)
        try:
            await load()
            if kept is not None:
                await kept.on_ready(manager, manager._history)  # noqa: SLF001 - of the same program
        except Exception:
            manager.stop()
            raise

    loading = asyncio.create_task(when_ready())
    try:
        # Python delivers signals to the main thread only.
        await manager.run(handle_signals=threading.current_thread() is threading.main_thread())
    finally:
        loading.cancel()
        await asyncio.wait({loading})
    if not loading.cancelled():
        loading.result()


def program_name(module: ModuleType | str) -> str:
    """Return the default name of a program: the name of its module, or of its file, as a Kubernetes name."""
    if not isinstance(module, str):
        module = str(vars(module).get("__file__")) if module.__name__ == "__main__" else module.__name__
    stem = Path(module).stem if module.endswith(".py") else module.rpartition(".")[2]
    return stem.replace("_", "-").strip("-").lower()


def _metrics(options: RunOptions) -> ProgramMetrics | None:
    if metrics_address(options) is None:
        return None
    from deltaloop.metrics import ProgramMetrics

    try:
        return ProgramMetrics()
    except MissingExtraError:
        if options.metrics_bind_address is not None:
            raise
        _log.warning("not serving metrics, because the extra 'metrics' is not installed")
        return None


@asynccontextmanager
async def _connected(
    options: RunOptions,
    controllers: Sequence[Controller],
    webhooks: ProgramWebhooks,
    definitions: Sequence[dict[str, Any]],
    metrics: ProgramMetrics | None,
    recorded: RecordedAccess,
    kept: KeptServer | None,
) -> AsyncGenerator[tuple[Client, Callable[[], Awaitable[None]]]]:
    """Yield a client, and a function that creates the objects that need running webhooks."""
    client_options = ClientOptions(on_request=None if options.record_access is None else recorded.sent)
    if metrics is not None:
        client_options = client_options.replace(metrics=metrics.requests)
    if options.embedded:
        from deltaloop.runtime.program.embedded import embedded_cluster

        async with embedded_cluster(options, controllers, webhooks, definitions, client_options, kept) as connected:
            yield connected
        return
    async with connect(
        kubeconfig=options.kubeconfig, context=options.context or None, options=client_options
    ) as client:
        yield client, _nothing_to_load


async def _nothing_to_load() -> None:
    """Load nothing, because the cluster already has its objects."""
