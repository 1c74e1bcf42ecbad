"""The Database operator with webhooks: what is missing is filled in, a disk keeps its size, old clients go on.

``deltaloop run examples.database.webhooks`` runs the controller, too.
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
    """What was wanted in the first version.

    Attributes:
        servers: How many servers.
        image: What they run.
        storage: How much each of them keeps.
        config_map: Name of a ConfigMap of the same namespace, whose data are the server's settings.
    """

    servers: Annotated[int, Meta(ge=0, le=9)] = 1
    image: str = "postgres:18"
    storage: str = "1Gi"
    config_map: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET


@dl.custom_resource(group="example.com", version="v1beta1", kind="Database", short_names=["db"], deprecated="use v1")
class OldDatabase(msgspec.Struct, kw_only=True):
    """A database, as the first version had it."""

    metadata: dl.ObjectMeta
    spec: OldDatabaseSpec
    status: DatabaseStatus | None = None


@dl.convert(OldDatabase, Database)
def to_new(old: OldDatabase) -> Database:
    """Make a Database of an old one."""
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
    """Make an old one of a Database."""
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
    """Give an image the version that is tested: without one it would be another one each time a node pulls it."""
    name = database.spec.image.rpartition("/")[2]
    if ":" not in name and "@" not in name:
        database.spec.image += f":{TAG}"


@dl.validate(Database, reads=[dl.kinds.CONFIG_MAP])
def check(database: Database, request: dl.AdmissionRequest[Database]) -> Iterator[dl.FieldError]:
    """Refuse what cannot be, and warn of what is not yet."""
    if database.spec.image.endswith(":latest"):
        yield dl.FieldError("spec.image", f"a version is needed, such as {TAG}", "FieldValueForbidden")
    if request.old is not None and request.old.spec.storage != database.spec.storage:
        yield dl.FieldError("spec.storage", "a disk keeps its size", "FieldValueForbidden")
    config = database.spec.config_ref
    if config is UNSET:
        return
    if request.lister(dl.kinds.CONFIG_MAP).find(f"{request.namespace}/{config.name}") is None:
        request.warn(f"there is no ConfigMap {config.name} yet: the Database waits for it")


WEBHOOKS = (complete, check, to_new, to_old)
__all__ = ["WEBHOOKS", "OldDatabase", "check", "complete", "reconcile", "to_new", "to_old"]
