"""Runs a database for each Database: a StatefulSet with claims, a Service, a Secret; a last backup before it goes."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from prometheus_client import Counter

import deltaloop as dl
from deltaloop.crds import Conditions, PrinterColumn

BACKUPS = Counter("database_backups", "Last backups of databases that were deleted, by how they ended.", ["result"])
PORT = 5432
DAY = 24 * 3600
NOT_YET = dl.Result(requeue_after=60, jitter=0.1)  # the end of the Job comes first
READY = '.status.conditions[?(@.type=="Ready")]'


class Settings(msgspec.Struct):
    """Names a ConfigMap of the same namespace.

    Attributes:
        name: Its name.
    """

    name: Annotated[str, Meta(min_length=1)]


class DatabaseSpec(msgspec.Struct, rename="camel"):
    """What is wanted.

    Attributes:
        replicas: How many servers.
        image: What they run.
        storage: How much each of them keeps.
        config_ref: A ConfigMap of the same namespace, whose data are the server's settings.
    """

    replicas: Annotated[int, Meta(ge=0, le=9)] = 1
    image: str = "postgres:18"
    storage: str = "1Gi"
    config_ref: Settings | UnsetType = UNSET


class DatabaseStatus(msgspec.Struct, rename="camel"):
    """What there is.

    Attributes:
        observed_generation: The generation that this was found out for.
        ready_replicas: How many servers are ready.
        conditions: Ready says whether all is as wanted, and why not.
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
    """A database with its servers, their storage and its password."""

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
    """Make what one Database asks for come true."""
    database = await ctx.client.find(Database, request.name)
    if database is None:
        return
    async with ctx.status(database, on_error="Ready") as status:
        settings: dict[str, str] = {}
        if (config := database.spec.config_ref) is not UNSET:
            found = await ctx.client.find(dl.kinds.CONFIG_MAP, config.name)
            if found is None:
                message = f"there is no ConfigMap {config.name}"
                status.set_condition("Ready", False, reason="ConfigMissing", message=message)
                return
            settings = dict(found.get("data", {}))
        login = await login_of(database, ctx)
        # The backup needs them: they stay until it is made, also when the Database is deleted in the foreground.
        servers = (login, service(database), stateful_set(database, settings))
        applied = await ctx.children.apply(*servers, garbage_collected=False)
        if applied.written:
            ctx.recorder.event(database, "Normal", "Applied", ", ".join(each.kind for each in applied.written))
        running = await ctx.client.find(dl.kinds.STATEFUL_SET, request.name)
        status["readyReplicas"] = running.get("status", {}).get("readyReplicas", 0) if running else 0
        why = "; ".join(applied.not_ready.values())
        status.set_condition("Ready", applied.ready, reason="Starting" if why else "Running", message=why)


@reconcile.cleanup
async def back_up(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
    """Make a last backup, once; the Database goes with its servers when the Job is complete, and not if it fails."""
    # Asked of the server: a cache that lags still has what is gone, and nothing would delete the Job.
    database = await ctx.client.live.find(Database, request.name)
    if database is None:
        return None
    name = backup_name(database)
    job = await ctx.track(dl.kinds.JOB, name)
    if job is None:
        await ctx.client.create(dl.kinds.JOB, backup_job(name, database))
        ctx.recorder.event(database, "Normal", "BackingUp", f"the last backup is made by Job {name}")
        return NOT_YET
    ended = {each["type"] for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"}
    if not ended & {"Complete", "Failed"}:
        return NOT_YET
    if ctx.memo.setdefault(job.uid, ctx.number) == ctx.number:  # counted once, however often this runs
        BACKUPS.labels("failed" if "Failed" in ended else "made").inc()
    if "Failed" in ended:
        async with ctx.status(database, on_error="Ready"):
            raise dl.errors.TerminalError(f"the last backup has failed; delete Job {name} for another one")
    await ctx.children.apply(prune_all=True)
    return None


def backup_name(database: Database) -> str:
    """Return the name of the Job that backs up this Database, and no other one of its name before or after it."""
    return f"{database.metadata.name[:40]}-last-backup-{database.metadata.uid[:8]}"


async def login_of(database: Database, ctx: dl.Context) -> dict[str, Any]:
    """Return the Secret with the password, which is drawn once."""
    name = database.metadata.name
    there = await ctx.client.find(dl.kinds.SECRET, name)
    if there is None:  # a cache may be behind
        there = await ctx.client.live.find(dl.kinds.SECRET, name)
    login = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    if there is not None:
        return {**login, "data": dict(there["data"])}
    return {**login, "stringData": {"POSTGRES_PASSWORD": secrets.token_urlsafe()}}


def service(database: Database) -> dict[str, Any]:
    """Return the headless Service that gives each server a name."""
    name = database.metadata.name
    spec = {"clusterIP": "None", "selector": {"database": name}, "ports": [{"name": "sql", "port": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def stateful_set(database: Database, settings: dict[str, str]) -> dict[str, Any]:
    """Return the servers, each with a claim of its own."""
    name, wanted = database.metadata.name, database.spec
    labels = {"database": name}
    arguments = [word for key, value in sorted(settings.items()) for word in ("-c", f"{key}={value}")]
    container = {
        "name": "postgres",
        "image": wanted.image,
        "args": arguments,
        "envFrom": [{"secretRef": {"name": name}}],
        "ports": [{"name": "sql", "containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql"}],
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wanted.storage}}}
    spec = {
        "serviceName": name,
        "replicas": wanted.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def backup_job(name: str, database: Database) -> dict[str, Any]:
    """Return the Job that makes a backup; without an owner, or a deletion in the foreground would take it away."""
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
