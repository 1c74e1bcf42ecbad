"""Runs a database for each Database: a StatefulSet with claims, a Service, a Secret; a last backup before it goes."""

from __future__ import annotations

import secrets
from typing import Any

from prometheus_client import Counter

import deltaloop as dl

DATABASE = dl.ResourceType[dl.Resource]("example.com", "v1", "Database", "databases")
BACKUPS = Counter("database_backups", "Last backups of databases that were deleted, by how they ended.", ["result"])
PORT = 5432
NOT_YET = dl.Result(requeue_after=60, jitter=0.1)  # its Job's end comes first


@dl.controller(
    DATABASE,
    children=[dl.kinds.SECRET, dl.kinds.SERVICE, dl.kinds.STATEFUL_SET],
    owns=[dl.kinds.JOB],
    writes=[dl.Access(dl.kinds.JOB, verbs=("create",))],
    indexers={"config": dl.path("spec.configRef.name")},
    watches=[dl.Watch(dl.kinds.CONFIG_MAP, by_index="config")],
    finalizer="example.com/last-backup",
    workers=4,
    timeout=30,
)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Make what one Database asks for come true."""
    database = await ctx.client.find(DATABASE, request.name, namespace=request.namespace)
    if database is None:
        return
    async with ctx.status(database, on_error="Ready") as status:
        settings = await settings_of(database, ctx)
        if settings is None:
            name = database["spec"]["configRef"]["name"]
            status.set_condition("Ready", False, reason="ConfigMissing", message=f"there is no ConfigMap {name}")
            return
        login = await login_of(database, ctx)
        applied = await ctx.children.apply(login, service(database), stateful_set(database, settings))
        if applied.written:
            ctx.recorder.event(database, "Normal", "Applied", ", ".join(each.kind for each in applied.written))
        running = await ctx.client.find(dl.kinds.STATEFUL_SET, database.name, namespace=database.namespace)
        status["readyReplicas"] = running.get("status", {}).get("readyReplicas", 0) if running else 0
        why = "; ".join(applied.not_ready.values())
        status.set_condition("Ready", applied.ready, reason="Starting" if why else "Running", message=why)


async def give_up(request: dl.Request, ctx: dl.Context) -> bool:
    """Let a Database go whose last backup has not ended within a day."""
    ctx.logger.error("the last backup has not ended", extra={"job": f"{request.name}-last-backup"})
    BACKUPS.labels("given up").inc()
    return True


@reconcile.cleanup(deadline=24 * 3600, on_deadline=give_up)
async def back_up(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
    """Make a last backup, once; the Database goes when its Job is done."""
    name = f"{request.name}-last-backup"
    job = await ctx.client.find(dl.kinds.JOB, name, namespace=request.namespace)
    if job is None:
        # Asked of the server: a cache that lags still has what is gone, and a Job of nobody would be deleted at once.
        database = await ctx.client.live.find(DATABASE, request.name, namespace=request.namespace)
        if database is None:
            return None
        await ctx.client.create(dl.kinds.JOB, backup_job(name, database))
        ctx.recorder.event(database, "Normal", "BackingUp", f"the last backup is made by Job {name}")
        return NOT_YET
    ended = {each["type"] for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"}
    if not ended & {"Complete", "Failed"}:
        return NOT_YET
    BACKUPS.labels("made" if "Complete" in ended else "failed").inc()
    return None


async def settings_of(database: dl.Resource, ctx: dl.Context) -> dict[str, str] | None:
    """Return the server's settings; None if the ConfigMap that has them is not there."""
    if "configRef" not in database["spec"]:
        return {}
    name = database["spec"]["configRef"]["name"]
    found = await ctx.client.find(dl.kinds.CONFIG_MAP, name, namespace=database.namespace)
    return None if found is None else dict(found.get("data", {}))


async def login_of(database: dl.Resource, ctx: dl.Context) -> dict[str, Any]:
    """Return the Secret with the password, which is drawn once."""
    there = await ctx.client.find(dl.kinds.SECRET, database.name, namespace=database.namespace)
    if there is None:  # a cache may be behind
        there = await ctx.client.live.find(dl.kinds.SECRET, database.name, namespace=database.namespace)
    login = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": database.name}}
    if there is not None:
        return {**login, "data": dict(there["data"])}
    return {**login, "stringData": {"POSTGRES_PASSWORD": secrets.token_urlsafe()}}


def service(database: dl.Resource) -> dict[str, Any]:
    """Return the headless Service that gives each server a name."""
    spec = {"clusterIP": "None", "selector": {"database": database.name}, "ports": [{"name": "sql", "port": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": database.name}, "spec": spec}


def stateful_set(database: dl.Resource, settings: dict[str, str]) -> dict[str, Any]:
    """Return the servers, each with a claim of its own."""
    wanted, labels = database["spec"], {"database": database.name}
    arguments = [word for name, value in sorted(settings.items()) for word in ("-c", f"{name}={value}")]
    container = {
        "name": "postgres",
        "image": wanted["image"],
        "args": arguments,
        "envFrom": [{"secretRef": {"name": database.name}}],
        "ports": [{"name": "sql", "containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql"}],
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wanted["storage"]}}}
    spec = {
        "serviceName": database.name,
        "replicas": wanted["replicas"],
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": database.name}, "spec": spec}


def backup_job(name: str, database: dl.Resource) -> dict[str, Any]:
    """Return the Job that makes a backup."""
    container = {
        "name": "backup",
        "image": database["spec"]["image"],
        "command": ["sh", "-c", f'PGPASSWORD="$POSTGRES_PASSWORD" pg_dumpall -U postgres -h {database.name}'],
        "envFrom": [{"secretRef": {"name": database.name}}],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    job: dict[str, Any] = {
        "metadata": {"name": name, "namespace": database.namespace},
        "spec": {"backoffLimit": 3, "template": {"spec": pod}},
    }
    dl.set_controller_reference(job, database, DATABASE)
    return job
