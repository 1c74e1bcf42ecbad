"""Interface between the verbs and their backend (``Way``), and the backend that sends requests to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import json_for_yaml, write_json
from deltaloop.api.list_options import ListOptions, parsed_selector
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import (
    ApiError,
    InternalServerError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    Status,
    StatusDetails,
    error_from_status,
)
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.accept import list_accept
from deltaloop.client.core.answers import is_status, is_unserved_path
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.client.discovery import BoundKind, Discovery
from deltaloop.client.errors import TransportError
from deltaloop.client.options import (
    AccessCheck,
    ClientOptions,
    DeleteOptions,
    PatchType,
    WarningHandler,
    WriteCheck,
    WriteOptions,
)
from deltaloop.client.transport.protocol import HttpRequest, Pool
from deltaloop.client.transport.sender import JSON, RequestSender

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector
    from deltaloop.client.verbs.resource_list import ResourceList

EVERYTHING: Final = ListOptions()
APPLY: Final = "application/apply-patch+yaml"
SCALE: Final = ResourceType[Resource]("autoscaling", "v1", "Scale", "scales")

WriteVerb: TypeAlias = "Literal['create', 'update', 'patch', 'apply', 'delete', 'delete_collection']"

_HEADERS: Final = {
    each: MappingProxyType({"Accept": JSON} | ({"Content-Type": each} if each else {}))
    for each in ("", JSON, APPLY, *PatchType)
}
_METHODS: Final[dict[WriteVerb, tuple[str, str, bool]]] = {  # whether the path has a name without a subresource
    "create": ("POST", "create", False),
    "update": ("PUT", "update", True),
    "patch": ("PATCH", "patch", True),
    "apply": ("PATCH", "patch", True),
    "delete": ("DELETE", "delete", True),
    "delete_collection": ("DELETE", "deletecollection", False),
}


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Write request, with all data that a client needs to send and record it."""

    verb: WriteVerb
    kind: BoundKind
    name: str
    namespace: str | None
    query: Mapping[str, str] = {}
    options: WriteOptions | DeleteOptions | None = None
    subresource: str | None = None
    body: bytes | None = None
    content_type: str = "application/json"
    version: str = ""
    generate_name: str = ""
    timeout: float | None = None
    decode: Callable[[Resource], Any] | None = None
    obj: object = None  # which the body encodes


if TYPE_CHECKING:

    class WriteGuard(Protocol):
        """Observer that can reject the writes of a client."""

        def began(self, action: str) -> None:
            """Process a write before it is sent, or reject it by an exception."""
            ...

        def ended(self, *, unknown: bool) -> None:
            """Process the end of a write that ``began`` permitted. ``unknown``: it can still be carried out."""
            ...


class Unsure(Enum):
    """Marker for results that only a request to the server can determine."""

    UNSURE = "the server may have to be asked"


UNSURE: Final = Unsure.UNSURE


class Way(Protocol):
    @property
    def home(self) -> str:
        """Default namespace for methods that access one object."""
        ...

    @property
    def why_no_home(self) -> str: ...

    @property
    def write_query(self) -> Mapping[str, str]: ...

    @property
    def server(self) -> Server:
        """Server for requests that this backend does not handle."""
        ...

    def cached(self, known: BoundKind, name: str, namespace: str | None) -> Resource | Unsure | None:
        """Return one object or None without waiting, or ``UNSURE`` if ``read`` must find it."""
        ...

    @property
    def read(self) -> Callable[..., Awaitable[Any]]:
        """Function like ``Server.read``. Without ``must_exist``, it returns None if the object does not exist."""
        ...

    @property
    def list(self) -> Callable[..., Awaitable[ResourceList[Any]]]:
        """Function like ``Server.list``. With ``metadata_only``, it returns ``Resource`` objects."""
        ...

    def write(self, request: WriteRequest) -> Coroutine[Any, Any, Any]:
        """Send a write. Return its object or list, or None for a ``Status``."""
        ...


class RecordingWay(Way, Protocol):
    @property
    def write_check(self) -> WriteCheck | None: ...

    @property
    def write_guard(self) -> WriteGuard | None: ...

    def carried_out(self, request: WriteRequest, key: str, before: Resource | None, answer: Any) -> None: ...

    def lost_sight(self, request: WriteRequest, key: str, before: Resource | None) -> None: ...


