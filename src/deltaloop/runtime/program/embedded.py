"""Embedded API server of a program, with its manifests, kubeconfig and roles."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.json_values import at, text
from deltaloop.api.kinds import CUSTOM_RESOURCE_DEFINITION
from deltaloop.api.status import AlreadyExistsError, ApiError, NotFoundError
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, read_manifests
from deltaloop.apiserver.options import CLUSTER_CONTROLLERS
from deltaloop.client import Client, ClientOptions, WriteOptions, connect
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.program.access import Program, restricted, rules_of
from deltaloop.runtime.program.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.runtime.program.options import RunOptions, is_sharded, lease_namespace
from deltaloop.runtime.program.webhooks import ProgramWebhooks
from deltaloop.webhooks import WebhookSet

if TYPE_CHECKING:
    from deltaloop.runtime.core.history import History
    from deltaloop.runtime.program.manager import Manager

_log: Final = logging.getLogger("deltaloop.runtime")

_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_CONFIGURATIONS: Final = tuple(
    f"admissionregistration.k8s.io/v1/{kind}WebhookConfiguration" for kind in ("Mutating", "Validating")
)
_STRICT: Final = WriteOptions(field_validation="Strict")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptServer:
    """Embedded server of another process, which outlives the program."""

    kubeconfig: Mapping[str, Any]
    fresh: frozenset[str]
    on_ready: Callable[[Manager, History], Awaitable[None]]


@asynccontextmanager
async def embedded_server(options: RunOptions) -> AsyncGenerator[ApiServer]:
    """Run a server, and write its kubeconfig if the options name a file."""
    file = None if options.write_kubeconfig is None else Path(options.write_kubeconfig)
    if file is not None:
        check_may_write(file)
    mode = "RBAC" if options.rbac else "AlwaysAllow"
    server_options = ServerOptions(controllers=CLUSTER_CONTROLLERS, authorization_mode=mode)
    async with ApiServer(server_options) as server:
        if file is not None:
            write_kubeconfig(file, server.kubeconfig())
        try:
            yield server
        finally:
            if file is not None:
                remove_kubeconfig(file)


@asynccontextmanager
async def embedded_cluster(
    options: RunOptions,
    controllers: Sequence[Controller],
    webhooks: ProgramWebhooks,
    definitions: Sequence[dict[str, Any]],
    client_options: ClientOptions,
    kept: KeptServer | None = None,
) -> AsyncGenerator[tuple[Client, Callable[[], Awaitable[None]]]]:
    """Run a server or use a kept one. Yield the client, and a function that creates objects after the webhooks run."""
    loaded = {os.fspath(path): read_manifests(Path(path)) for path in options.load}
    everything = [manifest for manifests in loaded.values() for manifest in manifests]
    made = _unless_loaded(definitions, everything)
    if kept is not None:
        everything = [manifest for path, manifests in loaded.items() if path in kept.fresh for manifest in manifests]
    early, late = split(everything, served=webhooks.address is not None)
    async with AsyncExitStack() as stack:
        if kept is None:
            server = await stack.enter_async_context(embedded_server(options))
            server.load([*made, *early])
            kubeconfig: Mapping[str, Any] = server.kubeconfig()
            extra = {} if options.write_kubeconfig is None else {"kubeconfig": str(options.write_kubeconfig)}
            _log.info("embedded API server is ready", extra={"url": server.url, **extra})
            admin = await stack.enter_async_context(connect(kubeconfig=kubeconfig))
        else:
            admin = await stack.enter_async_context(connect(kubeconfig=kept.kubeconfig))
            await _define(admin, made)
            await _unregister(admin, webhooks.name)
            await create_all(admin, early)
        await webhooks.register(admin)
        config = admin.config
        if options.rbac:
            program = Program(
                namespace=options.namespace or None,
                lease_namespace=lease_namespace(options, admin),
                shards=is_sharded(options),
                event_api=options.event_api,
                token_review=options.metrics_token_review,
                reads=WebhookSet(webhooks.webhooks).reads,
            )
            rules, _ = rules_of(controllers, program=program)
            names = "-".join(each.name for each in controllers) or webhooks.name
            config = await restricted(admin, rules, name=names)
        client = await stack.enter_async_context(Client(config, options=client_options))
        yield client, partial(create_all, admin, late)


async def _define(client: Client, definitions: Sequence[Manifest]) -> None:
    """Create the CRDs of classes, or replace their specifications. Objects and stored versions are kept."""
    for manifest in definitions:
        fields = manifest.fields
        try:
            await client.create(str(CUSTOM_RESOURCE_DEFINITION), fields)
        except AlreadyExistsError:
            current = await client.get(CUSTOM_RESOURCE_DEFINITION, text(at(fields, "metadata", "name")))
            replaced: dict[str, Any] = {**current.to_dict(), "spec": fields["spec"]}
            await client.update(CUSTOM_RESOURCE_DEFINITION, replaced)


async def _unregister(client: Client, name: str) -> None:
    """Delete webhook configurations of the previous code, because no server answers their calls any more."""
    for kind in _CONFIGURATIONS:
        with suppress(NotFoundError):
            await client.delete(kind, name)


def split(manifests: Sequence[Manifest], *, served: bool) -> tuple[list[Manifest], list[Manifest]]:
    """Return the manifests to load at the start, and those to create when the webhooks are served."""
    early = [each for each in manifests if not served or each.fields["kind"] in _FIRST]
    return early, [each for each in manifests if served and each.fields["kind"] not in _FIRST]


async def create_all(client: Client, manifests: Sequence[Manifest]) -> None:
    """Create objects, or merge manifests into objects that exist; raises ManifestError with file and document."""
    for manifest in manifests:
        fields = manifest.fields
        kind, name = f"{fields['apiVersion']}/{fields['kind']}", text(at(fields, "metadata", "name"))
        namespace = text(at(fields, "metadata", "namespace")) or None
        try:
            try:
                await client.create(kind, fields, namespace=namespace, options=_STRICT)
            except AlreadyExistsError:
                await client.patch(kind, name, fields, namespace=namespace, options=_STRICT)
        except (ApiError, ValueError) as error:
            raise manifest.error(str(error)) from error


def _unless_loaded(definitions: Sequence[dict[str, Any]], loaded: Sequence[Manifest]) -> list[Manifest]:
    def name(fields: Mapping[str, object]) -> tuple[object, object]:
        return fields.get("kind"), at(fields, "metadata", "name")

    there = {name(each.fields) for each in loaded}
    made = [Manifest("classes", number, each) for number, each in enumerate(definitions, start=1)]
    return [each for each in made if name(each.fields) not in there]
