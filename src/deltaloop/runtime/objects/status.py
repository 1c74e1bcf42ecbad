"""Status writes of a reconcile, sent once and only if they change something.

The patch is valid only for the version of the newest known state, which also protects a successor of the same name.
After a conflict, the object is read from the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NoReturn, Self, TypeAlias, cast, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import type_of
from deltaloop.api.json_writing import write_json
from deltaloop.api.path import Path
from deltaloop.api.resource import DECODE_ERRORS, Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.api.times import WallTime, format_time, utc_now
from deltaloop.api.views import freeze
from deltaloop.client.discovery import BoundKind
from deltaloop.client.options import PatchType
from deltaloop.client.verbs.server import WriteRequest, place_of
from deltaloop.runtime.core.own_writes import status_of
from deltaloop.runtime.core.status import Fields, Kept, StatusChange
from deltaloop.runtime.errors import is_write_refusal
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.reconcile.client import CachedWay

_logger: Final = logging.getLogger("deltaloop.runtime.status")
_TRIES: Final = 5
# Fields that the schema lacks are found in the response and reported once for each field.
_QUERY: Final = {"fieldValidation": "Ignore"}
_MERGE: Final = PatchType.MERGE.value  # the attribute of an enum is a call


_encode: Final = msgspec.json.Encoder().encode

Wait: TypeAlias = "Callable[[Coroutine[Any, Any, Any]], Any]"


@final
class Statuses:
    """Shared status state of one controller's reconciles: its kind, and the server's handling of statuses."""

    __slots__ = ("_kept", "about", "kind", "views", "wall_clock")

    def __init__(
        self, kind: ResourceType[Any] | str, views: Views, *, wall_clock: Callable[[], WallTime] = utc_now
    ) -> None:
        """Create the shared state; ``kind`` is the default for objects that do not specify their own."""
        self.kind: ResourceType[Any] | str = kind
        self.views: Views = views
        self.wall_clock: Callable[[], WallTime] = wall_clock
        self._kept: dict[ResourceType[Any], Kept] = {}
        self.about: dict[BoundKind, tuple[Kept, bool, Mapping[str, str]]] = {}
        """For each kind, the server's handling of its statuses, whether it is the controller's, and the query."""

    async def meet(self, known: BoundKind, way: CachedWay) -> tuple[Kept, bool, Mapping[str, str]]:
        """Compute and store the entry of a kind in ``about``."""
        kind, own = known.type, (await way.bind(self.kind)).type
        is_own = (kind.group, kind.kind) == (own.group, own.kind)
        query = MappingProxyType({**way.write_query, **_QUERY})
        found = self.about[known] = self._kept.setdefault(kind, Kept()), is_own, query
        return found


@final
class StatusWriter(msgspec.Struct, eq=False):
    """Status of one object, created by ``ctx.status``.

    ``async with`` writes at the end of the block, except if nothing has changed or the block was canceled. After
    another exception it writes only the ``on_error`` condition. Plain functions use ``with``.
    """

    _given: Resource
    _kind: ResourceType[Any] | str
    _uid: str
    _change: StatusChange
    _way: CachedWay
    _statuses: Statuses
    _on_error: str | None
    _wait: Wait
    _open: StatusChange | None = None

    def __repr__(self) -> str:
        return f"<StatusWriter of {self._kind} {self._given.key}>"

    def __setitem__(self, field: str, value: object) -> None:
        """Set a field of the status, replacing its whole value; None removes it.

        Raises:
            InvalidArgumentError: If the field is ``conditions`` or ``observedGeneration``.
            MalformedObjectError: If JSON cannot represent the value.
        """
        (self._open or self._refuse()).set_field(field, value)

    def __getitem__(self, field: str) -> Any:
        """Return the pending value of a field, which you must not change."""
        return freeze(self._change.shown(_status_of(self._given))[field])

    def get(self, field: str, default: Any = None) -> Any:
        """Return the pending value of a field, or ``default``; you must not change it."""
        return freeze(self._change.shown(_status_of(self._given)).get(field, default))

    def remove(self, field: str) -> None:
        """Remove a field from the status.

        Raises:
            InvalidArgumentError: If the field is ``conditions`` or ``observedGeneration``.
        """
        (self._open or self._refuse()).set_field(field, None)

    def set_condition(self, type: str, status: str | bool, *, reason: str, message: str = "") -> None:  # noqa: A002
        """Set a condition; ``lastTransitionTime`` changes only with its status.

        Args:
            type: Condition type, for example ``Ready``.
            status: ``"True"``, ``"False"`` or ``"Unknown"``, or a bool.
            reason: One word, for example ``MinimumReplicasAvailable``.
            message: Text for humans.

        Raises:
            InvalidArgumentError: If Kubernetes does not allow the condition.
        """
        (self._open or self._refuse()).set_condition(type, status, reason=reason, message=message)

    def remove_condition(self, type: str) -> None:  # noqa: A002 - the wire name
        """Remove a condition.

        Raises:
            InvalidArgumentError: If the condition type is invalid.
        """
        (self._open or self._refuse()).remove_condition(type)

    def condition(self, type: str) -> Mapping[str, Any] | None:  # noqa: A002 - the wire name
        """Return a pending condition without its times; None if it does not exist; you must not change it."""
        return cast("Mapping[str, Any] | None", freeze(self._change.shown_condition(type, _status_of(self._given))))

    async def write(self) -> None:
        """Write the pending changes now, if there are any; the end of the block writes later changes.

        Nothing is written if the object is gone or replaced by an object of the same name.

        Raises:
            NoStatusSubresourceError: If the kind has no status subresource.
            ConflictError: If other writers keep changing the object.
            ReconcileStoppedError: If the reconcile was told to stop.
            ApiError: If the server rejects the write, for example ``InvalidError`` for a schema violation.
        """
        await self._write(self._open or self._refuse())

    def _refuse(self) -> NoReturn:
        raise InvalidArgumentError(
            "ctx.status must be used as a block, because the end of the block writes the status. "
            "Write `async with ctx.status(...) as status:`, or `with` in a plain function"
        )

    async def __aenter__(self) -> Self:
        self._open = self._change
        return self

    def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> Coroutine[Any, Any, None]:
        """Write the status; the block's exception is raised again even if this write fails.

        Raises:
            ApiError: See ``write``.
        """
        self._open = None
        return self._write(self._change) if error is None else self._write_error(error)

    async def _write_error(self, error: BaseException) -> None:
        if self._on_error is None or not isinstance(error, Exception):
            return
        try:
            await self._write(self._change.of_error(self._on_error, error), observing=False)
        except DeltaloopError as second:
            if is_write_refusal(second):
                return
            extra = {"kind": str(self._kind), "key": self._given.key, "error": type(second).__name__}
            _logger.warning("cannot write an error into the status", extra=extra)

    def __enter__(self) -> Self:
        """Open the status in a plain function.

        Raises:
            WaitOnLoopError: If it is used in an ``async def`` function.
        """
        from deltaloop.runtime.reconcile.errors import WaitOnLoopError

        try:
            return cast("Self", self._wait(self.__aenter__()))
        except WaitOnLoopError:
            raise WaitOnLoopError("with ctx.status(...)", "Write `async with ctx.status(...)`") from None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Write the status; the block's exception is raised again even if this write fails.

        Raises:
            ApiError: See ``write``.
        """
        self._wait(self.__aexit__(kind, error, traceback))

    async def _write(self, change: StatusChange, observing: bool = True) -> None:
        way = self._way
        known = way.kinds.get(id(self._kind)) or await way.bind(self._kind)
        about = self._statuses.about
        kept, is_own, query = about[known] if known in about else await self._statuses.meet(known, way)
        # The observedGeneration of another kind, such as a Deployment, belongs to that kind's own controller.
        observing = observing and is_own
        name, place = self._given.name, self._given.namespace or place_of(way, known, None)
        present = way.newest(known, place, self._given.key)
        tries = _TRIES
        while True:  # a range costs as much as a look at the cache
            tries -= 1
            if present is None:
                present = await way.server.read(known, name, must_exist=False, namespace=place)
            if present is None or (self._uid and self._uid != present.uid):
                return
            there = _status_of(present)
            if change.generation != present.generation and change.is_outdated(
                there, generation=present.generation, observing=observing
            ):
                return  # its writer has seen a newer object, which this program's cache will receive
            now = format_time(self._statuses.wall_clock()) if change.conditions else ""
            patch = change.patch(there, kept, now, observing)
            if patch is None:
                return
            version = present.resource_version
            request = WriteRequest(
                verb="patch",
                kind=known,
                name=name,
                namespace=place,
                query=query,
                subresource="status",
                body=_encode({"metadata": {"resourceVersion": version}, "status": patch}),
                content_type=_MERGE,
                version=version,
            )
            try:
                stored: Resource = await way.write(request)
            except ConflictError:
                if not tries:
                    raise
                present = None
            except NotFoundError:
                found = await way.server.read(known, name, must_exist=False, namespace=place)
                if found is None or found.uid != present.uid:
                    return
                from deltaloop.runtime.objects.errors import NoStatusSubresourceError

                raise NoStatusSubresourceError(known.type) from None
            else:
                for field in kept.learn(patch, _status_of(stored)):
                    extra = {"kind": known.text, "field": field}
                    _logger.warning("server dropped a status field that is missing in the schema", extra=extra)
                return


