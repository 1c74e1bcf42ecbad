"""State of a server that begins with the objects of another server, which keep uids, managed fields and versions."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.builtin_tables import built_in
from deltaloop.apiserver.core.controllers.manifests import Manifest, load_manifest
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object, stored_version
from deltaloop.apiserver.core.storage.store import RevisionStore, StoreState
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.options import ServerOptions
from deltaloop.apiserver.server import ApiServer
from deltaloop.schemas.field_errors import SchemaError

_CRD: Final = kinds.CUSTOM_RESOURCE_DEFINITION
_NAMESPACE: Final = kinds.NAMESPACE


@final
class RestoredState:
    """State that grows object by object: namespaces and CRDs first."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._state = ServerState(RevisionStore(), Registry(built_in()))
        self._state.store.begin_with(ApiServer(options).first_objects())
        self._random = random.Random(0)  # two runs on the same objects must have the same uids
        self._uids: set[str] = set()
        self._owners: set[str] = set()

    def serves(self, fields: dict[str, object]) -> bool:
        """Return whether the kind of an object is served, because it is built in or its CRD was added before."""
        return self._served(fields) is not None

    def add(self, manifest: Manifest) -> None:
        """Add an object, and its namespace if it is missing; raises ManifestError."""
        fields = manifest.fields
        metadata = mapping(fields.get("metadata"))
        uid, version = text(metadata.get("uid")), text(metadata.get("resourceVersion"))
        served = self._served(fields)
        if served is not None and served.type.namespaced:
            self._require_namespace(text(metadata.get("namespace")) or "default")
        if served is None or not uid or not version.isdecimal():
            bare = {name: value for name, value in metadata.items() if name not in _ASSIGNED}
            kept = {name: value for name, value in fields.items() if name != "status" or uid}
            made = Manifest(manifest.source, manifest.number, {**kept, "metadata": bare})
            load_manifest(self._state, made, moment=self._moment())
            return
        if not text(metadata.get("name")):
            raise manifest.error("must have metadata.name")
        self._uids.add(uid)
        self._owners.update(text(at(owner, "uid")) for owner in items(metadata.get("ownerReferences")))
        key = served.key(text(metadata.get("namespace")), text(metadata.get("name")))
        self._state.store.place(served.storage, key, served.codec.stored(fields), version=int(version))
        if served.storage == _CRD.group_resource:
            self._state.registry.apply_crd({**fields}, now=self._options.wall_clock().timestamp())

    def finished(self) -> StoreState:
        """Return the state, for ``ApiServer(begins_with=...)``."""
        store = self._state.store
        store.seal(frozenset(self._owners - self._uids))
        return store.state()

    def _served(self, fields: dict[str, object]) -> ServedResource | None:
        group, _, version = text(fields.get("apiVersion")).rpartition("/")
        return self._state.registry.find_kind(group, version, text(fields.get("kind")))

    def _require_namespace(self, name: str) -> None:
        if self._state.store.get(_NAMESPACE.group_resource, name) is None:
            made: dict[str, object] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            load_manifest(self._state, Manifest(f"namespace {name}", 1, made), moment=self._moment())

    def _moment(self) -> Moment:
        uid = uuid.UUID(int=self._random.getrandbits(128), version=4)
        return Moment(self._options.wall_clock().timestamp(), str(uid), self._random.random())


_ASSIGNED: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "managedFields"})


@final
class StoredObjects:
    """Objects of a running server as they are stored, without the defaults and conversions of a response."""

    def __init__(self, server: ApiServer) -> None:
        self._state: ServerState = server._state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def tables(self) -> dict[str, dict[str, Resource]]:
        """Return a copy of the objects of each resource by key; objects are shared, because they are immutable."""
        return {name: dict(objects) for name, (objects, _) in self._state.store.state().tables.items()}

    def get(self, resource: str, key: str) -> Resource | None:
        """Return a stored object, or None if it does not exist."""
        return self._state.store.get(resource, key)

    def type_of(self, resource: str, obj: Resource) -> ResourceType[Resource]:
        """Return the kind of a stored object, in its stored version if it is served."""
        return self._version_of(resource, obj).type

    def names_of(self, kind: str) -> tuple[str, str]:
        """Return the group and the plural of a served kind such as ``apps/v1/Deployment``."""
        api_version, _, name = kind.rpartition("/")
        group, _, version = api_version.rpartition("/")
        served = self._state.registry.find_kind(group, version, name)
        return (group, served.type.plural) if served is not None else (group, "")

    def fields_of(self, resource: str, obj: Resource) -> dict[str, object]:
        kind = self.type_of(resource, obj)
        stored = mapping(obj.to_dict())
        return {"apiVersion": stored_version(obj) or kind.api_version, "kind": kind.kind, **stored}

    def unfit(self, resource: str) -> Iterator[tuple[str, str]]:
        """Yield keys of stored objects that could not be created as they are, each with the errors."""
        for obj in self._state.store.list(resource).items:
            served = self._version_of(resource, obj)
            fields = decode_object(served, obj)
            found: list[SchemaError] = [*served.strategy.validate(fields), *served.strategy.validate_new(fields)]
            if found:
                yield obj.key, "; ".join(map(str, found))

    def _version_of(self, resource: str, obj: Resource) -> ServedResource:
        served = self._state.version_of(resource, obj)
        assert served is not None
        return served
