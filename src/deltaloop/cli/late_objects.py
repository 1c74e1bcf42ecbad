"""Objects of ``run --embedded --load`` that are created after the program's webhooks are served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from deltaloop.api.json_values import at, text
from deltaloop.api.status import AlreadyExistsError, ApiError
from deltaloop.client import Client, WriteOptions
from deltaloop.runtime import Manager

if TYPE_CHECKING:
    from deltaloop.apiserver.core.controllers.manifests import Manifest

_POLL: Final = 0.05
_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_STRICT: Final = WriteOptions(field_validation="Strict")


def split(manifests: Sequence[Manifest], *, served: bool) -> tuple[list[Manifest], list[Manifest]]:
    """Return the manifests to load at the start, and those to create once webhooks are served."""
    early = [each for each in manifests if not served or each.fields["kind"] in _FIRST]
    return early, [each for each in manifests if served and each.fields["kind"] not in _FIRST]


async def create_all(client: Client, manifests: Sequence[Manifest]) -> None:
    """Create objects, or merge manifests into objects that exist.

    Raises:
        ManifestError: If the server or a webhook rejects an object; the error names its file and document.
    """
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


async def run_with(manager: Manager, load: Callable[[], Awaitable[None]]) -> None:
    """Run a manager until SIGINT or SIGTERM, and call a function when it is ready.

    Raises:
        Exception: What the function raises; the manager has stopped then.
    """

    async def when_ready() -> None:
        while not all(check.ok for check in manager.readiness()):  # noqa: ASYNC110 - readiness has no event
            await asyncio.sleep(_POLL)
        try:
            await load()
        except Exception:
            manager.stop()
            raise

    loading = asyncio.create_task(when_ready())
    try:
        await manager.run(handle_signals=True)
    finally:
        loading.cancel()
        await asyncio.wait({loading})
    if not loading.cancelled():
        loading.result()
