"""Plans of a module: on a snapshot, or on a cluster that is only read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver import Manifest
from deltaloop.client import Client
from deltaloop.planning.cluster import cluster_objects
from deltaloop.planning.core.result import Plan
from deltaloop.planning.reading import read_objects
from deltaloop.planning.run import LoadedSnapshot, PlannedVersion, Progress, run_plan
from deltaloop.planning.snapshot_file import taken_at
from deltaloop.runtime import Controller
from deltaloop.runtime.program.definitions import program_definitions
from deltaloop.webhooks import AdmissionWebhook, ConversionFunction
from deltaloop.webhooks.declaring import Webhook


def version_of(
    name: str,
    module: ModuleType | None,
    controllers: tuple[Controller, ...],
    webhooks: tuple[Webhook, ...] = (),
    *,
    namespace: str | None = None,
) -> PlannedVersion:
    """Return a version of a program, with the CRDs of the classes of its module."""
    modules = [] if module is None else [module]
    definitions = tuple(program_definitions(modules, controllers, webhooks))
    return PlannedVersion(
        name=name, controllers=controllers, webhooks=webhooks, definitions=definitions, namespace=namespace
    )


async def plan(module: ModuleType, snapshot: str | Path, *, namespace: str | None = None) -> Plan:
    """Return the changes that the controllers of a module would make to the objects of a snapshot.

    The program runs on an embedded server in virtual time, without a network, until it rests::

        plan = await dl.plan(my_operator, "tests/snapshot.jsonl")
        assert not plan.changes, plan

    The call blocks the event loop that awaits it, because the plan has its own loop and replaces time and randomness in
    the whole process.

    Args:
        module: Module with controllers, webhooks and classes of kinds.
        snapshot: File of ``deltaloop snapshot``, manifest, or folder of manifests.
        namespace: The only namespace that the program watches, or None for all namespaces.

    Raises:
        InvalidArgumentError: If the module has no controllers.
        PlanError: If the snapshot cannot be read, or the program waits forever.
        ManifestError: If an object cannot be read or is rejected.
    """
    declared = [*dict.fromkeys(each for each in vars(module).values() if isinstance(each, _DECLARED))]
    controllers = tuple(each for each in declared if isinstance(each, Controller))
    webhooks = tuple(each for each in declared if not isinstance(each, Controller))
    if not controllers:
        raise InvalidArgumentError(
            f"must contain controllers, got {getattr(module, '__name__', module)}. Pass the module that declares them.",
            argument="module",
        )
    version = version_of(module.__name__, module, controllers, webhooks, namespace=namespace)

    def made() -> Plan:
        return run_plan(version, file_snapshot(Path(snapshot), version)).plan

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="plan") as thread:
        return thread.submit(made).result()


_DECLARED = (Controller, AdmissionWebhook, ConversionFunction)


def file_snapshot(
    path: Path, version: PlannedVersion | None = None, progress: Progress | None = None
) -> LoadedSnapshot:
    """Load a snapshot or manifests, by default with the CRDs of a version; raises PlanError or ManifestError."""
    definitions = () if version is None else version.definitions
    return LoadedSnapshot(taken_at=taken_at(path), definitions=definitions, progress=progress).load(read_objects(path))


async def cluster_snapshot(client: Client, version: PlannedVersion, progress: Progress | None = None) -> LoadedSnapshot:
    """Read the objects of a version from a cluster; raises PlanError or ApiError."""
    snapshot = LoadedSnapshot(progress=progress)
    found = cluster_objects(client, version.controllers, version.webhooks, namespace=version.namespace)
    number = 0
    async for fields in found:
        number += 1
        snapshot.add(Manifest(client.config.server, number, fields))
    return snapshot