def status_writer(obj: object, way: CachedWay, statuses: Statuses, on_error: str | None, wait: Wait) -> StatusWriter:
    """Create the writer of an object that was read; ``wait`` runs a coroutine on the event loop."""
    kind: ResourceType[Any] | str
    if type(obj) is Resource and obj.resource_type is not None:
        kind, given = obj.resource_type, obj
    else:
        kind, given = _as_resource(obj, statuses.kind)
    looked_at: Resource | None = given
    if not given.uid and isinstance(kind, ResourceType):  # its class has no field for the UID
        view = statuses.views.of(kind).find(given.namespace)
        looked_at = None if view is None else view.newest_whole(given.key)
    if on_error is not None:
        from deltaloop.api.conditions import check_condition_type

        check_condition_type(on_error)
    uid, generation = ("", 0) if looked_at is None else (looked_at.uid, looked_at.generation)
    return StatusWriter(given, kind, uid, StatusChange(generation), way, statuses, on_error, wait)


def _as_resource(obj: object, own: ResourceType[Any] | str) -> tuple[ResourceType[Any] | str, Resource]:
    if obj is None:
        raise InvalidArgumentError(
            "must be an object, got None. Return earlier if it does not exist.", argument="ctx.status()"
        )
    if not isinstance(obj, Resource):
        with suppress(InvalidArgumentError):  # objects of other classes have the controller's kind
            own = ResourceType.of(type(obj))
        raw = obj if isinstance(obj, bytes) else write_json(obj, "the object of ctx.status")
        obj = Resource.from_json(raw)
    if obj.resource_type is not None:
        return obj.resource_type, obj
    return (f"{obj.api_version}/{obj.kind}" if obj.api_version and obj.kind else own), obj


def _status_of(obj: Resource) -> Fields:
    try:
        found: Any = status_of(obj)
    except DECODE_ERRORS:
        found = Path("status").get(obj)  # raises an error that explains the problem
    return found if type_of(found) is dict else {}
