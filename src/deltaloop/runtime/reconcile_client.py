"""The client of a reconcile: reads from caches, writes to the server, and what many reconcilers do with both.

The verbs are in ``reads.py`` and ``writes.py``. Conflicts of ``create_or_update`` are not hidden; those of finalizers
are tried again, because nothing else of the object matters to them.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.runtime.ownership import add_finalizer, remove_finalizer
from deltaloop.runtime.reads import not_found
from deltaloop.runtime.views import untyped
from deltaloop.runtime.writes import RememberedWrites

_CONFLICT_TRIES: Final = 5


class Written(Enum):
    """What ``create_or_update`` did."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"


@final
class ReconcileClient(RememberedWrites):
    """The client of one reconcile; made by a manager."""

    async def create_or_update(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        change: Callable[[dict[str, Any]], object],
        *,
        namespace: str | None = None,
    ) -> tuple[Written, Resource]:
        """Bring one object into the wanted shape: create it if it is missing, update it if ``change`` changes it.

        A conflict is not hidden: the reconcile fails and runs again with what is there then, as upstream has it.

        Args:
            rt: What kind of object.
            name: Its name.
            change: Gets the object as a dict (of a missing one: its names only) and sets what it is to have; it must
                not change name or namespace.
            namespace: The client's by default.

        Returns:
            What was done, and the object as it is stored.

        Raises:
            ConflictError: If somebody else changed the object meanwhile.
            AlreadyExistsError: If somebody else created it meanwhile.
            InvalidArgumentError: If ``change`` changed the names.

        Source: controller-runtime pkg/controller/controllerutil ``CreateOrUpdate``.
        """
        known = untyped(await self._known(rt))
        place = self._place(known, namespace)
        present = await self.find(known, name, namespace=place)
        fields = present.edit() if present is not None else _blank(known, name, place)
        before = Resource.from_dict(fields, known)
        change(fields)
        after = Resource.from_dict(fields, known)
        if (after.name, after.namespace) != (before.name, before.namespace):
            raise InvalidArgumentError(f"create_or_update of {known} {name!r}: the change must not change its names")
        if present is None:
            return Written.CREATED, await self.create(known, fields)
        if after == before:
            return Written.UNCHANGED, present
        return Written.UPDATED, await self.update(known, fields)

    async def ensure_finalizer(self, rt: ResourceType[Any] | str, obj: Resource, name: str) -> Resource:
        """See to it that an object has a finalizer, and return it as stored; conflicts are tried again.

        Raises:
            NotFoundError: If the object is gone.
            ConflictError: If it changes all the time.
        """
        return await self._change_finalizers(rt, obj, lambda fields: add_finalizer(fields, name))

    async def drop_finalizer(self, rt: ResourceType[Any] | str, obj: Resource, name: str) -> Resource | None:
        """See to it that an object has not a finalizer (any more), and return it as stored; None if it is gone.

        Raises:
            ConflictError: If the object changes all the time.
        """
        try:
            return await self._change_finalizers(rt, obj, lambda fields: remove_finalizer(fields, name))
        except NotFoundError:
            return None

    async def _change_finalizers(
        self, rt: ResourceType[Any] | str, obj: Resource, change: Callable[[dict[str, Any]], bool]
    ) -> Resource:
        known = untyped(await self._known(rt))
        for attempt in range(_CONFLICT_TRIES):
            fields = obj.edit()
            if not change(fields):
                return obj
            try:
                return await self.update(known, fields)
            except ConflictError:
                if attempt + 1 == _CONFLICT_TRIES:
                    raise
            uid = obj.uid
            obj = await self._client.get(known, obj.name, namespace=obj.namespace)
            if obj.uid != uid:
                raise not_found(known, obj.name)
        raise AssertionError("the loop returns or raises")


def _blank(known: ResourceType[Any], name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