class Server:
    def __init__(
        self, config: ClientConfig, sender: RequestSender, discovery: Discovery, options: ClientOptions
    ) -> None:
        self.config = config
        self.sender = sender
        self.discovery = discovery
        self.pool = Pool.REQUESTS
        self.on_warning: WarningHandler | None = options.on_warning
        self.write_check: WriteCheck | None = None
        self.write_guard: WriteGuard | None = None
        self.access_check: AccessCheck | None = None
        self.home: str = config.namespace
        self.why_no_home = "this client has no default namespace"
        self.on_written: Callable[[WriteRequest, Any], object] | None = None
        self.options = options
        self.write_query: Mapping[str, str] = _write_query(options)

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with other attributes that shares the connections."""
        other = self.__class__.__new__(self.__class__)
        other.__dict__ = {**self.__dict__, **changes}
        return other

    def with_options(self, options: ClientOptions) -> Self:
        """Return a copy with other options that shares the connections."""
        return self.replaced(options=options, write_query=_write_query(options))

    @property
    def server(self) -> Self:
        return self

    def cached(self, known: BoundKind, name: str, namespace: str | None) -> Unsure:  # noqa: ARG002 - see Way
        return UNSURE

    async def read(
        self, known: BoundKind, name: str, *, must_exist: bool = True, timeout: float | None = None, **asked: Any
    ) -> Resource | None:
        try:
            try:
                return await self._read(known, name, timeout, **asked)
            except NotFoundError as error:
                return await self._read(await self.moved(known, error, timeout), name, timeout, **asked)
        except NotFoundError:
            if must_exist:
                raise
            return None

    async def _read(
        self,
        known: BoundKind,
        name: str,
        timeout: float | None,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Resource:
        place = place_of(self, known, namespace)
        path = known.type.path(namespace=place, name=name, subresource=subresource)
        if self.access_check is not None:
            self.access_check("get", known.type, place, subresource or "")
        answer = await self.sender.send("GET", path, timeout=timeout, pool=self.pool, on_warning=self.on_warning)
        return Resource.from_json(answer.body, known.untyped)

    async def list(self, known: BoundKind, *, timeout: float | None = None, **asked: Any) -> ResourceList[Any]:
        try:
            return await self._list(known, timeout, **asked)
        except NotFoundError as error:
            return await self._list(await self.moved(known, error, timeout), timeout, **asked)

    async def _list(
        self,
        known: BoundKind,
        timeout: float | None,
        *,
        namespace: str | None = None,
        options: ListOptions = EVERYTHING,
        metadata_only: bool = False,
    ) -> ResourceList[Any]:
        from deltaloop.client.core.list_splitter import ListSplitter
        from deltaloop.client.verbs.resource_list import UnreadableItemsError

        kind = known.untyped if metadata_only else known.type
        namespace = self.usable(known.type, namespace)
        if self.access_check is not None:
            self.access_check("list", kind, namespace, "")
        drop_managed_fields = options.drop_managed_fields
        body = await self.sender.receive(
            kind.path(namespace=namespace),
            query=options.to_query(),
            sink=lambda: ListSplitter(kind, drop_managed_fields=drop_managed_fields),
            accept=list_accept(metadata_only=metadata_only, drop_managed_fields=drop_managed_fields),
            timeout=timeout,
            pool=self.pool,
            on_warning=self.on_warning,
        )
        try:
            page = body.finish()
        except UnreadableItemsError as error:
            if metadata_only:
                from deltaloop.client.core.metadata_only import metadata_of_list

                raise UnreadableItemsError(metadata_of_list(error.page)) from None
            raise
        if not metadata_only:
            return page
        from deltaloop.client.core.metadata_only import metadata_of_list

        return metadata_of_list(page)

    async def write(
        self, request: WriteRequest, way: RecordingWay | None = None, key: str = "", before: Resource | None = None
    ) -> Any:
        asked, sender, check, guard = request, self.sender, self.write_check, self.write_guard
        if way is not None:
            check = way.write_check if check is None else both_checks(check, way.write_check)
            guard = way.write_guard or guard
        limit = sender.default_timeout if request.timeout is None else request.timeout
        while True:
            kind, place, body, part = request.kind.type, request.namespace, request.body, request.subresource
            method, rbac_verb, of_object = _METHODS[request.verb]
            path = kind.path(namespace=place, name=request.name if of_object or part else None, subresource=part)
            if self.access_check is not None:
                self.access_check(rbac_verb, kind, place, part or "")
            if body is None and isinstance(request.options, DeleteOptions):
                body = write_json(request.options.to_dict(), "the delete options")
            if guard is not None:
                guard.began(f"{method} {path}")
            headers = _HEADERS["" if body is None else request.content_type]
            checked = None if check is None else partial(check, f"{method} {path}")
            sent = HttpRequest(method, path, request.query, headers, body, limit, self.pool, False, checked)
            try:
                answer = await sender.exchange(sent, limit, self.on_warning)
            except BaseException as error:
                unknown = may_have_been_carried_out(error)
                if guard is not None:
                    guard.ended(unknown=unknown)
                if unknown and way is not None:
                    way.lost_sight(asked, key, before)
                if not isinstance(error, NotFoundError) or request is not asked:
                    raise
                request = await self._moved_request(request, error, way or self)
                continue
            if guard is not None:
                guard.ended(unknown=False)
            found = _answer(request, answer.body)
            if way is not None:
                way.carried_out(asked, key, before, found)
            elif self.on_written is not None:
                self.on_written(request, found)
            return found if request.decode is None or found is None else request.decode(found)

    async def _moved_request(self, request: WriteRequest, error: NotFoundError, way: Way) -> WriteRequest:
        known, verb = request.kind, request.verb
        moved = await self.moved(known, error, request.timeout)
        if moved.namespaced and not request.namespace and verb == "delete_collection":
            raise error  # delete_collection has no default namespace
        body = request.body
        if request.obj is not None and moved.type.api_version != known.type.api_version:
            body = encode_object(moved.type, request.obj).body
            body = json_for_yaml(body) if verb == "apply" else body
        place, decode = place_of(way, moved, request.namespace), request.decode and moved.decode
        return msgspec.structs.replace(request, kind=moved, namespace=place, body=body, decode=decode)

    async def moved(self, known: BoundKind, error: NotFoundError, timeout: float | None) -> BoundKind:
        """Return the current resource of a kind if a 404 shows that its path is no longer served."""
        found = await self.discovery.moved(known.type, timeout=timeout) if is_unserved_path(error) else None
        if found is None:
            raise error
        return self.discovery.bound(known.given, found)

    def usable(self, kind: ResourceType[Any], namespace: str | None) -> str | None:
        """Return the namespace, or None if it is the default and the kind has become cluster-scoped."""
        if not namespace or kind.namespaced or namespace != self.home:
            return namespace
        return None if self.discovery.is_moved(kind) else namespace


def may_have_been_carried_out(error: BaseException) -> bool:
    """Return whether a failed write may still have changed the server."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(
        error, asyncio.CancelledError | InternalServerError | ServiceUnavailableError | ServerTimeoutError
    )


