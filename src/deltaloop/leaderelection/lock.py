"""Locks: where the leader election record is stored. ``LeaseLock`` keeps it in a Lease (decisions: core/record.py).

A lock of your own implements ``Lock``: any store will do that can refuse a write whose version is not the present one,
and that answers reads with what was written last.

Source: client-go tools/leaderelection/resourcelock/{interface,leaselock}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, final

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.kinds import LEASE
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.client.client import Client
from deltaloop.client.transport import Pool
from deltaloop.leaderelection.core.record import (
    LeaderElectionRecord,
    LockState,
    lease_with_record,
    new_lease,
    record_from_lease,
)


class Lock(Protocol):
    """A stored record with optimistic concurrency. ``timeout`` is in seconds; a call that takes longer is cancelled."""

    @property
    def identity(self) -> str:
        """The candidate that uses this lock; unique among all candidates, never empty."""
        ...

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the record and its version; None if it does not exist."""
        ...

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Store the first record.

        Raises:
            ConflictError: If there is one already.
        """
        ...

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Replace the record if its version is still ``version``.

        Raises:
            ConflictError: If it is not.
            NotFoundError: If the record is gone.
        """
        ...

    def record_event(self, message: str) -> None:
        """Tell the world about a change, such as ``became leader``; must not block and must not raise."""
        ...

    def describe(self) -> str:
        """Name the lock in logs and errors, such as ``namespace/name``."""
        ...


class LeaseClient(Protocol):
    """What a ``LeaseLock`` needs of a client."""

    async def get(
        self,
        resource_type: ResourceType[Resource],
        name: str,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Read one object."""
        ...

    async def create(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Create one object."""
        ...

    async def update(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        timeout: float | None = None,
    ) -> Resource:
        """Replace one object, if its resource version is the present one."""
        ...


class LockEventRecorder(Protocol):
    """What a ``LeaseLock`` needs of an event recorder; ``deltaloop.events.EventRecorder`` fits."""

    def event(self, obj: ObjectReference, event_type: str, reason: str, message: str, /) -> None:
        """Record an event about an object, without blocking."""
        ...


@final
class LeaseLock:
    """A lock in a ``coordination.k8s.io/v1`` Lease. One candidate has one of its own; not shared between electors.

    Labels, annotations and fields that this version does not know are kept on update; ``labels`` are added. A
    ``deltaloop.client.Client`` is used with the connections that it keeps for leader election.

    Args:
        client: Client for the Lease.
        namespace: The Lease's namespace.
        name: The Lease's name.
        identity: This candidate's name; unique among all candidates, such as the host's name with a random suffix.
            A second process with the same identity takes the lock over at once.
        labels: Labels to put on the Lease.
        recorder: Where ``became leader`` and ``stopped leading`` go as events about the Lease.

    Raises:
        InvalidInputError: If namespace, name or identity is empty.
    """

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
                raise InvalidInputError(f"LeaseLock needs a {option} that is not empty")
        self.client = client
        # Renewals must not queue behind the lists of the same program.
        self._leases = client.with_pool(Pool.LEADER_ELECTION) if isinstance(client, Client) else client
        self.namespace = namespace
        self.name = name
        self._identity = identity
        self._labels = dict(labels or {})
        self._recorder = recorder
        self._lease: Resource | None = None

    @property
    def identity(self) -> str:
        """This candidate's name."""
        return self._identity

    async def get(self, *, timeout: float) -> LockState | None:
        """Read the Lease; None if there is none.

        Raises:
            ApiError, TransportError: What the client raises, except for a Lease that is not there.
            MalformedObjectError: If what is there is not a Lease.
        """
        try:
            lease = await self._leases.get(LEASE, self.name, namespace=self.namespace, timeout=timeout)
        except NotFoundError:
            self._lease = None
            return None
        return self._keep(lease)

    async def create(self, record: LeaderElectionRecord, *, timeout: float) -> LockState:
        """Create the Lease.

        Raises:
            AlreadyExistsError: If there is one; other errors as for ``get``.
        """
        lease = new_lease(record, namespace=self.namespace, name=self.name, labels=self._labels)
        return self._keep(await self._leases.create(LEASE, lease, namespace=self.namespace, timeout=timeout))

    async def update(self, record: LeaderElectionRecord, version: str, *, timeout: float) -> LockState:
        """Write the record into the Lease that was read or written last, if it is still at ``version``.

        Raises:
            RuntimeError: If this version of the Lease was not read or written before; a caller's bug.
            ConflictError: If the Lease has changed since; other errors as for ``get``.
        """
        if self._lease is None or self._lease.resource_version != version:
            raise RuntimeError(
                f"version {version!r} of Lease {self.describe()} is not known; get or create comes first"
            )
        changed = lease_with_record(self._lease.to_dict(), record, labels=self._labels)
        return self._keep(await self._leases.update(LEASE, changed, timeout=timeout))

    def record_event(self, message: str) -> None:
        """Record an event about the Lease: the identity and what it did."""
        if self._recorder is not None:
            self._recorder.event(self._reference(), "Normal", "LeaderElection", f"{self._identity} {message}")

    def describe(self) -> str:
        """Return ``namespace/name`` of the Lease."""
        return f"{self.namespace}/{self.name}"

    def _keep(self, lease: Resource) -> LockState:
        state = LockState(record_from_lease(lease.view()), lease.resource_version)
        self._lease = lease
        return state

    def _reference(self) -> ObjectReference:
        known = self._lease
        return ObjectReference(
            api_version=LEASE.api_version,
            kind=LEASE.kind,
            namespace=self.namespace,
            name=self.name,
            uid=known.uid if known is not None else "",
            resource_version=known.resource_version if known is not None else "",
        )

    def __repr__(self) -> str:
        return f"<LeaseLock {self.describe()} for {self._identity}>"
