"""Objects that were stored in an old version are written again, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api.status import Status
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.cli.migrate_storage import migrate_all
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import ForbiddenError, InvalidArgumentError, NotFoundError, StorageVersionChangedError
from deltaloop.webhooks import StorageMigration, migrate_storage, storage_migration
from deltaloop.webhooks.core.storage_migration import (
    ANNOTATION,
    MigrationProgress,
    entries_patch,
    progress_of,
    progress_patch,
)
from deltaloop.webhooks.core.storage_migration import stored_versions as read_versions
from tests.apiserver.serving import widget, widget_crd
from tests.having import having
from tests.servers import api_server

CRD = dl.kinds.CUSTOM_RESOURCE_DEFINITION
NAME = "widgets.example.com"
OLD, NEW = "example.com/v1beta1/Widget", "example.com/v1/Widget"
WIDGET = dl.ResourceType[dl.Resource]("example.com", "v1", "Widget", "widgets")
COUNT = 25


def definition(stored: str) -> dict[str, Any]:
    made = widget_crd()
    for version in made["spec"]["versions"]:
        version["storage"] = version["name"] == stored
    return made


async def store(client: Client, stored: str) -> None:
    versions = definition(stored)["spec"]["versions"]
    await client.patch(CRD, NAME, {"spec": {"versions": versions}})


async def stored_versions(client: Client) -> list[str]:
    fields: dict[str, Any] = (await client.get(CRD, NAME)).to_dict()
    return [*fields["status"]["storedVersions"]]


@asynccontextmanager
async def world(**options: Any) -> AsyncGenerator[tuple[Client, ApiServer]]:
    """A server with widgets that are stored as v1beta1, and a definition that stores v1."""
    options = {"insecure_http": True, "controllers": frozenset[str](), **options}
    async with (
        api_server(ServerOptions(**options)) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
    ):
        await client.create(CRD, definition("v1beta1"))
        for number in range(COUNT):
            await client.create(WIDGET, widget(f"w{number:02}"))
        await store(client, "v1")
        assert await stored_versions(client) == ["v1beta1", "v1"]
        yield client, server


async def versions(client: Client) -> set[str]:
    return {each.resource_version for each in await client.list(WIDGET)}


async def test_migration_writes_each_object_once_and_drops_old_version() -> None:
    async with world() as (client, _):
        before, said = await versions(client), list[StorageMigration]()
        ended = await migrate_storage(client, NAME, page_size=10, on_progress=said.append)
        assert (ended.done, ended.written, ended.others, ended.failed) == (True, COUNT, ("v1beta1",), 0)
        assert [(each.written, each.remaining) for each in said] == [(10, 15), (20, 5), (25, 0)]
        assert await stored_versions(client) == ["v1"]
        after = await versions(client)
        assert not before & after
        versions_left = [each for each in definition("v1")["spec"]["versions"] if each["name"] == "v1"]
        await client.patch(CRD, NAME, {"spec": {"versions": versions_left}})
        assert len(await client.list(WIDGET)) == COUNT
        again = await migrate_storage(client, NAME)
        assert (again.done, again.written) == (True, 0)
        assert await versions(client) == after


async def test_interrupted_migration_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_migration, "_SAVE_EVERY", 0.0)
    async with world() as (client, server):

        def crash(so_far: StorageMigration) -> None:
            if so_far.written == 20:
                raise RuntimeError("the machine is gone")

        with pytest.raises(RuntimeError):
            await migrate_storage(client, NAME, page_size=5, on_progress=crash)
        assert await stored_versions(client) == ["v1beta1", "v1"]
        written = await versions(client)
        server.compact()  # the token that was kept has expired
        said = list[StorageMigration]()
        ended = await migrate_storage(client, NAME, page_size=5, on_progress=said.append)
        assert ended.done
        assert [each.written for each in said] == [20, 25]  # the page that was not kept is written again: nothing new
        assert len(written & await versions(client)) == 20
        assert ANNOTATION not in (await client.get(CRD, NAME)).annotations


async def test_expired_continue_tokens_resume_at_same_position() -> None:
    async with world() as (client, server):
        ended = await migrate_storage(client, NAME, page_size=5, on_progress=lambda _: server.compact())
        assert (ended.done, ended.written) == (True, COUNT)


async def test_continue_token_of_another_server_restarts_migration() -> None:
    async with world() as (client, _):
        await client.patch(CRD, NAME, progress_patch("v1", MigrationProgress("no token", 7)))
        assert (await migrate_storage(client, NAME)).written == COUNT
        await store(client, "v1beta1")
        await client.patch(CRD, NAME, progress_patch("v1", MigrationProgress("of another version", 7)))
        assert (await migrate_storage(client, NAME)).written == COUNT
        assert await stored_versions(client) == ["v1beta1"]


async def test_concurrent_changes_do_not_disturb_migration() -> None:
    async with world() as (client, _):
        page = await client.list(WIDGET)

        async def meddle() -> None:
            await client.delete(WIDGET, "w24")
            await client.create(WIDGET, widget("a-new-one"))
            changed = page[20].to_dict()
            changed["spec"] = {"size": 99}
            await client.update(WIDGET, changed)

        meddling: list[asyncio.Task[None]] = []
        ended = await migrate_storage(
            client, NAME, page_size=10, on_progress=lambda _: meddling.append(asyncio.create_task(meddle()))
        )
        await asyncio.gather(*meddling, return_exceptions=True)
        assert ended.done
        assert (await client.get(WIDGET, "w20"))["spec"]["size"] == 99


async def test_conflict_is_retried_and_other_failures_are_reported() -> None:
    async with world() as (client, server):
        server.faults.add(Fault(do="refuse", verbs=("patch",), names=("w05",), code=409, count=3))
        server.faults.add(Fault(do="refuse", verbs=("patch",), names=("w06",), code=409))
        ended = await migrate_storage(client, NAME)
        assert [each.key for each in ended.failures] == ["default/w06"]
        server.faults.clear()
        server.faults.add(Fault(do="refuse", verbs=("update",), subresources=("status",), code=409, count=3))
        assert (await migrate_storage(client, NAME)).done


async def test_rejected_object_is_reported_and_old_version_is_kept() -> None:
    async with world() as (client, _):
        made = definition("v1")["spec"]["versions"]
        for version in made:
            size = {"type": "integer", "maximum": 10}
            spec = {"type": "object", "properties": {"size": size}}
            version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
            version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = [
                {"rule": "self.metadata.name != 'w03'", "message": "w03 is refused"}
            ]
        await client.patch(CRD, NAME, {"spec": {"versions": made}})
        lines: list[str] = []
        ended = await migrate_storage(client, NAME, page_size=10)
        assert (ended.done, ended.failed, [each.key for each in ended.failures]) == (False, 1, ["default/w03"])
        assert "w03 is refused" in ended.failures[0].reason
        assert await stored_versions(client) == ["v1beta1", "v1"]
        assert not await migrate_all(client, [NAME], concurrency=4, show=lines.append)
        assert lines[-1] == f"{NAME}: 1 objects could not be written, and may still be stored as v1beta1"


async def test_changed_storage_version_keeps_stored_versions() -> None:
    async with world() as (client, _):
        changing: list[asyncio.Task[None]] = []

        def change(so_far: StorageMigration) -> None:
            if so_far.written == 10:
                changing.append(asyncio.create_task(store(client, "v1beta1")))

        with pytest.raises(StorageVersionChangedError, check=having(now="v1beta1")):
            await migrate_storage(client, NAME, page_size=10, on_progress=change)
        await asyncio.gather(*changing)
        assert await stored_versions(client) == ["v1beta1", "v1"]


async def test_command_shows_progress() -> None:
    async with world() as (client, _):
        lines: list[str] = []
        assert await migrate_all(client, [NAME], concurrency=4, show=lines.append)
        assert lines == [
            f"{NAME}: {COUNT} written as v1, 0 left",
            f"{NAME}: all objects are stored as v1; you can remove v1beta1 from the definition",
        ]


async def test_impossible_migration_raises_error() -> None:
    async with world() as (client, _):
        with pytest.raises(InvalidArgumentError, check=having(argument="concurrency")):
            await migrate_storage(client, NAME, concurrency=0)
        with pytest.raises(NotFoundError):
            await migrate_storage(client, "missing.example.com")

        def refuse(verb: str, *_: object) -> None:
            if verb == "patch":
                raise ForbiddenError(Status(code=403, reason="Forbidden", message="no"))

        with pytest.raises(ForbiddenError):
            await migrate_storage(client.with_access_check(refuse), NAME)


def test_foreign_progress_annotation_is_ignored() -> None:
    of_another, at_the_end = (
        '{"version":"v2","continue":"x","written":1}',
        '{"version":"v1","continue":"","written":1}',
    )
    for annotation in ("", "{", of_another, at_the_end):
        assert progress_of({"metadata": {"annotations": {ANNOTATION: annotation}}}, "v1") is None
    patch = progress_patch("v1", MigrationProgress("x", 3))
    assert progress_of(patch, "v1") == MigrationProgress("x", 3, "v1")


def entry(version: str, *fields: str, manager: str = "m", operation: str = "Apply", **more: str) -> dict[str, Any]:
    spec: dict[str, Any] = {f"f:{name}": {} for name in fields}
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": f"example.com/{version}",
        "fieldsType": "FieldsV1",
    }
    return {**made, "fieldsV1": {"f:spec": spec}, **more}


def test_managed_fields_of_removed_versions_get_new_version() -> None:
    listed = {**definition("v1"), "status": {"storedVersions": ["v1beta1", "v1"]}}
    known = read_versions(listed)
    assert known.kept == {"v1"}
    assert entries_patch({"managedFields": [entry("v1", "a")]}, known) == {}
    assert entries_patch({}, known) == {}
    entries = [
        entry("v1beta1", "a"),
        entry("v0", "b", manager="n"),
        entry("v1beta1", "c", operation="Update", time="2026-01-02T03:04:05Z"),
        entry("v1", "d", operation="Update", time="2026-01-01T03:04:05Z"),
        entry("v1beta1", "e", operation="Update", subresource="status"),
    ]
    patch = entries_patch({"managedFields": entries, "resourceVersion": "7"}, known)
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["metadata"]["managedFields"] == [
        entry("v1", "a"),
        entry("v1", "b", manager="n"),
        entry("v1", "c", "d", operation="Update", time="2026-01-02T03:04:05Z"),
        entry("v1", "e", operation="Update", subresource="status"),
    ]


def test_managed_fields_of_served_versions_are_kept() -> None:
    listed: dict[str, Any] = {**definition("v1"), "status": {"storedVersions": ["v1"]}}
    assert entries_patch({"managedFields": [entry("v1beta1", "a")]}, read_versions(listed)) == {}
    listed["spec"]["versions"][1]["served"] = False
    assert entries_patch({"managedFields": [entry("v1beta1", "a")]}, read_versions(listed))["metadata"]["managedFields"]


@pytest.mark.parametrize("removed_before", [False, True])
async def test_apply_works_after_old_version_is_removed(removed_before: bool) -> None:
    async with world() as (client, _):
        old = dl.ResourceType[dl.Resource]("example.com", "v1beta1", "Widget", "widgets")
        applied = {
            "apiVersion": "example.com/v1beta1",
            "kind": "Widget",
            "metadata": {"name": "w00"},
            "spec": {"size": 7},
        }
        await client.apply(old, applied, force=True)
        only_new = [each for each in definition("v1")["spec"]["versions"] if each["name"] == "v1"]
        if removed_before:
            fields = (await client.get(CRD, NAME)).to_dict()
            fields["status"]["storedVersions"] = ["v1"]
            await client.update_status(CRD, fields)
        else:
            assert (await migrate_storage(client, NAME)).others == ("v1beta1",)
        await client.patch(CRD, NAME, {"spec": {"versions": only_new}})
        applied["apiVersion"] = "example.com/v1"
        if removed_before:
            with pytest.raises(dl.ApiError, match="invalid group"):
                await client.apply(WIDGET, applied)
            ended = await migrate_storage(client, NAME)
            assert (ended.done, ended.written, ended.others) == (True, 1, ())
        applied["spec"] = {}
        assert not (await client.apply(WIDGET, applied)).to_dict().get("spec")
