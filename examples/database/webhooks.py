"""Webhooks of the Database operator: defaults, validation, and conversion for clients of the first version.

``deltaloop run examples.database.webhooks`` runs the webhooks and the controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from examples.database.controller import Database, DatabaseSpec, DatabaseStatus, Settings, reconcile

TAG = "18"


class OldDatabaseSpec(msgspec.Struct, rename="camel"):
    """Desired state in the first version.

    Attributes:
        servers: Number of servers.
        image: Container image of the servers.
        storage: Size of the disk of each server.
        config_map: Name of a ConfigMap in the same namespace whose data are the settings of the servers.
    """

    servers: Annotated[int, Meta(ge=0, le=9)] = 1
    image: str = "postgres:18"
    storage: str = "1Gi"
    config_map: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET


@dl.custom_resource(group="example.com", version="v1beta1", kind="Database", short_names=["db"], deprecated="use v1")
class OldDatabase(msgspec.Struct, kw_only=True):
    """Database in its first version."""

    metadata: dl.ObjectMeta
    spec: OldDatabaseSpec
    status: DatabaseStatus | None = None


@dl.convert(OldDatabase, Database)
def to_new(old: OldDatabase) -> Database:
    """Convert a Database of the first version."""
    name = old.spec.config_map
    spec = DatabaseSpec(
        replicas=old.spec.servers,
        image=old.spec.image,
        storage=old.spec.storage,
        config_ref=UNSET if name is UNSET else Settings(name),
    )
    return Database(metadata=old.metadata, spec=spec, status=old.status)


@dl.convert(Database, OldDatabase)
def to_old(new: Database) -> OldDatabase:
    """Convert a Database to the first version."""
    config = new.spec.config_ref
    spec = OldDatabaseSpec(
        servers=new.spec.replicas,
        image=new.spec.image,
        storage=new.spec.storage,
        config_map=UNSET if config is UNSET else config.name,
    )
    return OldDatabase(metadata=new.metadata, spec=spec, status=new.status)


@dl.mutate(Database)
def complete(database: Database) -> None:
    """Add the tested version to an image without a tag, so that all nodes pull the same image."""
    name = database.spec.image.rpartition("/")[2]
    if ":" not in name and "@" not in name:
        database.spec.image += f":{TAG}"


@dl.validate(Database, reads=[dl.kinds.CONFIG_MAP])
def check(database: Database, request: dl.AdmissionRequest[Database]) -> Iterator[dl.FieldError]:
    """Reject invalid changes, and warn about a missing ConfigMap."""
    if database.spec.image.endswith(":latest"):
        yield dl.FieldError("spec.image", f"must have a version, for example {TAG}", "FieldValueForbidden")
    if request.old is not None and request.old.spec.storage != database.spec.storage:
        yield dl.FieldError("spec.storage", "must not change", "FieldValueForbidden")
    config = database.spec.config_ref
    if config is UNSET:
        return
    if request.lister(dl.kinds.CONFIG_MAP).find(f"{request.namespace}/{config.name}") is None:
        request.warn(f"ConfigMap {config.name} does not exist. The Database waits for it.")


WEBHOOKS = (complete, check, to_new, to_old)
__all__ = ["WEBHOOKS", "OldDatabase", "check", "complete", "reconcile", "to_new", "to_old"]
