"""Runs the Database operator: a Database gets its servers, follows its settings, and goes once its backup is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.testing import eventually
from examples.database.controller import Database, backup_name, reconcile
from examples.run import Scene

FOLDER = Path(__file__).parent / "database"
PATIENCE = 60.0
SET, JOB = dl.kinds.STATEFUL_SET, dl.kinds.JOB


async def show(scene: Scene) -> None:
    """Show a Database from its making to its end."""
    client = scene.client
    [crd] = dl.read_yaml_documents((FOLDER / "crd.yaml").read_text(), source="crd.yaml")
    await client.apply(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    await client.wait_for(dl.kinds.CUSTOM_RESOURCE_DEFINITION, "databases.example.com", dl.wait.established())
    options = dl.ManagerOptions(namespace=scene.namespace)
    async with dl.EventRecorder(client, component="database") as recorder:
        manager = dl.Manager(client, [reconcile], recorder=recorder, options=options)
        running = asyncio.create_task(manager.run())
        try:
            await show_life(scene)
        finally:
            manager.stop()
            await running


async def show_life(scene: Scene) -> None:
    """Show that it comes, follows, is mended, and is backed up before it goes."""
    client = scene.client

    async def comes(check: Callable[[], Any], what: str) -> None:
        try:
            scene.expect(await eventually(check, within=PATIENCE), what)
        except dl.errors.EventuallyError:
            scene.expect(False, what)

    async def made() -> dict[str, Any]:
        spec = (await client.get(SET, "a"))["spec"]
        return {"replicas": spec["replicas"], "args": list(spec["template"]["spec"]["containers"][0]["args"])}

    for document in dl.read_yaml_documents((FOLDER / "database.yaml").read_text(), source="database.yaml"):
        await client.create(f"{document['apiVersion']}/{document['kind']}", document)
    first = {"replicas": 2, "args": ["-c", "max_connections=100"]}
    await comes(lambda: is_(made, first), "a Database has its StatefulSet, with the settings of its ConfigMap")
    await client.patch(dl.kinds.CONFIG_MAP, "settings", {"data": {"max_connections": "200"}})
    await comes(lambda: is_(made, {**first, "args": ["-c", "max_connections=200"]}), "new settings reach its servers")
    password = (await client.get(dl.kinds.SECRET, "a"))["data"]
    await client.patch(SET, "a", {"spec": {"replicas": 5}})
    await comes(lambda: is_(made, {"replicas": 2, "args": ["-c", "max_connections=200"]}), "drift is mended")
    scene.expect((await client.get(dl.kinds.SECRET, "a"))["data"] == password, "its password is the first one")
    job = backup_name(await client.get(Database, "a"))
    await client.delete(Database, "a", options=dl.DeleteOptions(propagation_policy="Foreground"))
    await comes(lambda: client.get(JOB, job), "a deleted Database is backed up first")
    scene.expect((await client.get(Database, "a")).metadata.deletion_timestamp, "and stays until that is made")
    if scene.kubeconfig is not None:  # an API server alone runs no Jobs: this one is said to be complete
        at = "2026-01-01T00:00:00Z"
        ended = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": at, "completionTime": at, "conditions": ended}
        await client.patch(JOB, job, {"status": status}, subresource="status")
    await comes(lambda: is_(lambda: names(client), []), "then it goes")


async def is_(read: Callable[[], Any], wanted: object) -> bool:
    """Tell whether something reads so now."""
    return bool(await read() == wanted)


async def names(client: dl.Client) -> list[str]:
    """Return the names of all Databases."""
    return [each.metadata.name for each in await client.list_all(Database, namespace=client.namespace)]
