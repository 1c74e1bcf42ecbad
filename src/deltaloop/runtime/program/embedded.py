"""Embedded API server of a program, with its manifests, kubeconfig and roles."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from deltaloop.api.json_values import at, text
from deltaloop.api.status import AlreadyExistsError, ApiError
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, read_manifests
from deltaloop.apiserver.options import CLUSTER_CONTROLLERS
from deltaloop.client import Client, ClientOptions, WriteOptions, connect
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.program.access import Program, restricted, rules_of
from deltaloop.runtime.program.kubeconfig_file import check_may_write, remove_kubeconfig, write_kubeconfig
from deltaloop.runtime.program.options import RunOptions, lease_namespace
from deltaloop.runtime.program.webhooks import ProgramWebhooks
from deltaloop.webhooks import WebhookSet

_log: Final = logging.getLogger("deltaloop.runtime")

_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_STRICT: Final = WriteOptions(field_validation="Strict")


@asynccontextmanager
async def embedded_cluster(
    options: RunOptions,
    controllers: Sequence[Controller],
    webhooks: ProgramWebhooks,
    definitions: Sequence[dict[str, Any]],
    client_options: ClientOptions,
) -> AsyncGenerator[tuple[Client, Callable[[], Awaitable[None]]]]:
    """Run a server, and yield the client and a function that creates the objects that need running webhooks."""
    file = None if options.write_kubeconfig is None else Path(options.write_kubeconfig)
    if file is not None:
        check_may_write(file)
    loaded = [manifest for path in options.load for manifest in read_manifests(Path(path))]
    early, late = split(loaded, served=webhooks.address is not None)
    mode = "RBAC" if options.rbac else "AlwaysAllow"
    server_options = ServerOptions(controllers=CLUSTER_CONTROLLERS, authorization_mode=mode)
    async with ApiServer(server_options) as server, AsyncExitStack() as stack:
        server.load([*_unless_loaded(definitions, loaded), *early])
        if file is not None:
            write_kubeconfig(file, server.kubeconfig())
            stack.callback(remove_kubeconfig, file)
        _log.info(
            "embedded API server is ready",
            extra={"url": server.url} if file is None else {"url": server.url, "kubeconfig": str(file)},
        )
        admin = await stack.enter_async_context(connect(kubeconfig=server.kubeconfig()))
        await webhooks.register(admin)
        config = admin.config
        if options.rbac:
            program = Program(
                namespace=options.namespace or None,
                lease_namespace=lease_namespace(options, admin),
                event_api=options.event_api,
                token_review=options.metrics_token_review,
                reads=WebhookSet(webhooks.webhooks).reads,
            )
            rules, _ = rules_of(controllers, program=program)
            names = "-".join(each.name for each in controllers) or webhooks.name
            config = await restricted(admin, rules, name=names)
        client = await stack.enter_async_context(Client(config, options=client_options))
        yield client, partial(create_all, admin, late)


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
