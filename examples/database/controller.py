"""Run a StatefulSet, a Service and a Secret for each Database, and make a final backup before it is deleted."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from prometheus_client import Counter

import deltaloop as dl
from deltaloop.crds import Conditions, PrinterColumn

BACKUPS = Counter("database_backups", "Final backups of deleted databases, by result.", ["result"])
PORT = 5432
DAY = 24 * 3600
NOT_YET = dl.Result(requeue_after=60, jitter=0.1)  # the end of the Job triggers an earlier reconcile
READY = '.status.conditions[?(@.type=="Ready")]'


class Settings(msgspec.Struct):
    """Reference to a ConfigMap in the same namespace.

    Attributes:
        name: Name of the ConfigMap.
    """

    name: Annotated[str, Meta(min_length=1)]


class DatabaseSpec(msgspec.Struct, rename="camel"):
    """Desired state.

    Attributes:
        replicas: Number of servers.
        image: Container image of the servers.
        storage: Size of the disk of each server.
        config_ref: ConfigMap in the same namespace whose data are the settings of the servers.
    """

    replicas: Annotated[int, Meta(ge=0, le=9)] = 1
    image: str = "postgres:18"
    storage: str = "1Gi"
    config_ref: Settings | UnsetType = UNSET


class DatabaseStatus(msgspec.Struct, rename="camel"):
    """Observed state.

    Attributes:
        observed_generation: Generation of the spec that this status describes.
        ready_replicas: Number of servers that are ready.
        conditions: Conditions. Ready is true if all servers are ready.
    """

    observed_generation: int = 0
    ready_replicas: int = 0
    conditions: Conditions = []


@dl.custom_resource(
    group="example.com",
    version="v1",
    storage=True,
    short_names=["db"],
    printer_columns=[
        PrinterColumn("Replicas", ".spec.replicas"),
        PrinterColumn("Ready", f"{READY}.status"),
        PrinterColumn("Reason", f"{READY}.reason"),
    ],
)
class Database(msgspec.Struct, kw_only=True):
    """Database with its servers, their disks and its password."""

    metadata: dl.ObjectMeta
    spec: DatabaseSpec
    status: DatabaseStatus | None = None


@dl.controller(
    Database,
    children=[dl.kinds.SECRET, dl.kinds.SERVICE, dl.kinds.STATEFUL_SET],
    tracks=[dl.kinds.JOB],
    writes=[dl.Permission(dl.kinds.JOB, verbs=("create",))],
    indexers={"config": dl.field_path("spec.configRef.name")},
    watches=[dl.Watch(dl.kinds.CONFIG_MAP, by_index="config")],
    finalizer="example.com/last-backup",
    workers=4,
    timeout=30,
)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Apply the children of one Database, and update its status."""
    database = await ctx.client.find(Database, request.name)
    if database is None:
        return
    async with ctx.status(database, on_error="Ready") as status:
        settings: dict[str, str] = {}
        if (config := database.spec.config_ref) is not UNSET:
            found = await ctx.client.find(dl.kinds.CONFIG_MAP, config.name)
            if found is None:
                message = f"ConfigMap {config.name} does not exist"
                status.set_condition("Ready", False, reason="ConfigMissing", message=message)
                return
            settings = dict(found.get("data", {}))
        login = await login_secret(database, ctx)
        # The backup needs the servers, so they must stay even if the Database is deleted in the foreground.
        servers = (login, service(database), stateful_set(database, settings))
        applied = await ctx.children.apply(*servers, garbage_collected=False)
        if applied.written:
            ctx.recorder.event(database, "Normal", "Applied", ", ".join(each.kind for each in applied.written))
        current = await ctx.client.find(dl.kinds.STATEFUL_SET, request.name)
        status["readyReplicas"] = current.get("status", {}).get("readyReplicas", 0) if current else 0
        reason = "Running" if applied.ready else "Starting"
        status.set_condition("Ready", applied.ready, reason=reason, message="; ".join(applied.not_ready.values()))


@reconcile.cleanup
async def back_up(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
    """Make one final backup. The Database and its servers are deleted only after the Job is complete."""
    # Read from the server: a stale cache can contain a deleted Database, and its new Job would never be deleted.
    database = await ctx.client.live.find(Database, request.name)
    if database is None:
        return None
    name = backup_name(database)
    job = await ctx.track(dl.kinds.JOB, name)
    if job is None:
        await ctx.client.create(dl.kinds.JOB, backup_job(name, database))
        ctx.recorder.event(database, "Normal", "BackingUp", f"Job {name} makes the final backup")
        return NOT_YET
    ended = {each["type"] for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"}
    if not ended & {"Complete", "Failed"}:
        return NOT_YET
    if ctx.memo.setdefault(job.uid, ctx.number) == ctx.number:  # count the result once
        BACKUPS.labels("failed" if "Failed" in ended else "made").inc()
    if "Failed" in ended:
        async with ctx.status(database, on_error="Ready"):
            raise dl.errors.TerminalError(f"the final backup failed. Delete Job {name} to try again.")
    await ctx.children.apply(prune_all=True)
    return None


def backup_name(database: Database) -> str:
    """Return the name of the backup Job. It contains the uid, because a later Database can have the same name."""
    return f"{database.metadata.name[:40]}-last-backup-{database.metadata.uid[:8]}"


async def login_secret(database: Database, ctx: dl.Context) -> dict[str, Any]:
    """Return the Secret with the password, which is generated once."""
    name = database.metadata.name
    found = await ctx.client.find(dl.kinds.SECRET, name)
    if found is None:  # the cache can be stale
        found = await ctx.client.live.find(dl.kinds.SECRET, name)
    login = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    if found is not None:
        return {**login, "data": dict(found["data"])}
    return {**login, "stringData": {"POSTGRES_PASSWORD": secrets.token_urlsafe()}}


def service(database: Database) -> dict[str, Any]:
    """Return the headless Service that gives each server a DNS name."""
    name = database.metadata.name
    spec = {"clusterIP": "None", "selector": {"database": name}, "ports": [{"name": "sql", "port": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def stateful_set(database: Database, settings: dict[str, str]) -> dict[str, Any]:
    """Return the StatefulSet of the servers. Each server has its own volume claim."""
    name, desired = database.metadata.name, database.spec
    labels = {"database": name}
    arguments = [word for key, value in sorted(settings.items()) for word in ("-c", f"{key}={value}")]
    container = {
        "name": "postgres",
        "image": desired.image,
        "args": arguments,
        "envFrom": [{"secretRef": {"name": name}}],
        "ports": [{"name": "sql", "containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql"}],
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": desired.storage}}}
    spec = {
        "serviceName": name,
        "replicas": desired.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def backup_job(name: str, database: Database) -> dict[str, Any]:
    """Return the backup Job. It has no owner, because a foreground deletion would delete it."""
    host = database.metadata.name
    container = {
        "name": "backup",
        "image": database.spec.image,
        "command": ["sh", "-c", f'PGPASSWORD="$POSTGRES_PASSWORD" pg_dumpall -U postgres -h {host}'],
        "envFrom": [{"secretRef": {"name": database.metadata.name}}],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    spec = {"backoffLimit": 3, "activeDeadlineSeconds": DAY, "ttlSecondsAfterFinished": DAY, "template": {"spec": pod}}
    return {"metadata": {"name": name}, "spec": spec}
