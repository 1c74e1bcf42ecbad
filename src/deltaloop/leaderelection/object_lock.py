"""Locks in API objects: Lease, ConfigMap and Endpoints.

Use a Lease. The other two kinds exist only for migrations with ``MultiLock``, and are expensive.

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
from deltaloop.leaderelection.core.record import (
    LeaderElectionRecord,
    LockState,
    lease_with_record,
    object_with_record,
    record_from_annotations,
    record_from_lease,
)
from deltaloop.leaderelection.lock import LeaseClient, LockEventRecorder

_log: Final = logging.getLogger("deltaloop.leaderelection")


class ObjectLock(ABC):
    """Lock in one object.

    Do not share a lock between electors. Updates keep labels, annotations and unknown fields, and add ``labels``. A
    ``deltaloop.client.Client`` uses its connections for leader election.

    Args:
        client: Client that reads and writes the object, usually a ``Client``.
        namespace: Namespace of the lock's object.
        name: Name of the lock's object.
        identity: Identity of this candidate, for example the host name with a random suffix. It must be unique, because
            a second process with the same identity takes over the lock immediately.
        labels: Labels, read and added at each write.
        recorder: Recorder for the events ``became leader`` and ``stopped leading`` about the object.

    Raises:
        InvalidArgumentError: If the namespace, the name or the identity is empty.
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
                raise InvalidArgumentError("must not be empty.", argument=f"{type(self).__name__}.{option}")
        self.client = client
        # Renewals must not queue behind list requests of the same program.
        self._objects = client.with_pool(Pool.LEADER_ELECTION) if isinstance(client, Client) else client
        self.namespace = namespace
        self.name = name
        self._identity = identity
        self._labels: Mapping[str, str] = {} if labels is None else labels
        self._recorder = recorder
        self._known: Resource | None = None
        self._unreadable: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Identity of this candidate."""
        return self._identity

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the object.

        None means that it does not exist.

        Raises:
            ApiError, TransportError: If the client raises them, except if the object does not exist.
            MalformedObjectError: If the object has no resourceVersion.
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
            AlreadyExistsError: If the object exists. Other errors are those of ``get``.
        """
        metadata = {"namespace": self.namespace, "name": self.name}
        empty = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata}
        fields = self._with_record(empty, record, labels=self._labels)
        return self._keep(await self._objects.create(self.kind, fields, namespace=self.namespace, timeout=timeout))

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Write the record into the last known object if it still has ``version``.

        Raises:
            RuntimeError: If this lock did not read or write this version before, which is a bug of the caller.
            ConflictError: If the object has changed. Other errors are those of ``get``.
        """
        if self._known is None or self._known.resource_version != version:
            raise RuntimeError(
                f"unknown version {version!r} of {self.kind.kind} {self.describe()}: call get or create first"
            )
        changed = self._with_record(self._known.to_dict(), record, labels=self._labels)
        return self._keep(await self._objects.update(self.kind, changed, timeout=timeout))

    def record_event(self, message: str) -> None:
        """Record an event about the object that consists of the identity and ``message``."""
        if self._recorder is not None:
            self._recorder.event(self._reference(), "Normal", "LeaderElection", f"{self._identity} {message}")

    def describe(self) -> str:
        """Return ``namespace/name`` of the object."""
        return f"{self.namespace}/{self.name}"

    def on_own_connection(self) -> AbstractAsyncContextManager[Self] | None:
        """Return a context manager for the same lock with separate connections, or None if that is not possible."""
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

    @staticmethod
    @abstractmethod
    def _with_record(
        fields: Mapping[str, Any], record: LeaderElectionRecord, /, *, labels: Mapping[str, str] | None = None
    ) -> dict[str, Any]: ...

    def _keep(self, found: Resource) -> LockState:
        if not found.resource_version:
            # An update without a resourceVersion is unconditional and could overwrite another candidate's record.
            raise MalformedObjectError(
                f"{self.kind.kind} {self.describe()} must have metadata.resourceVersion to be a lock, got none. "
                "Check the server or proxy."
            )
        record, unreadable = self._record(found)
        if unreadable and unreadable != self._unreadable:
            _log.warning(
                "leader election record has unreadable fields",
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
    """Lock in a ``coordination.k8s.io/v1`` Lease, the recommended kind."""

    kind: ClassVar[ResourceType[Resource]] = LEASE
    _with_record = staticmethod(lease_with_record)

    def _record(self, found: Resource) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
        return record_from_lease(found.view())


class _AnnotationLock(ObjectLock):
    _with_record = staticmethod(object_with_record)

    def _record(self, found: Resource) -> tuple[LeaderElectionRecord, tuple[str, ...]]:
        return record_from_annotations(found.annotations)


@final
class ConfigMapLock(_AnnotationLock):
    """Lock in an annotation of a ConfigMap, as in client-go until v0.27.

    Any other change of the object counts as a renewal, so do not use the object for other purposes.
    """

    kind: ClassVar[ResourceType[Resource]] = CONFIG_MAP


@final
class EndpointsLock(_AnnotationLock):
    """Lock in an annotation of an Endpoints object, as in client-go until v0.27.

    See ``ConfigMapLock``.
    """

    kind: ClassVar[ResourceType[Resource]] = ENDPOINTS
