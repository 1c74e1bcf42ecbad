"""Rewrite all objects of a definition in its current storage version, by empty merge patches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import CUSTOM_RESOURCE_DEFINITION
from deltaloop.api.list_options import ListOptions
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import (
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from deltaloop.client import Client
from deltaloop.client.verbs.resource_list import ResourceList
from deltaloop.webhooks.core.storage_migration import (
    MigrationProgress,
    StoredVersions,
    entries_patch,
    progress_of,
    progress_patch,
    stored_versions,
)
from deltaloop.webhooks.errors import StorageVersionChangedError

_log: Final = logging.getLogger("deltaloop.webhooks")

_TRIES: Final = 5
_SAVE_EVERY: Final = 10.0
_MOST_FAILURES: Final = 100


@final
@dataclass(frozen=True, slots=True)
class MigrationFailure:
    """Object that could not be rewritten.

    Attributes:
        key: Namespace and name of the object.
        reason: Redacted error of the server.
    """

    key: str
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StorageMigration:
    """Progress or result of a migration.

    Attributes:
        definition: Name of the definition.
        version: Current storage version.
        others: Previous storage versions, which are removed from ``status.storedVersions`` at the end.
        written: Number of objects that were rewritten or already current. Without ``others``, only objects whose
            ``managedFields`` named a version that is not served.
        remaining: Number of remaining objects, or None if the server does not report it.
        failed: Number of objects that could not be rewritten.
        failures: Details of the failures, at most 100.
        done: Whether no object is left in a previous version.
    """

    definition: str
    version: str
    others: tuple[str, ...]
    written: int = 0
    remaining: int | None = None
    failed: int = 0
    failures: tuple[MigrationFailure, ...] = ()
    done: bool = False


async def migrate_storage(
    client: Client,
    definition: str,
    *,
    page_size: int = 500,
    concurrency: int = 8,
    on_progress: Callable[[StorageMigration], object] | None = None,
) -> StorageMigration:
    """Rewrite all objects of a definition, and remove unused versions from ``status.storedVersions``.

    If the migration is interrupted or canceled, the next call resumes it at most a few seconds earlier. The client
    needs permission to list and patch the objects, to get and patch the definition, and to update its status.

    Args:
        client: Client for all requests.
        definition: Name of the definition, for example ``databases.example.com``.
        page_size: Number of objects per list request. Only metadata is transferred.
        concurrency: Number of concurrent writes.
        on_progress: Function called after each page.

    Returns:
        Result of the migration. ``done`` is false if objects could not be rewritten.

    Raises:
        NotFoundError: If the definition does not exist.
        StorageVersionChangedError: If the storage version changes during the migration.
        InvalidArgumentError: If ``page_size`` or ``concurrency`` is less than 1.
        ApiError, TransportError: If a list or a request for the definition fails.
    """
    for name, number in (("page_size", page_size), ("concurrency", concurrency)):
        if number < 1:
            raise InvalidArgumentError(f"must be >= 1, got {number}.", argument=name)
    run = _Run(client, definition, page_size=page_size, concurrency=concurrency, on_progress=on_progress)
    return await run.to_the_end()


class _Run:
    def __init__(
        self,
        client: Client,
        definition: str,
        *,
        page_size: int,
        concurrency: int,
        on_progress: Callable[[StorageMigration], object] | None,
    ) -> None:
        self._client = client
        self._definition = definition
        self._page_size = page_size
        self._at_once = concurrency
        self._on_progress = on_progress
        self._failures: list[MigrationFailure] = []
        self._failed = 0
        self._written = 0
        self._saved_at = asyncio.get_running_loop().time()

    async def to_the_end(self) -> StorageMigration:
        fields = await self._get()
        versions = stored_versions(fields)
        saved = progress_of(fields, versions.wanted)
        token, self._written = (saved.continue_, saved.written) if saved is not None else ("", 0)
        while True:
            page = await self._page(versions.kind, token)
            await self._write(versions, page)
            token = page.continue_
            if self._on_progress is not None and (versions.others or self._written):
                self._on_progress(self._report(versions, remaining=page.remaining_item_count if token else 0))
            if not token:
                break
            await self._save(versions, token)
        if self._failures:
            await self._patch_definition(progress_patch(versions.wanted, None))
            return self._report(versions, remaining=0)
        if versions.others:
            await self._finish(versions)
        return self._report(versions, done=True)

    async def _get(self) -> dict[str, Any]:
        return (await self._client.get(CUSTOM_RESOURCE_DEFINITION, self._definition)).to_dict()

    async def _page(self, kind: ResourceType[Resource], token: str) -> ResourceList[Resource]:
        options = ListOptions(limit=self._page_size, continue_=token)
        try:
            return await self._client.list(kind, metadata_only=True, options=options)
        except ExpiredError as error:
            # The error contains a token that continues at the same place in the current list.
            fresh = error.status.metadata.continue_
            if not token or not fresh:
                raise
            return await self._page(kind, fresh)
        except BadRequestError:
            if not token:
                raise
            self._written = 0  # the token belongs to a different server, for example from before a restore
            return await self._page(kind, "")

    async def _write(self, versions: StoredVersions, page: ResourceList[Resource]) -> None:
        limit = asyncio.Semaphore(self._at_once)

        async def one(obj: Resource) -> None:
            async with limit:
                await self._write_one(versions, obj)

        try:
            async with asyncio.TaskGroup() as group:
                for obj in page:
                    group.create_task(one(obj))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _write_one(self, versions: StoredVersions, obj: Resource) -> None:
        kind, where = versions.kind, obj.namespace or None
        tries = 0
        while True:
            tries += 1
            patch = entries_patch(obj.to_dict()["metadata"], versions)
            if not patch and not versions.others:
                return
            try:
                await self._client.patch(kind, obj.name, patch, namespace=where)
            except NotFoundError:
                return
            except (ForbiddenError, UnauthorizedError, TooManyRequestsError):
                raise  # the next write would fail in the same way
            except ApiError as error:
                if isinstance(error, ConflictError) and tries < _TRIES:
                    if patch:
                        found = await self._client.find(kind, obj.name, namespace=where)
                        if found is None:
                            return
                        obj = found
                    continue
                self._failed += 1
                if len(self._failures) < _MOST_FAILURES:
                    self._failures.append(MigrationFailure(obj.key, redact(str(error))))
                return
            self._written += 1
            return

    async def _save(self, versions: StoredVersions, token: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._saved_at < _SAVE_EVERY or self._failures:
            return
        progress = MigrationProgress(token, self._written)
        await self._patch_definition(progress_patch(versions.wanted, progress))
        self._saved_at = now

    async def _finish(self, versions: StoredVersions) -> None:
        for left in reversed(range(_TRIES)):
            fields = await self._get()
            now = stored_versions(fields)
            if now.wanted != versions.wanted:
                raise StorageVersionChangedError(self._definition, was=versions.wanted, now=now.wanted)
            fields["status"]["storedVersions"] = [versions.wanted]
            try:
                await self._client.update_status(CUSTOM_RESOURCE_DEFINITION, fields)
            except ConflictError:
                if not left:
                    raise
                continue
            break
        await self._patch_definition(progress_patch(versions.wanted, None))
        _log.info(
            "all objects are stored in the storage version",
            extra={"definition": self._definition, "version": versions.wanted, "written": self._written},
        )

    async def _patch_definition(self, patch: Mapping[str, Any]) -> None:
        await self._client.patch(CUSTOM_RESOURCE_DEFINITION, self._definition, patch)

    def _report(
        self, versions: StoredVersions, *, remaining: int | None = None, done: bool = False
    ) -> StorageMigration:
        return StorageMigration(
            definition=self._definition,
            version=versions.wanted,
            others=versions.others,
            written=self._written,
            remaining=remaining,
            failed=self._failed,
            failures=tuple(self._failures),
            done=done,
        )
