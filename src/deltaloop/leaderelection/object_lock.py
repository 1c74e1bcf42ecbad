"""Locks in an object of the API: Lease (core/record.py), and ConfigMap and Endpoints (core/annotation.py).

The Lease is the one to use. The other two exist for moving away from them together with ``MultiLock``: old
candidates know nothing else. Every write to an Endpoints object goes to every node, and every write to a ConfigMap to
whoever watches it.

Source: client-go tools/leaderelection/resourcelock/leaselock.go; v0.26 configmaplock.go, endpointslock.go.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Final, Self, final

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.kinds import CONFIG_MAP, ENDPOINTS, LEASE
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.client.client import Client
from deltaloop.client.transport.protocol import Pool
from deltaloop.leaderelection.core.annotation import new_object, object_with_record, record_from_annotations
from deltaloop.leaderelection.core.record import (
    LeaderElectionRecord,
    LockState,
    lease_with_record,
    new_lease,
    record_from_lease,
)
from deltaloop.leaderelection.lock import LeaseClient, LockEventRecorder

_log: Final = logging.getLogger("deltaloop.leaderelection")


class ObjectLock(ABC):
    """A lock in one object.

    One candidate has one of its own; not shared between electors. Labels, annotations and fields that this version
    does not know are kept on update; ``labels`` are added. A ``deltaloop.client.Client`` is used with the
    connections that it keeps for leader election.

    Args:
        client: Reads and writes the object, usually a ``Client``.
        namespace: The namespace of the object that is the lock.
        name: The name of the object that is the lock.
        identity: This candidate's name; unique among all candidates, such as the host's name with a random suffix.
            A second process with the same identity takes the lock over at once.
        labels: Labels that are added to the object whenever it is written.
        recorder: Where ``became leader`` and ``stopped leading`` go as events about the object.

    Raises:
        InvalidArgumentError: If namespace, name or identity is empty.
    """

    kind: ClassVar[ResourceType[Resource]]

    def __init__(
        self,
        client: LeaseClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        labels: Mapping[str, str] | None = None,
        recorder: LockEventRecorder | None = None,
    ) -> None:
        for option, value in (("namespace", namespace), ("name", name), ("identity", identity)):
            if not value:
                raise InvalidArgumentError(f"{type(self).__name__} needs a {option} that is not empty")
        self.client = client
        # Renewals must not queue behind the lists of the same program.
        self._objects = client.with_pool(Pool.LEADER_ELECTION) if isinstance(client, Client) else client
        self.namespace = namespace
        self.name = name
        self._identity = identity
        self._labels = dict(labels or {})
        self._recorder = recorder
        self._known: Resource | None = None
        self._unreadable: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """This candidate's name."""
        return self._identity

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the object; None if there is none.

        Raises:
            ApiError, TransportError: What the client raises, except for an object that is not there.
            MalformedObjectError: If what is there has no resourceVersion.
        """
        try:
            found = await self._objects.get(self.kind, self.name, namespace=self.namespace, timeout=timeout)
        except NotFoundError:
            self._known = None
            return None
        return self._keep(found)

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Create the object.

        Raises:
            AlreadyExistsError: If there is one; other errors as for ``get``.
        """
        fields = self._new(record, self._labels)
        return self._keep(await self._objects.create(self.kind, fields, namespace=self.namespace, timeout=timeout))

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Write the record into the object that was read or written last, if it is still at ``version``.

        Raises:
            RuntimeError: If this version of the object was not read or written before; a caller's bug.
            ConflictError: If the object has changed since; other errors as for ``get``.
        """
        if self._known is None or self._known.resource_version != version:
            raise RuntimeError(
                f"version {version!r} of {self.kind.kind} {self.describe()} is not known; get or create comes first"
            )
        changed = self._changed(self._known.to_dict(), record, self._labels)
        return self._keep(await self._objects.update(self.kind, changed, timeout=timeout))

    def record_event(self, message: str) -> None:
        """Record an event about the object: the identity and what it did."""
        if self._recorder is not None:
            self._recorder.event(self._reference(), "Normal", "LeaderElection", f"{self._identity} {message}")

    def describe(self) -> str:
        """Return ``namespace/name`` of the object."""
        return f"{self.namespace}/{self.name}"

    def on_own_connection(self) -> AbstractAsyncContextManager[Self] | None:
        """Return a context with the same lock over connections of its own; None if the client is not ours."""
        client = self.client.with_own_connections() if isinstance(self.client, Client) else None
        return self._moved(client) if client is not None else None

    @asynccontextmanager
    async def _moved(self, own: Client) -> AsyncGenerator[Self, None]:
        async with own:
            yield type(self)(
                own,
                namespace=self.namespace,
                name=self.name,
                identity=self._identity,
                labels=self._labels,
                recorder=self._recorder,
            )

    @abstractmethod
    def _record(self, found: Resource) -> tuple[LeaderElectionRecord, tuple[str, ...]]: ...

    @abstractmethod
    def _new(self, record: LeaderElectionRecord, labels: Mapping[str, str]) -> dict[str, Any]: ...

    @abstractmethod
    def _changed(
        self, fields: Mapping[str, Any], record: LeaderElectionRecord, labels: Mapping[str, str]
    ) -> dict[str, Any]: ...

    def _keep(self, found: Resource) -> LockState:
        if not found.resource_version:
            # An update without one is unconditional: it would replace what another candidate has just written.
            raise MalformedObjectError(
                f"{self.kind.kind} {self.describe()} came without metadata.resourceVersion, so it cannot be a lock: "
                "use a server, or a proxy, that gives one"
            )
        record, unreadable = self._record(found)
        if unreadable and unreadable != self._unreadable:
            _log.warning(
                "the leader election record has unreadable fields",
                extra={"lock": self.describe(), "identity": self._identity, "fields": list(unreadable)},
            )
        self._unreadable = unreadable
        self._known = found
        return LockState(record, found.resource_version)

    def _reference(self) -> ObjectReference:
        known = self._known
        return ObjectReference(
            api_version=self.kind.api_version,
            kind=self.kind.kind,
            namespace=self.namespace,
            name=self.name,
            uid=known.uid if known is not None else "",
            resource_version=known.resource_version if known is not None else "",
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.describe()} for {self._identity}>"


@final
class LeaseLock(ObjectLock):
    """A lock in a ``coordination.k8s.io/v1`` Lease; the one to use."""

    kind: ClassVar[ResourceType[Resource]] = LEASE

    def _record(self, found: Resource) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
        return record_from_lease(found.view())

    def _new(self, record: LeaderElectionRecord, labels: Mapping[str, str]) -> dict[str, Any]:
        return new_lease(record, namespace=self.namespace, name=self.name, labels=labels)

    def _changed(
        self, fields: Mapping[str, Any], record: LeaderElectionRecord, labels: Mapping[str, str]
    ) -> dict[str, Any]:
        return lease_with_record(fields, record, labels=labels)


class _AnnotationLock(ObjectLock):
    def _record(self, found: Resource) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
        return record_from_annotations(found.annotations)

    def _new(self, record: LeaderElectionRecord, labels: Mapping[str, str]) -> dict[str, Any]:
        return new_object(self.kind, record, namespace=self.namespace, name=self.name, labels=labels)

    def _changed(
        self, fields: Mapping[str, Any], record: LeaderElectionRecord, labels: Mapping[str, str]
    ) -> dict[str, Any]:
        return object_with_record(fields, record, labels=labels)


@final
class ConfigMapLock(_AnnotationLock):
    """A lock in an annotation of a ConfigMap, as client-go had it until v0.27; everything else in it is kept.

    A change of anything else in the object counts as a sign of life of the leader, so use an object of its own.
    """

    kind: ClassVar[ResourceType[Resource]] = CONFIG_MAP


@final
class EndpointsLock(_AnnotationLock):
    """A lock in an annotation of an Endpoints object, as client-go had it until v0.27; see ``ConfigMapLock``."""

    kind: ClassVar[ResourceType[Resource]] = ENDPOINTS
