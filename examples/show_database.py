"""Run the Database operator: create a Database, change its settings, and delete it after a backup."""

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
TIMEOUT = 60.0
SET, JOB = dl.kinds.STATEFUL_SET, dl.kinds.JOB


async def show(scene: Scene) -> None:
    """Install the CRD, and run the operator with one Database."""
    client = scene.client
    [crd] = dl.read_yaml_documents((FOLDER / "crd.yaml").read_text(), source="crd.yaml")
    await client.apply(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    await client.wait_for(dl.kinds.CUSTOM_RESOURCE_DEFINITION, "databases.example.com", dl.wait.established())
    options = dl.ManagerOptions(namespace=scene.namespace)
    async with dl.EventRecorder(client, component="database") as recorder:
        manager = dl.Manager(client, [reconcile], recorder=recorder, options=options)
        running = asyncio.create_task(manager.run())
        try:
            await show_lifecycle(scene)
        finally:
            manager.stop()
            await running


async def show_lifecycle(scene: Scene) -> None:
    """Create, change and delete a Database, and check its objects."""
    client = scene.client

    async def reaches(check: Callable[[], Any], step: str) -> None:
        try:
            scene.expect(await eventually(check, within=TIMEOUT), step)
        except dl.errors.EventuallyError:
            scene.expect(False, step)

    async def stateful_set() -> dict[str, Any]:
        spec = (await client.get(SET, "a"))["spec"]
        return {"replicas": spec["replicas"], "args": list(spec["template"]["spec"]["containers"][0]["args"])}

    for document in dl.read_yaml_documents((FOLDER / "database.yaml").read_text(), source="database.yaml"):
        await client.create(f"{document['apiVersion']}/{document['kind']}", document)
    first = {"replicas": 2, "args": ["-c", "max_connections=100"]}
    await reaches(lambda: equals(stateful_set, first), "the StatefulSet has the settings of the ConfigMap")
    await client.patch(dl.kinds.CONFIG_MAP, "settings", {"data": {"max_connections": "200"}})
    await reaches(
        lambda: equals(stateful_set, {**first, "args": ["-c", "max_connections=200"]}),
        "changed settings reach the servers",
    )
    password = (await client.get(dl.kinds.SECRET, "a"))["data"]
    await client.patch(SET, "a", {"spec": {"replicas": 5}})
    await reaches(
        lambda: equals(stateful_set, {"replicas": 2, "args": ["-c", "max_connections=200"]}), "drift is corrected"
    )
    scene.expect((await client.get(dl.kinds.SECRET, "a"))["data"] == password, "the password does not change")
    job = backup_name(await client.get(Database, "a"))
    await client.delete(Database, "a", options=dl.DeleteOptions(propagation_policy="Foreground"))
    await reaches(lambda: client.get(JOB, job), "a backup of the deleted Database starts")
    scene.expect(
        (await client.get(Database, "a")).metadata.deletion_timestamp, "the Database stays until the backup is complete"
    )
    if scene.kubeconfig is not None:  # the embedded server runs no Jobs, so complete this one
        at = "2026-01-01T00:00:00Z"
        ended = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": at, "completionTime": at, "conditions": ended}
        await client.patch(JOB, job, {"status": status}, subresource="status")
    await reaches(lambda: equals(lambda: names(client), []), "the Database is deleted after the backup")


async def equals(read: Callable[[], Any], expected: object) -> bool:
    """Return whether the current value is the expected value."""
    return bool(await read() == expected)


async def names(client: dl.Client) -> list[str]:
    """Return the names of all Databases."""
    return [each.metadata.name for each in await client.list_all(Database, namespace=client.namespace)]