def _write_query(options: ClientOptions) -> Mapping[str, str]:
    query = {"fieldManager": options.field_manager, "fieldValidation": options.field_validation}
    return MappingProxyType({name: value for name, value in query.items() if value})


def _answer(request: WriteRequest, body: bytes) -> Any:
    verb, part = request.verb, request.subresource
    if verb in ("update", "patch") and part in (None, "status"):  # usual
        return Resource.from_json(body, request.kind.untyped)
    if part == "eviction" or (verb in ("delete", "delete_collection") and is_status(body)):
        return None
    if verb == "delete_collection":
        from deltaloop.client.core.list_decoding import decode_list

        return decode_list(request.kind.type, body)
    if part == "scale":
        return Resource.from_json(body, SCALE)
    return Resource.from_json(body, None if part and verb == "create" else request.kind.untyped)


def place_of(way: Way, known: BoundKind, namespace: str | None) -> str | None:
    """Return the namespace for a request about one object, None if cluster-scoped, or raise InvalidArgumentError."""
    if not known.namespaced:
        if namespace:
            refuse_namespace(known.type, way.server.usable(known.type, namespace))
        return None
    place = namespace or way.home
    if not place:
        raise InvalidArgumentError(f"must be set for {known.type}, because {way.why_no_home}.", argument="namespace")
    return place


def refuse_namespace(known: ResourceType[Any], namespace: str | None) -> None:
    """Reject a namespace for a cluster-scoped kind, in which a cache would find no object, by InvalidArgumentError."""
    if namespace and not known.namespaced:
        raise InvalidArgumentError(f"must be None for {known}, got {namespace!r}.", argument="namespace")


def both_checks(earlier: WriteCheck | None, check: WriteCheck | None) -> WriteCheck | None:
    if earlier is None or check is None:
        return earlier or check

    def both(action: str) -> None:
        earlier(action)
        check(action)

    return both


def selected(options: ListOptions, selector: str | LabelSelector | None) -> ListOptions:
    """Return the options with a selector, or raise InvalidArgumentError if they have one, or InvalidSelectorError."""
    if selector is None:
        return options
    if options.label_selector:
        raise InvalidArgumentError(
            "and options.label_selector cannot be combined. Use one of them.", argument="selector"
        )
    return options.replace(label_selector=str(parsed_selector(selector)))


def not_found(kind: ResourceType[Any], name: str, what: str = "not found") -> ApiError:
    """Return the error that the server would return for a missing object."""
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural)
    message = f'{kind.group_resource} "{name}" {what}'
    return error_from_status(Status(code=404, reason="NotFound", message=message, details=details))
